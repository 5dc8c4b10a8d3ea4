import * as z from 'zod';
import { positiveMs } from './policy-entry.ts';

/** How an MCP server is signed in at: by OAuth's client credentials, or by a person, with `spillway mcp login`. */
export interface OAuthEntry {
  sign_in?: 'person';
  client_id?: string;
  client_secret_env?: string;
  issuer?: string;
  scope?: string;
}

/** A server of a plan file: one that is started has `command`, one that is reached over HTTP has `url`. */
export interface ServerEntry {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  headers_from_env?: Record<string, string>;
  oauth?: OAuthEntry;
  start_timeout_ms?: number;
}

type Wrong = readonly [key: keyof ServerEntry, message: string];

const text = (max: number): z.ZodString => z.string().min(1).max(max);
export const serverName = (): z.ZodString =>
  z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9_-]+$/, { error: 'must be made of letters, digits, _ and - only' });
const OF_COMMANDS = ['args', 'env', 'cwd'] as const;
const OF_URLS = ['headers', 'headers_from_env', 'oauth'] as const;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,256}$/;

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
      return `are taken as they are written: for the \${...} of ${name} name a variable in headers_from_env`;
    if (!HEADER_NAME.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
      return `must be names and texts that HTTP allows; ${JSON.stringify(name.slice(0, 64))} is not`;
  }
  return undefined;
};

/** A secret goes to one issuer, and a program without a person needs one. */
const oauthProblem = ({ sign_in, client_id, client_secret_env, issuer }: OAuthEntry): string | undefined => {
  const isWhole = client_id !== undefined && client_secret_env !== undefined && issuer !== undefined;
  if (isWhole || (sign_in !== undefined && client_secret_env === undefined)) return undefined;
  return sign_in === undefined
    ? 'needs client_id, client_secret_env and issuer, or sign_in: person'
    : 'needs client_id and issuer beside client_secret_env';
};

/** What the keys of a server must be to each other. */
const serverProblems = ({ command, url, ...entry }: ServerEntry): Wrong[] => {
  const problems: Wrong[] = [];
  const wrong = (key: keyof ServerEntry, message: string | undefined): void => {
    if (message !== undefined) problems.push([key, message]);
  };
  if (url === undefined) {
    if (command === undefined)
      wrong('command', 'is missing; give command for a server to start, or url for one over HTTP');
    for (const key of OF_URLS)
      if (entry[key] !== undefined)
        wrong(key, 'can be given to a server over HTTP only; remove it, or give url in place of command');
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
  wrong('headers', headersProblem(entry.headers ?? {}));
  wrong('oauth', entry.oauth === undefined ? undefined : oauthProblem(entry.oauth));
  return problems;
};

/** The name of a variable of the environment. */
const variable = z.string().regex(/^[A-Za-z_]\w{0,255}$/, 'must be the name of a variable');

export const serverEntrySchema: z.ZodType<ServerEntry> = z
  .strictObject({
    command: text(4096)
      .exactOptional()
      .describe(
        'The program. A bare name is looked for in node_modules/.bin, from the server’s folder upward, then ' +
          'in PATH; a relative path starts at the plan file’s folder.',
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
    headers_from_env: z
      .record(z.string().regex(HEADER_NAME, 'must be a name that HTTP allows'), variable)
      .exactOptional()
      .describe('Headers whose whole value is in a variable of the environment, by the name of that variable.'),
    oauth: z
      .strictObject({
        sign_in: z
          .literal('person')
          .exactOptional()
          .describe('A person signs in, by spillway mcp login. Without this key: OAuth’s client credentials.'),
        client_id: text(1024)
          .exactOptional()
          .describe('The client that the issuer knows. For a person it can register one by itself.'),
        client_secret_env: variable.exactOptional().describe('The name of the variable that holds the secret.'),
        issuer: text(4096).exactOptional().describe('The only server that may be given the secret.'),
        scope: text(4096).exactOptional(),
      })
      .exactOptional()
      .describe('A sign-in by OAuth, where the server asks for one: of this program, or of a person.'),
    start_timeout_ms: positiveMs
      .exactOptional()
      .describe('How long it may take to start, or connect, and list its tools. Default 30000.'),
  })
  // The code is that of a key that may not be there: its message is shown alone, without the value, which may be a
  // secret.
  .superRefine((entry, context) => {
    for (const [key, message] of serverProblems(entry))
      context.addIssue({ code: 'invalid_type', expected: 'never', message, path: [key], input: undefined });
  })
  .meta({
    description: 'An MCP server: started over stdio with command, or reached over HTTP at url.',
    oneOf: [{ required: ['command'] }, { required: ['url'] }],
  });
