import type {
  ApprovalStep,
  DedupeStep,
  ErrorReport,
  ToolEvent,
  TurnEvent,
  TurnOwnEvent,
} from '../../contract/event.ts';
import type { CompensationReason } from '../../contract/settle/compensate.ts';
import type { Progress } from '../../contract/tool.ts';
import type { VerifyFinding } from '../../contract/settle/verify.ts';
import { duration, messageLine, plain } from './text.ts';

const because = (message: string | undefined): string => (message === undefined ? '' : `: ${plain(message)}`);

const said = ({ kind, message, code, status }: ErrorReport): string => {
  const detail = code ?? status;
  return `${kind}${detail === undefined ? '' : ` ${detail}`}: ${plain(message)}`;
};

const escalation = ({ message, choices }: { readonly message: string; readonly choices: readonly string[] }): string =>
  `escalated: ${plain(message)}${choices.length === 0 ? '' : `; choices: ${choices.map(plain).join(', ')}`}`;

/** The others say nothing that the attempts and the end of the call do not. */
const DEDUPE_TEXTS: Readonly<Partial<Record<DedupeStep, string>>> = {
  taken_over: 'takes over from a call that lost its lease',
  waiting: 'waits for the same call',
  replayed: 'the result of the same call',
  conflict: 'its idempotency key was used with another input',
  busy: 'the same call runs',
  lease_lost: 'lost its lease',
  superseded: 'another holds its key; its own outcome is dropped',
  unrecorded: 'its outcome could not be stored',
  unprotected: 'runs without protection against duplicates',
};

const CAUSES: Readonly<Record<CompensationReason, string>> = {
  escalated: 'something required is missing',
  failed: 'the turn failed',
  canceled: 'the turn was canceled',
  deadline: 'the deadline passed',
  crashed: 'the process of the turn died',
};

const VERIFIED: Readonly<Record<VerifyFinding, string>> = {
  done: 'verified: it took effect',
  not_done: 'verified: it did not take effect',
  unknown: 'verified, and it is still not known whether it took effect',
};

const progressText = ({ progress, total, message }: Progress): string => {
  const done = progress === undefined ? '' : ` ${progress}${total === undefined ? '' : ` of ${total}`}`;
  return `progress${done}${message === undefined ? '' : `: ${plain(message)}`}`;
};

const APPROVALS: Readonly<Record<ApprovalStep, string>> = {
  asked: 'waits for a person to approve it',
  approved: 'approved',
  denied: 'not approved',
  expired: 'nobody approved it in time',
  withdrawn: 'the question to a person was withdrawn',
};

/** What a person or the host said. */
const askedText = (event: Extract<ToolEvent, { type: 'approval' | 'hook' }>): string => {
  const why = because(event.message);
  if (event.type === 'hook') return `${event.hook} ${event.outcome.replace('_', ' ')}${why}`;
  const { step, approvalId, by } = event;
  if (step === 'asked') return `${APPROVALS[step]}: ${plain(approvalId)}`;
  return `${APPROVALS[step]}${by === undefined ? '' : ` by ${plain(by)}`}${why}`;
};

const keyText = ({ step, ageMs, leaderCallId }: Extract<ToolEvent, { type: 'dedupe' }>): string | undefined => {
  const text = DEDUPE_TEXTS[step];
  const whose = step === 'taken_over' && leaderCallId !== undefined ? ` (${plain(leaderCallId)})` : '';
  return text === undefined ? undefined : `${text}${whose}${ageMs === undefined ? '' : `, ${duration(ageMs)} old`}`;
};

/** What its attempts do not say: why nobody asked for it, that nothing guards it, and what is taken for granted. */
const startText = ({
  mode,
  verifies,
  undoes,
  tool,
}: Extract<ToolEvent, { type: 'call_started' }>): string | undefined => {
  const parts = [
    verifies === undefined ? [] : `finds out about call ${plain(verifies)}`,
    undoes === undefined ? [] : `undoes call ${plain(undoes)}`,
    mode === undefined ? [] : `is not guarded: its switch says ${mode}`,
    tool?.presumed === true ? `is taken to be ${tool.effects}: nothing says what it does to the world` : [],
  ].flat();
  return parts.length === 0 ? undefined : parts.join('; ');
};

