import { firstValueFrom, type Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeClaim, DedupeOutcome, DedupeReading, DedupeStore } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { ask } from '../operators/ask.ts';
import type { Admission, Breaker, GivenPermit } from '../operators/breaker.ts';
import type { BreakerSettings } from '../policy/breaker-settings.ts';
import type { DedupeLayer } from './dedupe-layer.ts';
import { listed } from './listing.ts';

/** What the store holds of a breaker that is not closed. A probe that runs is a claim in its place. */
interface SharedState {
  readonly type: 'open' | 'half_open';
  readonly cooldownMs: number;
  /** Good probes in a row. */
  readonly successes: number;
}

/** Which breaker, and what guards its probes. */
export interface SharedBreaker {
  readonly name: string;
  readonly scope: string;
  readonly settings: BreakerSettings;
  /** How long a probe may take before another may try. */
  readonly probeLeaseMs: number;
}

/** An open breaker that nobody asks about is forgotten after this long. */
const FORGET_MS = 3_600_000;

/** What cannot be read is probed. */
const PROBED: SharedState = { type: 'half_open', cooldownMs: 0, successes: 0 };

const stateOf = ({ record }: DedupeReading): SharedState => {
  try {
    return { ...PROBED, ...(JSON.parse(record.payload ?? '{}') as Partial<SharedState>) };
  } catch {
    return PROBED;
  }
};

/**
 * The breakers of all processes that share a store. Each process counts for itself; the first one to open tells the others, by a record
 * that each looks at before a call. After the cooldown a claim in its place is the probe: exactly one of all who ask gets it, and who dies
 * with it gives it up when its lease ends. Where the store does not answer, each process goes by its own breaker.
 */
export class SharedBreakers {
  readonly #dedupe: DedupeLayer;
  readonly #runtime: Runtime;
  /** Those last seen not closed: when they are closed again, so is our own. */
  readonly #notClosed = new Set<string>();

  constructor(dedupe: DedupeLayer, runtime: Runtime) {
    this.#dedupe = dedupe;
    this.#runtime = runtime;
  }

  /** Asks for admission by all processes and by our own breaker, which is `own`. */
  admit(which: SharedBreaker, own: Breaker, told: (admission: Admission) => void): Subscription {
    const key = keyOf(which);
    return this.#ask((store) => store.get(key)).subscribe({
      next: (reading) => {
        this.#dedupe.heard(undefined);
        if (reading === undefined) told(this.#closed(which, own));
        else this.#notYetClosed(which, own, reading, told);
      },
      error: (error: ToolExecutionError) => {
        this.#dedupe.heard(error);
        told(this.#watched(which, own, own.admit()));
      },
    });
  }

