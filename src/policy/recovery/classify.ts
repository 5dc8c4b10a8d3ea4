import { TOOL_ERROR_KIND_TRAITS, type Classification } from '../../contract/error-kind.ts';
import type { ClassificationOverrides } from '../../contract/policy.ts';
import type { ErrorReader } from '../../contract/tool-error.ts';
import { classOfStructure } from '../../errors/class.ts';
import { toToolExecutionError } from '../../errors/tool.ts';

/** A class, and why. */
export interface Classified {
  /** Whether asking again can help. */
  readonly classification: Classification;
  /** A sentence. */
  readonly reason: string;
  /**
   * The rule that fired: `override`, `status`, `code`, `retry_hint`, `entrance`, `words`, `kind` or `default`. `words`:
   * nothing but them said so.
   */
  readonly rule: string;
}

const of = (classification: Classification, rule: string, reason: string): Classified => ({
  classification,
  rule,
  reason,
});

/**
 * Says whether a failure may be retried, and by which rule: the tool's overrides; a structured status, code or
 * retry hint; the class the entrance gave it, by structure or by words alone; its kind's meaning; else transient, the
 * safe default.
 *
 * @param error anything thrown; what is no `ToolExecutionError` yet goes through the entrance first
 * @param overrides a status, code or kind and the class it gets: `{ "503": "permanent" }`
 *
 * @example
 * classify(new Error('Authentication failed (401)')); // { classification: 'permanent', rule: 'status', reason: ... }
 */
export function classify(error: unknown, overrides: ClassificationOverrides = {}): Classified {
  const { kind, code, status, retryAfterMs, classification, worded } = toToolExecutionError(error);
  for (const key of [status === undefined ? undefined : String(status), code, kind]) {
    const override = key !== undefined && Object.hasOwn(overrides, key) ? overrides[key] : undefined;
    if (override !== undefined) return of(override, 'override', `the tool says that ${key} is ${override}`);
  }
  const structural = classOfStructure({ status, code, retryAfterMs });
  if (structural !== undefined) return structural;
  if (classification !== undefined && worded) return of(classification, 'words', `its words sound ${classification}`);
  if (classification !== undefined) return of(classification, 'entrance', `it is ${classification} by what entered`);
  const own = TOOL_ERROR_KIND_TRAITS[kind].classification;
  if (own !== undefined) return of(own, 'kind', `${kind} is ${own}`);
  return of('transient', 'default', `nothing says that ${kind} is permanent`);
}

/** Reads an error as a call does: its fields, its codes, its words. */
export const readAsCall: ErrorReader = (thrown, wallNow) => {
  const error = toToolExecutionError(thrown, wallNow);
  const { classification, rule } = classify(error);
  return { error, classification, rule };
};
