import * as z from 'zod';
import type { Classification } from '../error-kind.ts';
import {
  COUNT_MAX,
  breakerEntrySchema,
  count,
  durationMs,
  positiveMs,
  retryEntrySchema,
  type BreakerEntry,
  type RetryEntry,
} from './policy-entry.ts';
import type { Effects, ProfileName } from '../policy.ts';
import {
  compensateEntrySchema,
  undoEntrySchema,
  verifyEntrySchema,
  type CompensateEntry,
  type UndoEntry,
  type VerifyEntry,
} from './settle-entry.ts';

/** A server of a plan file: one that is started has `command`, one that is reached over HTTP has `url`. */
export interface ServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  start_timeout_ms?: number;
}

export interface FaultsEntry {
  fail_first?: number;
  code?: string | number;
  rate?: number;
  latency_ms?: number;
  hang?: boolean | number;
}

/** A tool of a plan file: which one it is, and how its calls are guarded. */
export interface ToolEntry {
  id: string;
  server: string;
  tool: string;
  timeout_ms?: number;
  idle_timeout_ms?: number;
  retry_policy?: RetryEntry;
  circuit_breaker?: BreakerEntry | false;
  classification?: Record<string, Classification>;
  alternatives?: string[];
  effects?: Effects;
  verify?: VerifyEntry;
  compensate?: CompensateEntry | false;
  faults?: FaultsEntry;
}

export interface NodeEntry {
  id: string;
  tool: string;
  input?: Record<string, unknown> | string;
  needs?: string[];
  optional?: boolean;
  default?: unknown;
  compensate?: UndoEntry | false;
}

export interface TurnEntry {
  timeout_ms?: number;
  on_deadline?: 'detach' | 'abort';
  concurrency?: number;
  on_failure?: 'keep' | 'compensate';
  nodes: NodeEntry[];
}

/** A plan file, as `spillway run` reads it. */
export interface PlanFile {
  profile?: ProfileName;
  servers?: Record<string, ServerEntry>;
  tools?: ToolEntry[];
  turn: TurnEntry;
}

/** A plan file written by hand has tens of nodes; one that a program wrote, thousands. */
const NODES_MAX = 10_000;
const TOOLS_MAX = 1_000;

const text = (max: number): z.ZodString => z.string().min(1).max(max);
/** References and the table are made of names, so a name has no space, quote, bracket or brace. */
const name = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/, { error: 'must be made of letters, digits, _ and - only' });
export const serverName = (): z.ZodString => name(64);
export const toolName = (): z.ZodString =>
  z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_./:-]+$/, { error: 'must be made of letters, digits and _ - . / : only' });

type Wrong = readonly [key: keyof ServerEntry, message: string];

const OF_COMMANDS = ['args', 'env', 'cwd'] as const;

/** An address may hold a secret, so a message shows no more than its scheme. */
const urlProblem = (text: string): string | undefined => {
  const url = URL.parse(text);
  if (url === null) return 'must be an absolute URL, such as http://localhost:3001/mcp';
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return `must begin with http: or https:, not ${url.protocol}`;
  return url.username !== '' || url.password !== ''
    ? 'must not hold a user name or a password; put them in headers, as authorization'
    : undefined;
};

