import type { DedupeStore } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { STAMP, type Trace } from './trace.ts';

/** Longer than a slow store takes, shorter than a person waits. */
const STORE_TIMEOUT_MS = 5_000;

/** What the calls of a layer share about its store. */
export interface DedupeLayer {
  /** Made when it is first needed, where the host gave none. */
  store(): DedupeStore;
  /** The store, once it is needed or where the host gave one. */
  readonly made: DedupeStore | undefined;
  readonly storeTimeoutMs: number;
  /** Told how each claim went, so that the trace tells when the store is lost and when it is back. */
  heard(error: ToolExecutionError | undefined): void;
}

export interface DedupeOptions {
  readonly store?: DedupeStore;
  readonly storeTimeoutMs?: number;
}

const METHODS: ReadonlyArray<keyof DedupeStore> = ['get', 'setIfNotExists', 'compareAndSet', 'renew', 'delete', 'byTool', 'bySession', 'sweep'];

/** @throws RangeError for a store that lacks a method, or a time out of range */
export function createDedupe({ store: given, storeTimeoutMs = STORE_TIMEOUT_MS }: DedupeOptions, trace: Trace, fallback: () => DedupeStore): DedupeLayer {
  checkNumber('storeTimeoutMs', storeTimeoutMs, positiveDuration);
  for (const method of given === undefined ? [] : METHODS) {
    if (typeof given?.[method] !== 'function') throw new RangeError(`store must have a method ${method}; memoryStore(), sqliteStore() and redisStore() make one`);
  }
  let store = given;
  let lost = false;
  return {
    store: () => (store ??= fallback()),
    get made() {
      return store;
    },
    storeTimeoutMs,
    heard: (error) => {
      if (lost === (error !== undefined)) return;
      lost = error !== undefined;
      if (!trace.observed) return;
      trace.publish({ ...STAMP, source: 'layer', type: 'store_changed', state: lost ? 'lost' : 'back', message: error?.message ?? 'The store answers again' });
    },
  };
}
