import type { DedupeStore } from '../../src/contract/store.ts';
import type { Ledger } from './ledger.ts';

/** A mistake put in on purpose: the checker has to find it. */
export type Plant = 'blind_outcome' | 'stolen_lease';

export const PLANTS: readonly Plant[] = ['blind_outcome', 'stolen_lease'];

const valueOf = (payload: string | undefined): string | undefined =>
  payload === undefined ? undefined : (JSON.parse(payload) as { output?: { content?: string } }).output?.content;

/**
 * Writes down what a store acknowledges: claims, renewals, outcomes. A renewal counts from when it was sent, so that no
 * lease is taken for longer than it was.
 */
export function recordedStore(store: DedupeStore, ledger: Ledger, plant?: Plant): DedupeStore {
  /** Callers' keys of the store's own. */
  const names = new Map<string, string>();
  const nameOf = (key: string): string => names.get(key) ?? key;
  const broken: Pick<DedupeStore, 'setIfNotExists' | 'compareAndSet'> = {
    setIfNotExists: async (claim, over) => {
      const answer = await store.setIfNotExists(claim, over);
      // A lease is not waited for: who runs is thrown out.
      if (plant !== 'stolen_lease' || answer.created || answer.record.state !== 'inflight') return answer;
      await store.delete(claim.key, answer.record.version);
      return store.setIfNotExists(claim);
    },
    compareAndSet: async (key, version, outcome) => {
      if (plant !== 'blind_outcome') return store.compareAndSet(key, version, outcome);
      // The version is not looked at: what is there is overwritten.
      const reading = await store.get(key);
      return store.compareAndSet(key, reading?.record.version ?? version, outcome);
    },
  };
  return {
    ...store,
    setIfNotExists: async (claim, over) => {
      const answer = await broken.setIfNotExists(claim, over);
      names.set(claim.key, claim.idempotencyKey);
      const { created, record } = answer;
      if (created)
        ledger.write({
          what: 'claimed',
          key: claim.idempotencyKey,
          fence: record.version,
          atMs: record.createdAtMs,
          untilMs: record.lockUntilMs ?? 0,
          over: over !== undefined,
        });
      return answer;
    },
    renew: async (key, version, leaseMs) => {
      const sentAtMs = Date.now();
      const renewed = await store.renew(key, version, leaseMs);
      if (renewed) ledger.write({ what: 'renewed', key: nameOf(key), fence: version, untilMs: sentAtMs + leaseMs });
      return renewed;
    },
    compareAndSet: async (key, version, outcome) => {
      ledger.write({ what: 'ending', key: nameOf(key), fence: version });
      const record = await broken.compareAndSet(key, version, outcome);
      if (record !== undefined)
        ledger.write({
          what: 'recorded',
          key: nameOf(key),
          fence: version,
          version: record.version,
          value: valueOf(outcome.payload),
        });
      return record;
    },
    delete: async (key, version) => {
      if (version !== undefined) ledger.write({ what: 'ending', key: nameOf(key), fence: version });
      return store.delete(key, version);
    },
  };
}
