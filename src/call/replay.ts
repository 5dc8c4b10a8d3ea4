import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { DedupePolicy } from '../contract/policy.ts';
import type { DedupeExecution, DedupeFailure, DedupeOutcome, DedupeReading, DedupeRecord } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../errors/structure.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { given } from '../policy/check.ts';
import { PAYLOAD_MAX_CHARS } from '../policy/profile.ts';
import { PAUSED } from '../layer/foreign.ts';
import type { CallOutcome, History } from './result.ts';

/** What a record keeps of a result: all that another call of the same key gets to see. */
type StoredResult = Pick<ToolResultEnvelope, 'status' | 'toolName' | 'output' | 'error' | 'verified'> & {
  /** Of an effect that a turn may undo: the turns that rely on it. */
  readonly owners?: readonly string[] | undefined;
  /** Of an uncertain failure: its work had stopped, so that what is not found later was not done. */
  readonly hasStopped?: boolean | undefined;
};

const failureOf = (code: string, message: string, terminal: boolean, uncertain: boolean): DedupeFailure =>
  given({ code, message, terminal, shouldRetriable: !terminal, uncertain: uncertain ? (true as const) : undefined });

/** What a record keeps beside the result. */
interface RecordedBeside {
  /** The turn that may undo what the call did. */
  readonly owner?: string | undefined;
  /** Nothing of the call's work is under way any more. */
  readonly hasStopped?: boolean | undefined;
}

/** The result as JSON text, or why there is none. */
const payloadOf = ({
  status,
  toolName,
  output,
  error,
  verified,
  owners,
  hasStopped,
}: StoredResult): { readonly payload?: string; readonly problem?: string } => {
  try {
    const payload = JSON.stringify({ status, toolName, output, error, verified, owners, hasStopped });
    return payload.length <= PAYLOAD_MAX_CHARS
      ? { payload }
      : { problem: `it is longer than ${PAYLOAD_MAX_CHARS} characters` };
  } catch (thrown) {
    return { problem: `it is no JSON: ${toToolExecutionError(thrown).message}` };
  }
};

/**
 * What is recorded of a call that ended, or `undefined` when nothing was attempted, or it only paused: then there is
 * nothing to remember, and the key is free.
 *
 * @param result absent when no caller got one
 * @param kind how it failed, if it did
 */
export function outcomeOf(
  { attempts, execution }: { readonly attempts: number; readonly execution: DedupeExecution | undefined },
  { doneTtlMs, failedTtlMs }: Required<Pick<DedupePolicy, 'doneTtlMs' | 'failedTtlMs'>>,
  result: ToolResultEnvelope | undefined,
  kind: ToolErrorKind | undefined,
  { owner, hasStopped }: RecordedBeside = {},
): DedupeOutcome | undefined {
  // What another process had begun was found to be done: that is an outcome, too. What paused is called again by its
  // framework, under the same key, and then it runs.
  if ((attempts === 0 && result?.verified !== 'done') || read(result?.output?.content, PAUSED)) return undefined;
  const made = given({ execution });
  if (kind === 'canceled') {
    return {
      state: 'cancelled',
      ttlMs: doneTtlMs,
      error: failureOf('canceled', 'The caller canceled the call while it ran', true, true),
      ...made,
    };
  }
  if (result === undefined) return undefined;
  const { payload, problem } = payloadOf({
    ...result,
    owners: owner === undefined ? undefined : [owner],
    hasStopped: hasStopped === true ? true : undefined,
  });
  if (result.error !== undefined) {
    const { code, message, terminal, uncertain } = result.error;
    return {
      state: 'failed',
      ttlMs: failedTtlMs,
      error: failureOf(code, message, terminal, uncertain === true),
      ...given({ payload, execution }),
    };
  }
  if (payload !== undefined) return { state: 'done', ttlMs: doneTtlMs, payload, ...made };
  const message = `The tool ran under this key and its output cannot be replayed: ${problem}`;
  return { state: 'failed', ttlMs: doneTtlMs, error: failureOf('internal_error', message, true, false), ...made };
}

const keptOf = (payload = '{}'): Partial<StoredResult> => {
  try {
    const kept: unknown = JSON.parse(payload);
    if (typeof kept === 'object' && kept !== null) return kept;
  } catch {
    // The error below says so.
  }
  throw new ToolExecutionError(
    'store_unavailable',
    'What the store holds under this idempotency key cannot be read; clear the key to run the call again',
    {
      classification: 'permanent',
    },
  );
};

/** Stands in the payload of every record that names those who rely on its effect. */
export const NAMES_OWNERS = '"owners":[';

/** The turns that rely on the effect that a record tells of; `undefined` where none may undo it. */
export const ownersIn = ({ payload }: DedupeRecord): readonly string[] | undefined => {
  const { owners } = keptOf(payload);
  return Array.isArray(owners) ? owners : undefined;
};

/** A record's result, with those who rely on it from now on. */
export const withOwners = ({ payload = '{}' }: DedupeRecord, owners: readonly string[]): string =>
  JSON.stringify({ ...keptOf(payload), owners });

/** The tool that gave a record's result, and what it gave. */
export const givenIn = (record: DedupeRecord): { readonly toolName: string; readonly output: unknown } => {
  const { toolName = record.tool, output } = keptOf(record.payload);
  return { toolName, output: output?.content };
};

/**
 * What another call's record gives to this one.
 * @throws `store_unavailable` for a record that was not written by this package
 */
export function replayOf(
  { record, atMs }: DedupeReading,
  matchedOn: 'inflight' | 'completed',
  keyFingerprint: string,
  history: History,
): CallOutcome {
  const ageMs = Math.max(0, atMs - record.updatedAtMs);
  const kept: Partial<StoredResult> = keptOf(record.payload);
  const common = {
    requestId: history.requestId,
    fromCache: true,
    cache: { matchedOn, ageMs, keyFingerprint },
    ...given({ verified: kept.verified }),
    toolName: kept.toolName ?? record.tool,
    durationMs: history.durationMs,
    attempts: history.attempts,
  };
  return record.state === 'done'
    ? { result: { ...common, status: 'success', output: { ...kept.output, content: kept.output?.content } } }
    : failureIn(record, kept, common);
}

const failureIn = (
  record: DedupeRecord,
  { error: kept, status, hasStopped }: Partial<StoredResult>,
  common: Omit<ToolResultEnvelope, 'status'>,
): CallOutcome => {
  const { code, message, terminal, shouldRetriable, uncertain } =
    record.error ?? failureOf('internal_error', 'The earlier call failed', true, false);
  const error = kept ?? given({ code, message, retriable: shouldRetriable, terminal, uncertain });
  return {
    result: { ...common, status: status ?? (terminal ? 'error' : 'retriable_error'), error },
    // The kind is what the record calls its code: written from one, by this or another version of this package.
    error: new ToolExecutionError(code as ToolErrorKind, message, {
      classification: terminal ? 'permanent' : 'transient',
      executed: false,
      uncertain: uncertain === true,
    }),
    ...(hasStopped === true ? { hasStopped } : {}),
  };
};