const succeededText = ({ toolName, attempt, durationMs }: Extract<ToolEvent, { type: 'attempt_succeeded' }>): string =>
  `${toolName} answered in ${duration(durationMs)}${attempt > 1 ? `, on attempt ${attempt}` : ''}`;

type FailedAttempt = Extract<ToolEvent, { type: 'attempt_failed' }>;

const failedText = ({ attempt, durationMs, error, classification }: FailedAttempt): string =>
  `attempt ${attempt} failed after ${duration(durationMs)}: ${said(error)} (${classification})`;

const callText = (event: ToolEvent): string | undefined => {
  switch (event.type) {
    case 'attempt_started':
      return `attempt ${event.attempt} of ${event.toolName}`;
    case 'attempt_succeeded':
      return succeededText(event);
    case 'attempt_failed':
      return failedText(event);
    case 'verified':
      return `${VERIFIED[event.finding]}${because(event.message)}`;
    case 'attempt_canceled':
      return `attempt ${event.attempt} canceled after ${duration(event.durationMs)}`;
    case 'rejected':
      return `not called: ${said(event.error)}`;
    case 'decision':
      return event.strategy === 'retry'
        ? `retry in ${duration(event.delayMs ?? 0)}`
        : `${event.strategy}: ${plain(event.reason)}`;
    case 'alternative_used':
      return `${plain(event.message)}: ${event.toolName} for ${event.from}`;
    case 'escalated':
      return escalation(event);
    case 'progress':
      return progressText(event.report);
    case 'dedupe':
      return keyText(event);
    case 'approval':
    case 'hook':
      return askedText(event);
    case 'shadow':
      return `would ${event.would.replace('_', ' ')}: ${plain(event.message)}`;
    case 'call_started':
      return startText(event);
    case 'settled':
      return (event.hooksMs ?? 0) < 1 ? undefined : `waited ${duration(event.hooksMs ?? 0)} for its hooks`;
    // What its node's end says already.
    case 'abandoned':
      return undefined;
  }
};

const turnText = (event: TurnOwnEvent): string | undefined => {
  switch (event.type) {
    case 'turn_started':
      return (
        `turn of ${event.nodes.length} ${event.nodes.length === 1 ? 'node' : 'nodes'}, ` +
        `${duration(event.timeoutMs)} at most${event.worker === undefined ? '' : `, at ${plain(event.worker)}`}`
      );
    case 'turn_moved':
      return `turn moved from ${plain(event.from)} to ${plain(event.to)} after ${duration(event.afterMs)}`;
    case 'turn_left':
      return 'turn goes on elsewhere';
    case 'node_started':
      return event.message;
    case 'node_settled':
      return `${event.state.replaceAll('_', ' ')}${because(event.message)}`;
    case 'compensation_started':
      return `undoes ${event.nodes.length} ${event.nodes.length === 1 ? 'node' : 'nodes'}: ${CAUSES[event.reason]}`;
    case 'node_verified':
      return `${VERIFIED[event.finding]}${because(event.message)}`;
    case 'node_compensated':
      return `${event.state === 'compensated' ? 'undone' : 'could not be undone'}${because(event.message)}`;
    case 'compensation_settled': {
      const { compensated, stays } = event.compensation;
      return `${compensated.length} undone${stays.length === 0 ? '' : `, ${stays.length} could not be`}`;
    }
    case 'deadline':
      return `deadline: ${event.unfinished.length} unfinished`;
    case 'escalated':
      return escalation(event);
    case 'abandoned':
      return 'turn abandoned';
    case 'settled':
      return `turn ${event.result.status}`;
  }
};

/** An event as a line of a log, without its time; nothing for one that says nothing new. */
export function eventLine(event: TurnEvent): string | undefined {
  const text = event.source === 'turn' ? turnText(event) : callText(event);
  if (text === undefined) return undefined;
  return 'nodeId' in event && event.nodeId !== undefined ? `${event.nodeId}: ${text}` : text;
}

/** An event as a line of a log, with the seconds since the start; nothing for one that says nothing new. */
export function timedLine(event: TurnEvent, startMs: number): string | undefined {
  const line = eventLine(event);
  return line === undefined
    ? undefined
    : `${`${((event.atMs - startMs) / 1000).toFixed(3)}s`.padStart(8)}  ${messageLine(line)}\n`;
}
