import type { Classification } from '../contract/error-kind.ts';
import { senseOfCode } from './code.ts';
import { classOfSense } from './text/sense.ts';
import { classOfListedStatus } from './status.ts';

/** What a typed error keeps of the structure that entered. */
export interface Structured {
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly retryAfterMs: number | undefined;
}

/** A class, and which field gave it. */
export interface StructuralClass {
  readonly classification: Classification;
  readonly rule: 'status' | 'code' | 'retry_hint';
  /** A sentence. */
  readonly reason: string;
}

const of = (classification: Classification, rule: StructuralClass['rule'], what: string): StructuralClass => ({
  classification,
  rule,
  reason: classification === 'permanent' ? `${what} will be the same again` : `${what} is temporary`,
});

/**
 * The class that a structured status, code or retry hint gives. Some codes are asked before the status they
 * come with: an exhausted quota is sent as a 429, and waiting does not fill it; AWS sends throttling and time-outs as a
 * 400.
 */
export function classOfStructure({ status, code, retryAfterMs }: Structured): StructuralClass | undefined {
  const sense = code === undefined ? undefined : senseOfCode(code);
  if (sense === 'quota_exhausted') return of('permanent', 'code', `${code}`);
  if ((sense === 'rate_limited' || sense === 'timed_out') && status === 400) return of('transient', 'code', `${code}`);
  const listed = status === undefined ? undefined : classOfListedStatus(status);
  if (listed !== undefined) return of(listed, 'status', `status ${status}`);
  if (sense !== undefined) return of(classOfSense(sense), 'code', `${code}`);
  if (retryAfterMs === undefined || !(retryAfterMs >= 0)) return undefined;
  return { classification: 'transient', rule: 'retry_hint', reason: 'the server said when to ask again' };
}
