import { TOOL_ERROR_KINDS, TOOL_ERROR_KIND_TRAITS, type Classification, type ToolErrorKind } from './error-kind.ts';

/** Shared by every copy of this package in a process, so that errors are recognised across duplicate installs. */
const BRAND = Symbol.for('spillway.ToolExecutionError');

/**
 * The errors that this copy of the package has made. The brand is no proof: any object can have it, and so does a
 * proxy.
 */
const MADE = new WeakSet<object>();

/** What is known of a tool's failure beside its kind and message. */
export interface ToolExecutionErrorOptions {
  /** The failing party's own code: `ECONNRESET`, `insufficient_quota`, `-32602`. */
  readonly code?: string | undefined;
  /** The HTTP status, when the failure was an answered request. */
  readonly status?: number | undefined;
  /** How long the server asked to wait, in milliseconds. Negative or `NaN` means: do not retry. */
  readonly retryAfterMs?: number | undefined;
  /** The tool may have taken effect: it timed out or was aborted after it began, or its answer was lost. */
  readonly uncertain?: boolean | undefined;
  /** Whether the tool ran; by default what the kind means. */
  readonly executed?: boolean | undefined;
  /** The class, only where the entrance could decide it from the failure itself. */
  readonly classification?: Classification | undefined;
  /**
   * The class was read from words alone: it decides about a retry, and proves nothing about the dependency.
   * Default false.
   */
  readonly worded?: boolean | undefined;
  /** What was thrown, as `Error` keeps it. */
  readonly cause?: unknown;
  /** Facts for the host's logs. Never shown to a model. */
  readonly details?: unknown;
  /** A text that may be shown to a model verbatim. */
  readonly safeMessage?: string | undefined;
}

/**
 * Whether a tool ran, by the kind. A caller without types can name any kind, so an unknown one is refused with the
 * list.
 */
const executedBy = (kind: ToolErrorKind): boolean => {
  if (Object.hasOwn(TOOL_ERROR_KIND_TRAITS, kind)) return TOOL_ERROR_KIND_TRAITS[kind].executed;
  const shown = typeof kind === 'string' ? JSON.stringify((kind as string).slice(0, 64)) : typeof kind;
  throw new RangeError(
    `The kind of a ToolExecutionError must be one of ${TOOL_ERROR_KINDS.join(', ')}, not ${shown}; put a ` +
      `word of your own in \`code\``,
  );
};

/**
 * The one error a tool call fails with: a kind from a closed list, and what was known when it entered.
 *
 * @throws RangeError for a kind that is not in the list
 *
 * @example
 * throw new ToolExecutionError('execution_error', 'Invalid airport code: XYZ', { status: 400 });
 */
export class ToolExecutionError extends Error {
  /** Always `ToolExecutionError`. */
  override readonly name: string = 'ToolExecutionError';
  /** What went wrong, from the closed list. */
  readonly kind: ToolErrorKind;
  /** The failing party's own code: `ECONNRESET`, `insufficient_quota`, `-32602`. */
  readonly code: string | undefined;
  /** The HTTP status, when the failure was an answered request. */
  readonly status: number | undefined;
  /** How long the server asked to wait, in milliseconds. Negative or `NaN` means: do not retry. */
  readonly retryAfterMs: number | undefined;
  /** The tool may have taken effect. Default false. */
  readonly uncertain: boolean;
  /** Whether the tool ran: what was given, else what the kind means. */
  readonly executed: boolean;
  /** The class, where the failure itself told it at the entrance; else `classify` finds it. */
  readonly classification: Classification | undefined;
  /** The class was read from words alone, which proves nothing about the dependency. Default false. */
  readonly worded: boolean;
  /** Facts for the host's logs. Never shown to a model. */
  readonly details: unknown;
  /** A text that a model is shown verbatim in place of the kind's description. */
  readonly safeMessage: string | undefined;

  constructor(kind: ToolErrorKind, message: string, options: ToolExecutionErrorOptions = {}) {
    const executed = executedBy(kind);
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.code = options.code;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.uncertain = options.uncertain ?? false;
    this.executed = options.executed ?? executed;
    this.classification = options.classification;
    this.worded = options.worded ?? false;
    this.details = options.details;
    this.safeMessage = options.safeMessage;
    Object.defineProperty(this, BRAND, { value: true });
    MADE.add(this);
  }
}

/** What of an error decides whether it is tried again, and what it means to a breaker. */
export type DecisiveError = Pick<ToolExecutionError, 'kind' | 'executed' | 'uncertain' | 'retryAfterMs'>;

/** An error that was read: what it is, and whether it may be tried again. */
export interface ClassifiedError {
  readonly error: DecisiveError;
  readonly classification: Classification;
  /**
   * The rule that gave the class, where the reader has a name for it: `words` means to a breaker that nothing is
   * proved.
   */
  readonly rule?: string;
}

/**
 * Makes that of whatever was thrown, and never throws itself. `wallNow` is what an HTTP date in `Retry-After` is
 * compared with.
 */
export type ErrorReader = (thrown: unknown, wallNow: () => number) => ClassifiedError;

/** True for what this copy of the package has made, and for nothing that stands in for it. */
export function isOwnToolError(value: unknown): value is ToolExecutionError {
  return typeof value === 'object' && value !== null && MADE.has(value);
}

/** True for a `ToolExecutionError` of this or any other installed copy of the package. Never throws. */
export function isToolExecutionError(value: unknown): value is ToolExecutionError {
  try {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === true;
  } catch {
    return false;
  }
}
