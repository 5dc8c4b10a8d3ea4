import { TOOL_ERROR_KIND_MEANINGS } from '../contract/error-kind.ts';
import { isLlmError } from '../contract/llm-error.ts';
import { isToolExecutionError, type ToolExecutionError } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { llmThrown } from './llm.ts';
import { readError, toTyped } from './reading.ts';
import type { Meaning } from './sense.ts';
import { read } from './structure.ts';

const isToolErrorKind = (kind: unknown): boolean => typeof kind === 'string' && Object.hasOwn(TOOL_ERROR_KIND_MEANINGS, kind);

/** True for an error of ours whose kind this copy of the package knows: another copy may know others. */
export function isTyped(thrown: unknown): thrown is ToolExecutionError {
  return isToolExecutionError(thrown) && isToolErrorKind(read(thrown, 'kind'));
}

/** A tool threw it, so the tool ran. */
const unknownOfTool: Meaning = { kind: 'execution_error', options: {} };
/** No tool threw it: it is a fault of the process. */
const unknownOfOurs: Meaning = { kind: 'internal_error', options: {} };

const wallNow = (): number => liveRuntime.wallNow();

/**
 * Gives whatever a tool threw its kind: the only place where a tool's message is read.
 * A `ToolExecutionError` passes unchanged. Never throws, whatever was thrown.
 *
 * @param thrown anything: an error, a string, null, a getter that throws, a cyclic cause
 * @param wallNow the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * toToolExecutionError(new Error('Rate limit exceeded (429)')).status; // 429
 */
export function toToolExecutionError(thrown: unknown, now: () => number = wallNow): ToolExecutionError {
  return toolThrown(thrown, unknownOfTool, now);
}

/** What Node threw outside any tool: the same but for what nobody explains. */
export function nodeThrown(thrown: unknown, now: () => number = wallNow): ToolExecutionError {
  return toolThrown(thrown, unknownOfOurs, now);
}

const toolThrown = (thrown: unknown, unknown: Meaning, now: () => number): ToolExecutionError => {
  if (isTyped(thrown)) return thrown;
  return isLlmError(thrown) ? llmThrown(thrown, now) : toTyped(readError(thrown, now, 'tool'), thrown, unknown);
};
