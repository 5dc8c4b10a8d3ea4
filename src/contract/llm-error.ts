import type { Classification } from './error-kind.ts';

/** Shared by every copy of this package in a process, so that errors are recognised across duplicate installs. */
const BRAND = Symbol.for('spillway.LlmError');

/** Every way a model's answer can fail. Asked in this order: a failure that is two of them is the first. */
export type LlmErrorKind = 'auth_error' | 'quota_exceeded' | 'rate_limit' | 'timeout' | 'network_error' | 'model_error';

/** What a kind says about asking the model again. */
export interface LlmErrorKindMeaning {
  /** Whether asking again can help. An error's own `classification` wins over it. */
  readonly retriable: boolean;
  /** A sentence for a person; it carries nothing from the error itself. */
  readonly description: string;
}

/** The class of every kind, in the order in which the kinds are asked: whether asking again can help. */
export const LLM_ERROR_KIND_CLASSES: Readonly<Record<LlmErrorKind, Classification>> = {
  auth_error: 'permanent',
  quota_exceeded: 'permanent',
  rate_limit: 'transient',
  timeout: 'transient',
  network_error: 'transient',
  model_error: 'permanent',
};

const meanings = (): Record<LlmErrorKind, LlmErrorKindMeaning> => {
  const meaning = (kind: LlmErrorKind, description: string): LlmErrorKindMeaning => ({
    retriable: LLM_ERROR_KIND_CLASSES[kind] === 'transient',
    description,
  });
  return {
    auth_error: meaning('auth_error', 'The provider did not accept the credentials, or they do not allow this.'),
    quota_exceeded: meaning('quota_exceeded', 'The account’s quota or credit is used up.'),
    rate_limit: meaning('rate_limit', 'The provider asks for fewer requests for a while.'),
    timeout: meaning('timeout', 'The model did not answer in time.'),
    network_error: meaning('network_error', 'The connection failed, or the provider did.'),
    model_error: meaning('model_error', 'The provider refused the request, or the model could not answer it.'),
  };
};

/** The meaning of every kind, in the same order. */
export const LLM_ERROR_KIND_MEANINGS: Readonly<Record<LlmErrorKind, LlmErrorKindMeaning>> = /* @__PURE__ */ meanings();

const classOf = (kind: LlmErrorKind): Classification => {
  if (Object.hasOwn(LLM_ERROR_KIND_CLASSES, kind)) return LLM_ERROR_KIND_CLASSES[kind];
  throw new RangeError(`an LlmError’s kind is one of ${Object.keys(LLM_ERROR_KIND_CLASSES).join(', ')}, not ${kind}`);
};

/** What is known of a model's failure beside its kind and message. */
export interface LlmErrorOptions {
  /** The class, where the failure's structure says other than its kind. */
  readonly classification?: Classification | undefined;
  /** How long the provider asked to wait, in milliseconds. Negative or `NaN` means: do not retry. */
  readonly retryAfterMs?: number | undefined;
  /** The HTTP status, when the provider answered with one. */
  readonly status?: number | undefined;
  /** The provider's own code: `insufficient_quota`, `overloaded_error`. */
  readonly code?: string | undefined;
  /** What was thrown, as `Error` keeps it. */
  readonly cause?: unknown;
}

/**
 * The one error a model call fails with: a kind from a closed list, whether to ask again, and when.
 *
 * @throws RangeError for a kind that is not in the list
 *
 * @example
 * new LlmError('rate_limit', 'Too many requests', { status: 429, retryAfterMs: 7_000 }).classification; // 'transient'
 */
export class LlmError extends Error {
  /** Always `LlmError`. */
  override readonly name: string = 'LlmError';
  /** What went wrong. */
  readonly kind: LlmErrorKind;
  /** Whether asking again can help: what was given, else what the kind means. */
  readonly classification: Classification;
  /** How long the provider asked to wait, in milliseconds. Negative or `NaN` means: do not retry. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status, when the provider answered with one. */
  readonly status: number | undefined;
  /** The provider's own code, such as `insufficient_quota`. */
  readonly code: string | undefined;

  constructor(kind: LlmErrorKind, message: string, options: LlmErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.classification = options.classification ?? classOf(kind);
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
    this.code = options.code;
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** True for an `LlmError` of this or any other installed copy of the package. Never throws. */
export function isLlmError(value: unknown): value is LlmError {
  try {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === true;
  } catch {
    return false;
  }
}
