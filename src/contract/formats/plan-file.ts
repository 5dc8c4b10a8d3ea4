import * as z from 'zod';
import type { Classification } from '../error-kind.ts';
import type { ApprovalWhen } from '../gate/approval.ts';
import { budgetField, costField, needsApprovalField, type BudgetEntry } from './gate-entry.ts';
import {
  COUNT_MAX,
  breakerField,
  classificationField,
  count,
  durationMs,
  positiveMs,
  retryEntrySchema,
  type BreakerPolicyEntry,
  type RetryEntry,
} from './policy-entry.ts';
import type { Effects, ProfileName } from '../policy.ts';
import { serverEntrySchema, serverName, type ServerEntry } from './server-entry.ts';
import {
  compensateEntrySchema,
  undoEntrySchema,
  verifyEntrySchema,
  type CompensateEntry,
  type UndoEntry,
  type VerifyEntry,
} from './settle-entry.ts';

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
  circuit_breaker?: BreakerPolicyEntry | false;
  classification?: Record<string, Classification>;
  alternatives?: string[];
  effects?: Effects;
  verify?: VerifyEntry;
  compensate?: CompensateEntry | false;
  needs_approval?: boolean | ApprovalWhen;
  cost?: number;
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
  needs_approval?: boolean | ApprovalWhen;
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
  budget?: BudgetEntry[];
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
export const toolName = (): z.ZodString =>
  z
    .string()
    .max(256)
    .regex(/^[A-Za-z0-9_./:-]+$/, { error: 'must be made of letters, digits and _ - . / : only' });

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
    circuit_breaker: breakerField,
    classification: classificationField,
    alternatives: z
      .array(toolName())
      .max(16)
      .exactOptional()
      .describe('Tools to try in order, with the same input, when this one fails for good.'),
    effects: z
      .enum(['read', 'mutating'])
      .exactOptional()
      .describe(
        'A mutating tool is not repeated when it may have taken effect. Default: read where its server says ' +
          'so, else mutating.',
      ),
    verify: verifyEntrySchema.exactOptional(),
    compensate: compensateEntrySchema.exactOptional(),
    needs_approval: needsApprovalField,
    cost: costField,
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
        'The tool’s arguments. ${flights} is the value of the node flights, ${flights.items[0].id} a part of ' +
          'it; $${ is a plain ${.',
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
    needs_approval: needsApprovalField,
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
        'What happens to running calls then: they finish in the background (until the command ends), or are ' +
          'stopped. Default detach.',
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
    budget: budgetField,
    turn,
  })
  .meta({ title: 'spillway plan', description: 'A turn of tool calls for `spillway run`.' });
