import type { Observable } from 'rxjs';
import { ask } from './ask.ts';
import type { LeaseTerms } from './lease.ts';

/** The shortest lease that every store can keep. */
export const AT_ONCE_MS = 1;

/**
 * Ends the lease of a claim whose owner was given up, if the key still has this fence: another may take it over from
 * then on, as from a lease that has passed. The owner, if it lives, is fenced out by whoever does. Emits whether the
 * claim was still there.
 *
 * ```
 * owner's lease     ---------------|        would have passed here
 * releaseIf(fence)       (t|)
 * taken over               x
 * ```
 */
export const releaseIf = (
  { store, runtime, storeTimeoutMs }: Pick<LeaseTerms, 'store' | 'runtime' | 'storeTimeoutMs'>,
  key: string,
  fence: number,
): Observable<boolean> => ask(() => store.renew(key, fence, AT_ONCE_MS), storeTimeoutMs, runtime);