const headersProblem = (headers: Readonly<Record<string, string>>): string | undefined => {
  for (const [name, value] of Object.entries(headers)) {
    if (value.includes('${'))
      return `are taken as they are written: nothing is filled in for the \${...} of ${name}; write the value itself`;
    if (!/^[\w!#$%&'*+.^`|~-]{1,256}$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      return `must be names and texts that HTTP allows; ${JSON.stringify(name.slice(0, 64))} is not`;
  }
  return undefined;
};

/** What the keys of a server must be to each other. */
const serverProblems = ({ command, url, headers, ...entry }: ServerEntry): Wrong[] => {
  const problems: Wrong[] = [];
  const wrong = (key: keyof ServerEntry, message: string | undefined): void => {
    if (message !== undefined) problems.push([key, message]);
  };
  if (url === undefined) {
    if (command === undefined)
      wrong('command', 'is missing; give command for a server to start, or url for one over HTTP');
    if (headers !== undefined)
      wrong('headers', 'are sent to a server over HTTP only; remove them, or give url in place of command');
    return problems;
  }
  if (command !== undefined)
    return [
      ['url', 'cannot stand beside command: a server is started with command or reached at url; remove one of them'],
    ];
  for (const key of OF_COMMANDS)
    if (entry[key] !== undefined)
      wrong(key, 'is for a server that is started with command; remove it, or give command in place of url');
  wrong('url', urlProblem(url));
  wrong('headers', headersProblem(headers ?? {}));
  return problems;
};

export const serverEntrySchema: z.ZodType<ServerEntry> = z
  .strictObject({
    command: text(4096)
      .exactOptional()
      .describe(
        'The program. A bare name is looked for in node_modules/.bin, from the server’s folder upward, then in PATH; a relative path starts at the plan file’s folder.',
      ),
    args: z.array(z.string().max(65_536)).max(256).exactOptional().describe('Its arguments.'),
    env: z
      .record(text(256), z.string().max(65_536))
      .exactOptional()
      .describe(
        'Environment variables for it, beside HOME, PATH and the like. Nothing else of your environment reaches it.',
      ),
    cwd: text(4096)
      .exactOptional()
      .describe('Its working folder, relative to the plan file’s. Without this key: the folder the command runs in.'),
    url: text(4096)
      .exactOptional()
      .describe('The address of a server over Streamable HTTP, http: or https:, in place of command.'),
    headers: z
      .record(text(256), z.string().max(65_536))
      .exactOptional()
      .describe('Sent with every request to url, such as authorization. Taken as written.'),
    start_timeout_ms: positiveMs
      .exactOptional()
      .describe('How long it may take to start, or connect, and list its tools. Default 30000.'),
  })
  // The code is that of a key that may not be there: its message is shown alone, without the value, which may be a secret.
  .superRefine((entry, context) => {
    for (const [key, message] of serverProblems(entry))
      context.addIssue({ code: 'invalid_type', expected: 'never', message, path: [key], input: undefined });
  })
  .meta({
    description: 'An MCP server: started over stdio with command, or reached over HTTP at url.',
    oneOf: [{ required: ['command'] }, { required: ['url'] }],
  });

const faults: z.ZodType<FaultsEntry> = z
  .strictObject({
    fail_first: count(0, COUNT_MAX).exactOptional().describe('The first this many attempts fail. Default 0.'),
    code: z
      .union([z.string().regex(/^([A-Za-z_]\w{0,63}|[45]\d\d)$/), count(400, 599)], {
        error: 'must be an error code such as ECONNRESET, or an HTTP status from 400 to 599',
      })
      .exactOptional()
      .describe('What a failure is: a code such as ECONNRESET, or an HTTP status such as 503. Default ECONNRESET.'),
    rate: z
      .number()
      .min(0)
      .max(1)
      .exactOptional()
      .describe('The share of the other attempts that fail; --seed makes them the same each time. Default 0.'),
    latency_ms: durationMs.exactOptional().describe('A wait before the tool is really called. Default 0.'),
    hang: z
      .union([z.boolean(), count(0, COUNT_MAX)], { error: `must be true, false, or an integer from 0 to ${COUNT_MAX}` })
      .exactOptional()
      .describe(
        'true: never answer. A number: the first this many attempts are never answered. Goes before fail_first.',
      ),
  })
  .describe('Faults put in front of the tool, to see how a turn survives them.');

const tool: z.ZodType<ToolEntry> = z
  .strictObject({
    id: toolName().describe('The name that nodes use.'),
    server: name(64).describe('One of servers.'),
    tool: text(256).describe('Its name at the server.'),
    timeout_ms: positiveMs.exactOptional().describe('Hard limit on one attempt. Default 30000.'),
    idle_timeout_ms: positiveMs
      .exactOptional()
      .describe('An attempt that makes no progress for this long times out. Off by default.'),
    retry_policy: retryEntrySchema.exactOptional(),
    circuit_breaker: z
      .union([breakerEntrySchema, z.literal(false)])
      .exactOptional()
      .describe('When the tool is given a rest. false: never.'),
    classification: z
      .record(text(128), z.enum(['transient', 'permanent']))
      .exactOptional()
      .describe('A status, code or error kind and its class here: { "503": permanent }.'),
    alternatives: z
      .array(toolName())
      .max(16)
      .exactOptional()
      .describe('Tools to try in order, with the same input, when this one fails for good.'),
    effects: z
      .enum(['read', 'mutating'])
      .exactOptional()
      .describe(
        'A mutating tool is not repeated when it may have taken effect. Default: read where its server says so, else mutating.',
      ),
    verify: verifyEntrySchema.exactOptional(),
    compensate: compensateEntrySchema.exactOptional(),
    faults: faults.exactOptional(),
  })
  .describe(
    'A tool of a server that has a policy or another name. Others need no entry: a node names them <server>.<tool>.',
  );

const node: z.ZodType<NodeEntry> = z
  .strictObject({
    id: name(64).describe('Its name in needs, references and results.'),
    tool: toolName().describe('The id of a tool, or <server>.<tool>.'),
    input: z
      .union(
        [
          z.record(z.string(), z.unknown()),
          z
            .string()
            .max(65_536)
            .regex(/^\$\{[^{}]*\}$/),
        ],
        { error: 'must be a mapping, or one reference such as ${flights}' },
      )
      .exactOptional()
      .describe(
        'The tool’s arguments. ${flights} is the value of the node flights, ${flights.items[0].id} a part of it; $${ is a plain ${.',
      ),
    needs: z
      .array(name(64))
      .max(NODES_MAX)
      .exactOptional()
      .describe('Nodes that settle before this one starts, and whose values it may refer to.'),
    optional: z.boolean().exactOptional().describe('May be left out without harm to the turn.'),
    default: z
      .unknown()
      .exactOptional()
      .describe('Stands in for the value of a need that failed, so that this node runs all the same.'),
    compensate: undoEntrySchema.exactOptional(),
  })
  .describe('A call.');

const turn: z.ZodType<TurnEntry> = z
  .strictObject({
    timeout_ms: positiveMs
      .exactOptional()
      .describe('When the turn settles at the latest, with what it has. Default 300000.'),
    on_deadline: z
      .enum(['detach', 'abort'])
      .exactOptional()
      .describe(
        'What happens to running calls then: they finish in the background (until the command ends), or are stopped. Default detach.',
      ),
    concurrency: count(1, NODES_MAX).exactOptional().describe('How many calls run at a time. Default: no limit.'),
    on_failure: z
      .enum(['keep', 'compensate'])
      .exactOptional()
      .describe('compensate: a turn that fails undoes what its calls did, in reverse order. Default keep.'),
    nodes: z.array(node).min(1).max(NODES_MAX).describe('The calls. Those that need nothing start at once, together.'),
  })
  .describe('The calls to make, what they need of each other, and how long all of it may take.');

/** What a plan file may hold. Keys are the seeds' snake_case; a key that is not here is refused. */
export const planFileSchema: z.ZodType<PlanFile> = z
  .strictObject({
    profile: z
      .enum(['interactive', 'resilient'])
      .exactOptional()
      .describe(
        'Where policies start from: quick, for a person who waits (default), or patient, for work in the background.',
      ),
    servers: z.record(serverName(), serverEntrySchema).exactOptional().describe('MCP servers by name.'),
    tools: z.array(tool).max(TOOLS_MAX).exactOptional(),
    turn,
  })
  .meta({ title: 'spillway plan', description: 'A turn of tool calls for `spillway run`.' });
