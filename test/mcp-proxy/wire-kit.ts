import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { NODE, ROOT } from './kit.ts';

export type Json = Readonly<Record<string, unknown>>;
export type Command = readonly [string, ...string[]];

/** A server spoken to line by line, without any SDK between. */
export interface RawServer {
  /** Sends a request and waits for what answers it. */
  readonly ask: (method: string, params?: Json) => Promise<Json>;
  readonly say: (message: Json) => void;
  /** Everything else that the server said. */
  readonly said: readonly Json[];
  readonly end: () => Promise<number | null>;
}

export interface RawOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What is answered to a question of the server. */
  readonly answer?: (method: string, params: Json) => Json;
  /** Told what the server writes on stderr. */
  readonly heard?: (text: string) => void;
}

export const MAIN: string = join(ROOT, 'src/cli/main.ts');

/** The same server behind the command. */
export const behind = (command: Command, ...options: readonly string[]): Command => [
  NODE,
  MAIN,
  'mcp',
  ...options,
  '--',
  ...command,
];

export function rawServer([program, ...args]: Command, { env, cwd, answer, heard }: RawOptions = {}): RawServer {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env }, cwd });
  child.stderr.setEncoding('utf8').on('data', (text: string) => heard?.(text));
  const waiting = new Map<unknown, (answered: Json) => void>();
  const said: Json[] = [];
  const say = (message: Json): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let last = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line) as Json;
    const resolve = 'method' in message ? undefined : waiting.get(message['id']);
    if (resolve !== undefined) return resolve(message);
    // Ids of questions are their asker's own.
    said.push('id' in message ? { ...message, id: 'asked' } : message);
    const method = String(message['method']);
    if ('id' in message && answer !== undefined)
      say({ id: message['id'], result: answer(method, (message['params'] ?? {}) as Json) });
  });
  return {
    said,
    say,
    ask: (method, params) =>
      new Promise((resolve) => {
        last++;
        waiting.set(last, resolve);
        say({ id: last, method, ...(params === undefined ? {} : { params }) });
      }),
    end: () => {
      child.stdin.end();
      return ended;
    },
  };
}

/** A step of a conversation: a request, or with a name that begins so, a notification. */
export type Step = readonly [method: string, params?: Json];

export interface Conversation {
  readonly answers: readonly Json[];
  readonly said: readonly Json[];
}

/** One step after the other, each once the one before is answered. */
export async function conversation(server: RawServer, steps: readonly Step[]): Promise<Conversation> {
  const answers: Json[] = [];
  for (const [method, params] of steps) {
    if (method.startsWith('notifications/')) server.say({ method, ...(params === undefined ? {} : { params }) });
    else answers.push(await server.ask(method, params));
  }
  await server.end();
  return { answers, said: server.said };
}

export const opening = (capabilities: Json = {}, protocolVersion = '2025-11-25'): readonly Step[] => [
  ['initialize', { protocolVersion, capabilities, clientInfo: { name: 'raw', version: '1' } }],
  ['notifications/initialized'],
];
export const calls = (name: string, input: Json, meta?: Json): Step => [
  'tools/call',
  { name, arguments: input, ...(meta === undefined ? {} : { _meta: meta }) },
];
