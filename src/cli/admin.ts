import { ndjsonLine } from '../sinks/ndjson.ts';
import { ADMIN_HELP, parseAdmin, type AdminCommand } from './arguments/admin.ts';
import { readAnswer } from './admin/answer.ts';
import { adminReport } from './admin/report.ts';
import type { Output } from './show/terminal.ts';
import { messageLine, plain } from './show/text.ts';

/** Where the command prints, what it reads beside its arguments, and what ends it early. */
export interface AdminContext {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const EXIT = { done: 0, refused: 1 } as const;
/** A flush of many thousand results takes a while. */
const ANSWER_TIMEOUT_MS = 120_000;
const ANSWER_CHARACTERS_MAX = 64 * 1_048_576;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Why there was no answer: the code of what failed, never its text, which may quote what was sent. */
const whyNot = (thrown: unknown): string => {
  const { name, cause } = thrown as { readonly name?: unknown; readonly cause?: { readonly code?: unknown } };
  if (name === 'TimeoutError') return `no answer within ${ANSWER_TIMEOUT_MS / 1000} s`;
  if (name === 'AbortError') return 'interrupted';
  return typeof cause?.code === 'string' ? cause.code : 'no connection, or a redirect, which is not followed';
};

const ask = async (
  { url, token, order }: AdminCommand,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> => {
  const response = await fetch(url, {
    method: order === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(order === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(order === undefined ? {} : { body: JSON.stringify(order) }),
    // The token is for this server only.
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
  });
  if (Number(response.headers.get('content-length') ?? 0) > ANSWER_CHARACTERS_MAX)
    return { status: response.status, text: '' };
  return { status: response.status, text: await response.text() };
};

/**
 * Runs `spillway admin`: asks the admin page of a running program, and prints what it says.
 * @returns the exit code: 0 done, 1 refused or not reached
 * @throws UsageError
 */
export async function runAdmin(
  args: readonly string[],
  { stdout, stderr, env, signal }: AdminContext,
): Promise<number> {
  const command = parseAdmin(args, env);
  if (command === undefined) {
    stdout.write(ADMIN_HELP);
    return EXIT.done;
  }
  const { url } = command;
  const refused = (why: string): number => {
    stderr.write(`spillway: ${messageLine(why)}\n`);
    return EXIT.refused;
  };
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    stderr.write(`spillway: warning: the token goes to ${url.host} over plain HTTP; put TLS in front of it\n`);
  let reply: { readonly status: number; readonly text: string };
  try {
    reply = await ask(command, signal);
  } catch (error) {
    return refused(`${url.origin} cannot be reached: ${whyNot(error)}`);
  }
  const read = readAnswer(reply.text);
  if (reply.status !== 200)
    return refused(
      read?.answer.error === undefined
        ? `${url.origin} answered ${reply.status}, and not as an admin page does`
        : `refused (${reply.status}): ${plain(read.answer.error.message)}`,
    );
  if (read === undefined || (read.answer.mode ?? read.answer.action) === undefined)
    return refused(`${url.origin} answered, and not as an admin page does; check --url`);
  stdout.write(command.json ? ndjsonLine(read.json) : `${adminReport(read.answer)}\n`);
  return EXIT.done;
}
