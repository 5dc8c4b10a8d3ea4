import type { DedupeReading, DedupeRequest } from '../../contract/store.ts';

/** `enforced` waits for the one that runs; `bestEffort` is refused at once, and runs unprotected when the store is lost. */
export type DedupeMode = 'enforced' | 'bestEffort' | 'disabled';

/** What of a call decides how it stands to the record under its key. */
export interface ClaimQuestion {
  readonly key: string;
  readonly tool: string;
  readonly mode: DedupeMode;
  readonly request: DedupeRequest;
  /** It must not follow on one that may have taken effect. */
  readonly neverTwice: boolean;
}

export type ClaimDecision =
  /** It takes the key over from the record of this version, if that is still there and has no valid lease. */
  | { readonly act: 'take_over'; readonly version: number }
  | { readonly act: 'wait' }
  /** It gets what the record holds, a result or a failure. */
  | { readonly act: 'replay' }
  /** It is refused: another runs, the key stands for something else, a canceled call has to be cleared first, or it cannot be known whether it took effect. */
  | { readonly act: 'refuse'; readonly because: 'busy' | 'conflict' | 'cancelled' | 'uncertain' };

const sameScope = (one: DedupeRequest, other: DedupeRequest, global: boolean): boolean =>
  one.tenantId === other.tenantId && (global || one.sessionKey === other.sessionKey);

/**
 * What a call does about the record that stands in its way. Only the store's clock says whether a lease has passed.
 *
 * @param reading the record, and when it was read
 * @param global the key is shared by sessions and actors
 */
export function decideClaim({ record, atMs }: DedupeReading, { key, tool, mode, request, neverTwice }: ClaimQuestion, global = false): ClaimDecision {
  const own = record.key === key && record.tool === tool && sameScope(record.request, request, global);
  if (!own || record.request.paramsDigest !== request.paramsDigest) return { act: 'refuse', because: 'conflict' };
  switch (record.state) {
    case 'done':
      return { act: 'replay' };
    case 'failed':
      return mode === 'bestEffort' && record.error?.shouldRetriable === true && !(neverTwice && record.error.uncertain === true)
        ? { act: 'take_over', version: record.version }
        : { act: 'replay' };
    case 'cancelled':
      return { act: 'refuse', because: 'cancelled' };
    case 'inflight':
      if ((record.lockUntilMs ?? 0) <= atMs) return neverTwice ? { act: 'refuse', because: 'uncertain' } : { act: 'take_over', version: record.version };
      return mode === 'enforced' ? { act: 'wait' } : { act: 'refuse', because: 'busy' };
  }
}
