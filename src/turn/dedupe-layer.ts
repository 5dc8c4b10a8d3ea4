import type { DedupeStore } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { STORE_TIMEOUT_MS } from '../policy/profile.ts';
import { STAMP, type Trace } from './trace.ts';

/** What the calls of a layer share about its store. */
export interface DedupeLayer {
  /** Made when it is first needed, where the host gave none. */
  store(): DedupeStore;
  /** The store, once it is needed or where the host gave one. */
  readonly made: DedupeStore | undefined;
  readonly storeTimeoutMs: number;
  /** Told how each claim went, so that the trace tells when the store is lost or full, and when it is back. */
  heard(error: ToolExecutionError | undefined): void;
  /** The end of a claim is being told to the store; call what this gives once it has answered, or will not. */
  telling(): () => void;
  /** When the store has been told all. Each telling is over within `storeTimeoutMs`. */
  told(): Promise<void>;
}

export interface DedupeOptions {
  readonly store?: DedupeStore;
  readonly storeTimeoutMs?: number;
}

const METHODS: ReadonlyArray<keyof DedupeStore> = ['get', 'setIfNotExists', 'compareAndSet', 'renew', 'delete', 'byTool', 'bySession', 'sweep'];

/** A store that refuses for good says something of a record, not of itself: it answers. */
const standOf = (error: ToolExecutionError | undefined): 'lost' | 'full' | 'back' => {
  if (error === undefined || error.classification === 'permanent') return 'back';
  return error.code === 'store_full' ? 'full' : 'lost';
};

/** @throws RangeError for a store that lacks a method, or a time out of range */
export function createDedupe({ store: given, storeTimeoutMs = STORE_TIMEOUT_MS }: DedupeOptions, trace: Trace, fallback: () => DedupeStore): DedupeLayer {
  checkNumber('storeTimeoutMs', storeTimeoutMs, positiveDuration);
  for (const method of given === undefined ? [] : METHODS) {
    if (typeof given?.[method] !== 'function') throw new RangeError(`store must have a method ${method}; memoryStore(), sqliteStore() and redisStore() make one`);
  }
  let store = given;
  let untold = 0;
  let waiting: Array<() => void> = [];
  let stood: 'lost' | 'full' | 'back' = 'back';
  return {
    store: () => (store ??= fallback()),
    get made() {
      return store;
    },
    storeTimeoutMs,
    telling: () => {
      untold++;
      return () => {
        untold--;
        if (untold > 0) return;
        const all = waiting;
        waiting = [];
        for (const told of all) told();
      };
    },
    told: () =>
      new Promise((resolve) => {
        if (untold === 0) resolve();
        else waiting.push(resolve);
      }),
    heard: (error) => {
      const stands = standOf(error);
      if (stood === stands) return;
      stood = stands;
      if (!trace.observed) return;
      trace.publish({ ...STAMP, source: 'layer', type: 'store_changed', state: stands, message: error?.message ?? 'The store answers again' });
    },
  };
}
