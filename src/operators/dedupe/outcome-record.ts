import { catchError, map, of, retry, switchMap, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { DedupeOutcome, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { ask } from './ask.ts';

/** Between two tries to have an outcome recorded. */
const RECORD_RETRY_MS = 100;

/** What became of an outcome: recorded, refused since another holds the key, or not stored. */
export type Recording = 'recorded' | 'superseded' | 'unrecorded';

/** What became of an outcome, with the reason where the store said why it was not stored. */
export interface Recorded {
  readonly recording: Recording;
  readonly why?: ToolExecutionError | undefined;
}

export const UNRECORDED: Recorded = { recording: 'unrecorded' };
const RECORDED: Recorded = { recording: 'recorded' };
const SUPERSEDED: Recorded = { recording: 'superseded' };

/** Where and how an outcome is written. */
export interface RecordTerms {
  readonly store: DedupeStore;
  readonly runtime: Runtime;
  readonly storeTimeoutMs: number;
}

/**
 * Whether a record is what this claim wrote. A caller may give two calls one request id: what stands in the record says
 * who wrote it.
 */
const isOwn = (
  { request }: DedupeRecord,
  { state, payload }: DedupeOutcome,
  record: DedupeRecord | undefined,
): boolean => record?.request.requestId === request.requestId && record.state === state && record.payload === payload;

/**
 * Puts an outcome into the place of the record that was claimed, and emits what became of it. Where the store does not
 * answer it is tried again. To be subscribed to once.
 *
 * @param isValid whether the claim still holds: what the store refuses for good, or when nothing protects the key any
 * more, is not tried again
 */
export const outcomeWritten = (
  claimed: DedupeRecord,
  outcome: DedupeOutcome,
  { store, runtime, storeTimeoutMs }: RecordTerms,
  isValid: () => boolean,
): Observable<Recorded> => {
  const { key, version } = claimed;
  let isRepeated = false;
  return ask(() => store.compareAndSet(key, version, outcome), storeTimeoutMs, runtime).pipe(
    retry({
      delay: (error: ToolExecutionError) => {
        if (!isValid() || error.classification === 'permanent') throw error;
        isRepeated = true;
        return runtime.after(RECORD_RETRY_MS);
      },
    }),
    switchMap((written) => {
      if (written !== undefined) return of(RECORDED);
      if (!isRepeated) return of(SUPERSEDED);
      // The reply to an earlier write may have been lost: then the record that is there is our own.
      return ask(() => store.get(key), storeTimeoutMs, runtime).pipe(
        map((reading) => (isOwn(claimed, outcome, reading?.record) ? RECORDED : SUPERSEDED)),
      );
    }),
    catchError((why: ToolExecutionError) => of({ ...UNRECORDED, why })),
  );
};
