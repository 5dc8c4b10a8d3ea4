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

/** A store that refuses for good says something of a record, not of itself: it answers. Unless what it answers is rubbish. */
const standOf = (error: ToolExecutionError | undefined): 'lost' | 'full' | 'back' => {
  if (error?.code === BAD_ANSWER) return 'lost';
  if (error === undefined || error.classification === 'permanent') return 'back';
  return error.code === 'store_full' ? 'full' : 'lost';
};

/** A store that would not say how durable it is asked again when it answers something else; so often at most. */
const REPORT_TRIES = 3;

const isWeak = ({ weak, durability }: StoreReport): boolean => weak ?? (durability === 'memory' || durability === 'unknown');

/**
 * Asks a store how durable it is, without being asked to: what it says is told once. The first time before anyone could have listened is over.
 *
 * @returns asks again unless it has answered
 */
const askReport = (store: DedupeStore, timeoutMs: number, runtime: Runtime, told: (report: StoreReport) => void): (() => void) => {
  let left = store.report === undefined ? 0 : REPORT_TRIES;
  let asking = false;
  const again = (): void => {
    if (left === 0 || asking) return;
    left--;
    asking = true;
    ask(() => store.report?.(), timeoutMs, runtime.background ?? runtime).subscribe({
      next: (report) => {
        left = 0;
        if (report !== undefined) told(report);
      },
      error: () => {
        asking = false;
      },
    });
  };
  queueMicrotask(again);
  return again;
};

/** What a layer gives to its store's keeper. */
export interface DedupeSite {
  readonly trace: Trace;
  readonly runtime: Runtime;
  /** Makes a store where the host gave none. */
  readonly fallback: () => DedupeStore;
  /** Takes a line for the layer's warnings. */
  readonly warn: (line: string) => void;
}

/** @throws RangeError for a store that lacks a method, or a time out of range */
export function createDedupe({ store: given, storeTimeoutMs = STORE_TIMEOUT_MS }: DedupeOptions, { trace, runtime, fallback, warn }: DedupeSite): DedupeLayer {
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
      if (stands === 'back') report?.();
      if (stood === stands) return;
      stood = stands;
      publish(stands, error?.message ?? 'The store answers again');
    },
  };
}
