import type { CallOutcome } from './result.ts';

/** Where a call is. One of these at a time, in this order but for a call that is retried or replayed. */
export type CallState =
  /** Its request is looked at, and the host's hook asked. */
  | { readonly phase: 'preparing' }
  /** It waits for its key. */
  | { readonly phase: 'acquiring' }
  /** It makes its attempts; `live` while one of them runs. */
  | { readonly phase: 'attempting'; readonly live: boolean }
  | { readonly phase: 'backing_off' }
  /** It has its outcome, which is being recorded. */
  | { readonly phase: 'concluding'; readonly outcome: CallOutcome }
  /** Its caller has its outcome, or has gone. */
  | { readonly phase: 'settled' };

export const PREPARING: CallState = { phase: 'preparing' };
export const ACQUIRING: CallState = { phase: 'acquiring' };
export const TRYING: CallState = { phase: 'attempting', live: false };
export const LIVE: CallState = { phase: 'attempting', live: true };
export const BACKING_OFF: CallState = { phase: 'backing_off' };
export const SETTLED: CallState = { phase: 'settled' };

/** The only way from one state to the next: what has settled stays so, whatever arrives late. */
export const reduceCall = (state: CallState, next: CallState): CallState => (state.phase === 'settled' ? state : next);
