import { TOOL_ERROR_KIND_DESCRIPTIONS, TOOL_ERROR_KIND_TRAITS, type ToolErrorKind } from '../contract/error-kind.ts';
import { isLlmError } from '../contract/llm-error.ts';
import { ToolExecutionError, isOwnToolError, isToolExecutionError } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { asHearsay, isHearsay } from './text/hearsay.ts';
import { llmThrown } from './llm.ts';
import { readError, toTyped } from './reading.ts';
import type { Meaning } from './text/sense.ts';
import { read } from './structure.ts';

export const isToolErrorKind = (kind: unknown): kind is ToolErrorKind =>
  typeof kind === 'string' && Object.hasOwn(TOOL_ERROR_KIND_TRAITS, kind);

/** What the fields of a typed error are. */
const FIELD_TYPES: Readonly<Record<string, readonly string[]>> = {
  kind: ['string'],
  message: ['string'],
  code: ['string', 'undefined'],
  status: ['number', 'undefined'],
  retryAfterMs: ['number', 'undefined'],
  uncertain: ['boolean'],
  executed: ['boolean'],
  classification: ['string', 'undefined'],
  worded: ['boolean'],
  safeMessage: ['string', 'undefined'],
};

const FIELDS = /* @__PURE__ */ Object.entries(FIELD_TYPES);

/**
 * True for an error that this copy of the package made and whose fields are values still. The brand is no proof, since
 * any object can have it; and what was read once proves nothing of the next time, since a getter or a proxy may give
 * something else then, or throw.
 */
export function isTyped(thrown: unknown): thrown is ToolExecutionError {
  if (!isOwnToolError(thrown)) return false;
  const holds = ([field, types]: readonly [string, readonly string[]]): boolean => {
    const property = Object.getOwnPropertyDescriptor(thrown, field);
    // An error that was made without a message inherits the empty one.
    return property === undefined ? field === 'message' : 'value' in property && types.includes(typeof property.value);
  };
  return FIELDS.every(holds) && isToolErrorKind(thrown.kind);
}

const textOf = (thrown: unknown, name: string): string | undefined => {
  const value = read(thrown, name);
  return typeof value === 'string' ? value : undefined;
};
const numberOf = (thrown: unknown, name: string): number | undefined => {
  const value = read(thrown, name);
  return typeof value === 'number' ? value : undefined;
};
export const flagOf = (thrown: unknown, name: string): boolean | undefined => {
  const value = read(thrown, name);
  return typeof value === 'boolean' ? value : undefined;
};

/**
 * An error of another copy of the package, or an object that looks like one, made anew of what can be read of it;
 * `undefined` without a kind we know.
 */
const adopted = (thrown: unknown): ToolExecutionError | undefined => {
  const kind = isToolExecutionError(thrown) ? textOf(thrown, 'kind') : undefined;
  if (!isToolErrorKind(kind)) return undefined;
  const classification = textOf(thrown, 'classification');
  const error = new ToolExecutionError(kind, textOf(thrown, 'message') ?? TOOL_ERROR_KIND_DESCRIPTIONS[kind], {
    code: textOf(thrown, 'code'),
    status: numberOf(thrown, 'status'),
    retryAfterMs: numberOf(thrown, 'retryAfterMs'),
    uncertain: flagOf(thrown, 'uncertain'),
    executed: flagOf(thrown, 'executed'),
    classification: classification === 'transient' || classification === 'permanent' ? classification : undefined,
    worded: flagOf(thrown, 'worded'),
    safeMessage: textOf(thrown, 'safeMessage'),
    details: read(thrown, 'details'),
    cause: thrown,
  });
  return isHearsay(thrown as ToolExecutionError) ? asHearsay(error) : error;
};

/** The kind of what nothing explains and a tool threw: the tool ran. */
const unknownOfTool: Meaning = { kind: 'execution_error', options: {} };
/** The kind of what nothing explains and no tool threw: a fault of the process. */
const unknownOfOurs: Meaning = { kind: 'internal_error', options: {} };

const wallNow = (): number => liveRuntime.wallNow();

/**
 * Gives whatever a tool threw its kind. What a tool threw is read nowhere else.
 * A `ToolExecutionError` passes unchanged. Never throws, whatever was thrown.
 *
 * @param thrown anything: an error, a string, null, a getter that throws, a cyclic cause
 * @param now the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * toToolExecutionError(new Error('Rate limit exceeded (429)')).status; // 429
 */
export function toToolExecutionError(thrown: unknown, now: () => number = wallNow): ToolExecutionError {
  return toolThrown(thrown, unknownOfTool, now);
}

/** `toToolExecutionError` for what Node threw outside of any tool: what nothing explains is an `internal_error`. */
export function nodeThrown(thrown: unknown, now: () => number = wallNow): ToolExecutionError {
  return toolThrown(thrown, unknownOfOurs, now);
}

const toolThrown = (thrown: unknown, unknown: Meaning, now: () => number): ToolExecutionError => {
  if (isTyped(thrown)) return thrown;
  const ours = adopted(thrown);
  if (ours !== undefined) return ours;
  return isLlmError(thrown) ? llmThrown(thrown, now) : toTyped(readError(thrown, now, 'tool'), thrown, unknown);
};
