import type { ApprovalRequest } from '../contract/gate/approval.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import { approvalsIn, type AnswerReport, type ApprovalsInStore } from '../gate/answers.ts';
import { redactorOf } from '../policy/redact/values.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { APPROVE_HELP, parseApprove, type ApproveCommand } from './arguments/approve.ts';
import { openStore } from './store/open.ts';
import { EXIT, type CommandContext } from './context.ts';
import { table } from './show/table.ts';
import { duration, messageLine, plain } from './show/text.ts';

const { value: shown } = redactorOf();
/** Its input was kept without secrets; a session or a tenant is whatever a host calls it. */
const requestShown = (request: ApprovalRequest): ApprovalRequest => shown(request) as ApprovalRequest;

/** Who asks, as far as that is known. */
const whoseOf = ({ tenant, session, actor }: ApprovalRequest): string =>
  [tenant, session, actor].filter((name) => name !== undefined).join(' / ');

/** What would run, as one line: nothing of an input drives the terminal. */
const inputLine = ({ input }: ApprovalRequest): string => messageLine(JSON.stringify(input) ?? '');

const listed = (pending: readonly ApprovalRequest[], nowMs: number): string => {
  if (pending.length === 0) return 'nobody waits for an approval';
  const rows = pending.map((request) => [
    request.id,
    request.toolName,
    request.cause === 'uncertain' ? 'may have run already' : '',
    whoseOf(request),
    duration(Math.max(0, nowMs - request.askedAtMs)),
    duration(Math.max(0, request.expiresAtMs - nowMs)),
    inputLine(request),
  ]);
  return table(['id', 'tool', '', 'for', 'asked', 'left', 'input'], rows).join('\n');
};

const answerLine = (id: string, { counts, state, request }: AnswerReport): string => {
  if (request === undefined)
    return `there is no question ${plain(id)}, or its time is over; spillway approve lists them`;
  const what = `${plain(request.toolName)} ${inputLine(request)}`;
  return counts ? `${state}: ${what}` : `too late, it is ${state}: ${what}`;
};

const perform = async (
  { id, approved, by, reason, json }: ApproveCommand,
  questions: ApprovalsInStore,
  { stdout, stderr, runtime }: CommandContext,
): Promise<number> => {
  if (id === undefined) {
    const pending = (await questions.pending()).map(requestShown);
    stdout.write(
      json ? pending.map((request) => ndjsonLine(request)).join('') : `${listed(pending, runtime.wallNow())}\n`,
    );
    return EXIT.fine;
  }
  const words = { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
  const { request, ...answer } = await questions.answer(id, { approved, ...words });
  const report = request === undefined ? answer : { ...answer, request: requestShown(request) };
  if (json) stdout.write(ndjsonLine(report));
  else if (report.counts) stdout.write(`${answerLine(id, report)}\n`);
  else stderr.write(`spillway: ${answerLine(id, report)}\n`);
  return report.counts ? EXIT.fine : EXIT.failed;
};

/**
 * Runs `spillway approve`: lists what waits for a person in a store, or answers it.
 * @returns the exit code
 * @throws UsageError
 */
export async function runApprove(args: readonly string[], context: CommandContext): Promise<number> {
  const command = parseApprove(args, context.env);
  if (command === undefined) {
    context.stdout.write(APPROVE_HELP);
    return EXIT.fine;
  }
  const { store, close } = await openStore(command.store);
  try {
    return await perform(command, approvalsIn(store, context.runtime), context);
  } catch (error) {
    if (!isToolExecutionError(error)) throw error;
    context.stderr.write(`spillway: ${messageLine(error.message)}\n`);
    return EXIT.failed;
  } finally {
    await close();
  }
}