  /**
   * Closes the breakers of these names for all processes, in every scope: each finds so at its next call.
   * @throws ToolExecutionError `store_unavailable`
   */
  async forget(names: readonly string[]): Promise<void> {
    for (const name of names) {
      for await (const { key } of listed((store) => store.byTool(`breaker:${name}`), this.#dedupe, this.#runtime)) await firstValueFrom(this.#ask((store) => store.delete(key)));
    }
  }

  #closed(which: SharedBreaker, own: Breaker): Admission {
    if (this.#notClosed.delete(keyOf(which)) && own.state.type !== 'forced_open' && own.state.type !== 'disabled') own.reset();
    return this.#watched(which, own, own.admit());
  }

  #notYetClosed(which: SharedBreaker, own: Breaker, reading: DedupeReading, told: (admission: Admission) => void): void {
    this.#notClosed.add(keyOf(which));
    if (own.state.type === 'disabled') return told(own.admit());
    const { record, atMs } = reading;
    const state = stateOf(reading);
    const untilMs = record.state === 'inflight' ? (record.lockUntilMs ?? 0) : state.type === 'open' ? record.updatedAtMs + state.cooldownMs : 0;
    if (untilMs > atMs) return told({ admitted: false, retryAfterMs: untilMs - atMs });
    this.#probe(which, own, record.version, state.successes, told);
  }

  #probe(which: SharedBreaker, own: Breaker, over: number, successes: number, told: (admission: Admission) => void): void {
    const { settings } = which;
    this.#ask((store) => store.setIfNotExists(claimOf(which, this.#runtime), over)).subscribe({
      next: ({ created, record, atMs }) => {
        if (!created) return told({ admitted: false, retryAfterMs: Math.max(0, (record.lockUntilMs ?? 0) - atMs) });
        const end = (type: SharedState['type'], good: number): void => this.#put(which, record.version, { type, cooldownMs: settings.cooldownMs, successes: good });
        const admission = own.admit();
        if (!admission.admitted) {
          end('half_open', successes);
          return told(admission);
        }
        told(
          both(admission, {
            success: () => (successes + 1 >= settings.successThreshold ? this.#close(which, own, record.version) : end('half_open', successes + 1)),
            failure: () => end('open', 0),
            ignore: () => end('half_open', successes),
          }),
        );
      },
      error: () => told(own.admit()),
    });
  }

  /** A permit of our own breaker: when it opens by what it hears, all are told. */
  #watched(which: SharedBreaker, own: Breaker, admission: Admission): Admission {
    if (!admission.admitted) return admission;
    return both(admission, {
      failure: () => {
        if (own.state.type === 'open') this.#open(which);
      },
    });
  }

  #open(which: SharedBreaker): void {
    const { cooldownMs } = which.settings;
    this.#ask((store) => store.setIfNotExists(claimOf(which, this.#runtime))).subscribe({
      next: ({ created, record }) => {
        // Not before: until it is there for all, its absence does not mean that it is closed again.
        this.#notClosed.add(keyOf(which));
        if (created) this.#put(which, record.version, { type: 'open', cooldownMs, successes: 0 });
      },
      // Our own breaker is open all the same.
      error: (error: ToolExecutionError) => this.#dedupe.heard(error),
    });
  }

  #close(which: SharedBreaker, own: Breaker, version: number): void {
    this.#notClosed.delete(keyOf(which));
    own.reset();
    this.#ask((store) => store.delete(keyOf(which), version)).subscribe({ error: () => undefined });
  }

  #put(which: SharedBreaker, version: number, state: SharedState): void {
    const outcome: DedupeOutcome = { state: 'done', ttlMs: state.cooldownMs + FORGET_MS, payload: JSON.stringify(state) };
    // Unheard, the claim runs out as that of one who died.
    this.#ask((store) => store.compareAndSet(keyOf(which), version, outcome)).subscribe({ error: () => undefined });
  }

  #ask<T>(question: (store: DedupeStore) => T | PromiseLike<T>): ReturnType<typeof ask<T>> {
    return ask(() => question(this.#dedupe.store()), this.#dedupe.storeTimeoutMs, this.#runtime);
  }
}

/** Apart from the keys of calls, which begin with their version. The length keeps two pairs from giving one key. */
const keyOf = ({ name, scope }: SharedBreaker): string => `breaker:${scope.length}:${scope}${name}`;

const claimOf = (which: SharedBreaker, runtime: Runtime): DedupeClaim => ({
  key: keyOf(which),
  tool: `breaker:${which.name}`,
  idempotencyKey: keyOf(which),
  request: { sessionKey: '', actorId: '', requestId: runtime.id(), paramsDigest: '' },
  leaseMs: which.probeLeaseMs,
  ttlMs: which.probeLeaseMs + FORGET_MS,
});

/** One permit that tells two of its end; given up, it says nothing to either. */
const both = (own: GivenPermit, others: { readonly success?: () => void; readonly failure?: () => void; readonly ignore?: () => void }): GivenPermit => ({
  admitted: true,
  success: () => {
    own.success();
    others.success?.();
  },
  failure: (error) => {
    own.failure(error);
    others.failure?.();
  },
  ignore: () => {
    own.ignore();
    others.ignore?.();
  },
  release: () => {
    own.release();
    others.ignore?.();
  },
});
