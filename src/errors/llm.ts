import type { Classification } from '../contract/error-kind.ts';
import { LLM_ERROR_KIND_CLASSES, LlmError, isLlmError, type LlmErrorKind } from '../contract/llm-error.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { classOfStructure } from './class.ts';
import { classOfReading, readError, toTyped, type Reading } from './reading.ts';
import { LLM_KINDS, type Meaning } from './text/sense.ts';
import { read, readStructure } from './structure.ts';

const wallNow = (): number => liveRuntime.wallNow();

/**
 * The kind of what a provider threw and nothing explains: the model's failure, which asking again the same way does not
 * cure.
 */
const kindOf = ({ status, sense }: Reading): LlmErrorKind => {
  if (status !== undefined && status >= 500) return 'network_error';
  return sense === undefined ? 'model_error' : LLM_KINDS[sense];
};

/** Quota and model errors are permanent unless structure says otherwise. */
const classOf = (reading: Reading): Classification => {
  const { status, code, structure } = reading;
  const structural =
    classOfStructure({ status, code, retryAfterMs: structure.retryAfterMs })?.classification ?? classOfReading(reading);
  return structural ?? LLM_ERROR_KIND_CLASSES[kindOf(reading)];
};

/** True for a model error of ours that holds what one holds: another copy of the package may know other kinds. */
const isWhole = (thrown: unknown): thrown is LlmError => {
  if (!isLlmError(thrown)) return false;
  const kind = read(thrown, 'kind');
  const classification = read(thrown, 'classification');
  return (
    typeof kind === 'string' &&
    Object.hasOwn(LLM_ERROR_KIND_CLASSES, kind) &&
    (classification === 'transient' || classification === 'permanent') &&
    typeof read(thrown, 'message') === 'string'
  );
};

/**
 * Gives whatever a model call threw its kind: the only place where a provider's message is read. Structured fields come
 * first: the status, the code or `error.type`, the name, `retry-after` and `retry-after-ms`; then the words. An
 * `LlmError` passes unchanged. Never throws.
 *
 * @param thrown what an SDK threw, a string, null, anything
 * @param wallNow the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * toLlmError(Object.assign(new Error('Overloaded'), { status: 529 })).kind; // 'network_error'
 */
export function toLlmError(thrown: unknown, now: () => number = wallNow): LlmError {
  if (isWhole(thrown)) return thrown;
  const reading = readError(thrown, now, 'llm');
  const { structure, status, code } = reading;
  return new LlmError(kindOf(reading), structure.message, {
    classification: classOf(reading),
    retryAfterMs: structure.retryAfterMs,
    status,
    code,
    cause: thrown,
  });
}

/**
 * A model's error where a tool's is wanted. One that we made is read again from what was thrown: an abort is `canceled`
 * there.
 */
export function llmThrown(thrown: unknown, now: () => number = wallNow): ToolExecutionError {
  const cause = isLlmError(thrown) ? read(thrown, 'cause') : undefined;
  if (cause !== undefined && !isLlmError(cause)) return fromReading(cause, now);
  return isWhole(thrown) ? fromLlmError(thrown) : fromReading(thrown, now);
}

const fromReading = (thrown: unknown, now: () => number): ToolExecutionError => {
  const reading = readError(thrown, now, 'llm');
  // Nothing explains it. That such failures are permanent is our own rule, and proves no more than words do.
  const unexplained = reading.status === undefined && reading.structure.retriable === undefined;
  const unknown: Meaning = {
    kind: 'execution_error',
    options: { classification: classOf(reading), worded: unexplained },
  };
  return toTyped(reading, thrown, unknown);
};

const fromLlmError = (error: LlmError): ToolExecutionError => {
  const { kind, classification, message } = error;
  const { status, code, retryAfterMs } = readStructure(error, wallNow);
  const options = { status, code, retryAfterMs, classification, cause: error };
  if (kind === 'timeout') return new ToolExecutionError('timeout', message, { ...options, uncertain: true });
  const lost = kind === 'network_error' && status === undefined;
  return new ToolExecutionError(lost ? 'transport_error' : 'execution_error', message, { ...options, uncertain: lost });
};
