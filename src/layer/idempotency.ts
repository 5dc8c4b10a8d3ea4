import type { Runtime } from '../contract/runtime.ts';
import type { DedupeStore, StoreReport } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { ask } from '../operators/dedupe/ask.ts';
import { BAD_ANSWER, checkedStore } from '../operators/dedupe/checked-store.ts';
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
  /**
   * Takes how a question to the store ended, `undefined` for an answer: the trace then shows when the store is lost,
   * full or back.
   */
  noteAnswer(error: ToolExecutionError | undefined): void;
  /**
   * Counts a write of an outcome that begins; the caller calls what this gives once the store has answered, or will
   * not.
   */
  writing(): () => void;
  /** Resolves once no write is under way. Each is over within `storeTimeoutMs`. */
  written(): Promise<void>;
}

export interface StoreOptions {
  readonly store?: DedupeStore;
  readonly storeTimeoutMs?: number;
}

/**
 * Whether the store answers. One that refuses for good does: that is about a record. One that answers rubbish does not.
 */
const standOf = (error: ToolExecutionError | undefined): 'lost' | 'full' | 'back' => {
  if (error?.code === BAD_ANSWER) return 'lost';
  if (error === undefined || error.classification === 'permanent') return 'back';
  return error.code === 'store_full' ? 'full' : 'lost';
};

/** How often a store is asked how durable it is, at most: anew each time that it has answered another question. */
const REPORT_TRIES = 3;

const isWeak = ({ weak, durability }: StoreReport): boolean =>
  weak ?? (durability === 'memory' || durability === 'unknown');

/**
 * Asks a store how durable it is as soon as it is there, and reports the answer once. It waits one microtask,
 * so that whoever made the layer can subscribe to its trace first.
 *
 * @returns asks again unless it has answered
 */
const askReport = (
  store: DedupeStore,
  timeoutMs: number,
  runtime: Runtime,
  answered: (report: StoreReport) => void,
): (() => void) => {
  let left = store.report === undefined ? 0 : REPORT_TRIES;
  let asking = false;
  const again = (): void => {
    if (left === 0 || asking) return;
    left--;
    asking = true;
    ask(() => store.report?.(), timeoutMs, runtime.background ?? runtime).subscribe({
      next: (report) => {
        left = 0;
        if (report !== undefined) answered(report);
      },
      error: () => {
        asking = false;
      },
    });
  };
  queueMicrotask(again);
  return again;
};

/** What the layer gives to the part that looks after its store. */
export interface DedupeSite {
  readonly trace: Trace;
  readonly runtime: Runtime;
  /** Makes a store where the host gave none. */
  readonly fallback: () => DedupeStore;
  /** Takes a line for the layer's warnings. */
  readonly warn: (line: string) => void;
}

/** @throws RangeError for a store that lacks a method, or a time out of range */
export function createDedupe(
  { store: given, storeTimeoutMs = STORE_TIMEOUT_MS }: StoreOptions,
  { trace, runtime, fallback, warn }: DedupeSite,
): DedupeLayer {
  checkNumber('storeTimeoutMs', storeTimeoutMs, positiveDuration);
  let store = given === undefined ? undefined : checkedStore(given);
  const publish = (state: 'lost' | 'full' | 'back' | 'weak', message: string): void => {
    if (trace.observed) trace.publish({ ...STAMP, source: 'layer', type: 'store_changed', state, message });
  };
  const reported = (report: StoreReport): void => {
    if (!isWeak(report)) return;
    for (const warning of report.warnings) warn(`store: ${warning}`);
    publish('weak', report.warnings.join(' '));
  };
  const report = store === undefined ? undefined : askReport(store, storeTimeoutMs, runtime, reported);
  let writes = 0;
  let waiting: Array<() => void> = [];
  let stood: 'lost' | 'full' | 'back' = 'back';
  return {
    store: () => (store ??= fallback()),
    get made() {
      return store;
    },
    storeTimeoutMs,
    writing: () => {
      writes++;
      return () => {
        writes--;
        if (writes > 0) return;
        const all = waiting;
        waiting = [];
        for (const resolve of all) resolve();
      };
    },
    written: () =>
      new Promise((resolve) => {
        if (writes === 0) resolve();
        else waiting.push(resolve);
      }),
    noteAnswer: (error) => {
      const stands = standOf(error);
      if (stands === 'back') report?.();
      if (stood === stands) return;
      stood = stands;
      publish(stands, error?.message ?? 'The store answers again');
    },
  };
}
