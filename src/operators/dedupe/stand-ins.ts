import { concatMap, filter, from, ignoreElements, map, merge, type Observable } from 'rxjs';
import type { DedupeClaim } from '../../contract/store.ts';
import { sha256 } from '../../policy/key/sha256.ts';
import { lastValue } from '../work/last-value.ts';
import { ask } from './ask.ts';
import type { Lease, LeaseTerms } from './lease.ts';
import { AT_ONCE_MS } from './release-if.ts';

/**
 * What is known of tools that were begun under a key in place of the one that was asked for. Whoever takes the key over
 * must not begin with the first one again: its resource knows nothing of what was done at another.
 */
export interface StandIns {
  /** Those that the store has a note of. */
  readonly noted: Set<string>;
  /** The last that an earlier holder had begun. */
  inherited: string | undefined;
}

type NoteTerms = Pick<LeaseTerms, 'store' | 'runtime' | 'storeTimeoutMs'>;

const noteKey = ({ claimed: { key } }: Lease, toolName: string): string =>
  `sw1:${sha256(JSON.stringify(['stand-in', key, toolName]))}`;

/**
 * Notes a tool before it begins; emits once the store has that. The note is a claim that holds nothing, listed and
 * flushed with the record it belongs to, and kept as long as that.
 */
export const noteStandIn = (
  lease: Lease,
  toolName: string,
  { store, runtime, storeTimeoutMs }: NoteTerms,
): Observable<unknown> => {
  const { tool, idempotencyKey, request, createdAtMs, expiresAtMs } = lease.claimed;
  const note: DedupeClaim = {
    key: noteKey(lease, toolName),
    tool,
    idempotencyKey,
    // It is no claim of its call's.
    request: { ...request, requestId: `${request.requestId}/${toolName}` },
    leaseMs: AT_ONCE_MS,
    ttlMs: expiresAtMs - createdAtMs,
  };
  return ask(() => store.setIfNotExists(note), storeTimeoutMs, runtime).pipe(
    map(() => lease.standIns.noted.add(toolName)),
  );
};

/** Asks which tools earlier holders had begun, of those that may stand in; emits the last, in their order. */
export const inheritedStandIn = (
  lease: Lease,
  toolNames: readonly string[],
  { store, runtime, storeTimeoutMs }: NoteTerms,
): Observable<string | undefined> =>
  from(toolNames).pipe(
    concatMap((name) =>
      ask(() => store.get(noteKey(lease, name)), storeTimeoutMs, runtime).pipe(
        filter((reading) => reading !== undefined),
        map(() => name),
      ),
    ),
    map((name) => {
      lease.standIns.noted.add(name);
      lease.standIns.inherited = name;
      return name;
    }),
    lastValue,
  );

/**
 * Takes away what an earlier life of the key has left, which whoever takes this one over would believe; completes once
 * the store has. A call that has its key anew does it before it begins.
 */
export const withoutStandIns = (
  lease: Lease,
  toolNames: readonly string[],
  { store, runtime, storeTimeoutMs }: NoteTerms,
): Observable<never> =>
  from(toolNames).pipe(
    concatMap((name) => ask(() => store.delete(noteKey(lease, name)), storeTimeoutMs, runtime)),
    ignoreElements(),
  );

/** The call has its outcome in the store: nobody takes its key over any more. Not waited for. */
export const forgetStandIns = (lease: Lease, { store, runtime, storeTimeoutMs }: NoteTerms): void => {
  if (lease.standIns.noted.size === 0) return;
  const forgotten = [...lease.standIns.noted].map((name) =>
    ask(() => store.delete(noteKey(lease, name)), storeTimeoutMs, runtime),
  );
  merge(...forgotten).subscribe({ error: () => undefined });
};
