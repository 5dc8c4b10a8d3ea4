import {
  EMPTY,
  Observable,
  Subject,
  defer,
  distinctUntilChanged,
  filter,
  ignoreElements,
  map,
  merge,
  of,
  scan,
  share,
  startWith,
  switchMap,
  tap,
  type Subscriber,
} from 'rxjs';
import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { BreakerOptions } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { ErrorReader } from '../../contract/tool-error.ts';
import { rejectionHintMs } from '../../policy/breaker/hint.ts';
import {
  advanceBreaker,
  breakerDueMs,
  decideBreaker,
  initialBreaker,
  type BreakerInput,
  type BreakerMemory,
  type BreakerOutcome,
  type Permit,
} from '../../policy/breaker/reducer.ts';
import { breakerSettings, type BreakerSettings } from '../../policy/breaker/settings.ts';
import { expireOutcomes } from '../../policy/breaker/window.ts';
import { QuietStream } from '../work/quiet-stream.ts';
import type { Breaker, BreakerState } from './breaker.ts';
import { detailOf, type DetailedChange } from './change.ts';
import { LivePermit, type Admission, type PermitOwner } from './permit.ts';
import { wasRefusedBy } from './refusals.ts';
import { tellInOrder } from './tell-in-order.ts';

/** Whoever made a breaker, and is called when it changes or is watched. */
export interface BreakerKeeper {
  readonly changed?: DetailedChange;
  /** A closed one was reset: it has forgotten what it had counted. */
  readonly reset?: () => void;
  /** Somebody begins to watch `state$`; what it gives is called when they stop. */
  readonly watched?: () => () => void;
}

/** What the breaker knows, and the permit that its last input was given, if that asked for one. */
type Step = readonly [BreakerMemory, Permit | undefined];

const show = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerState => {
  const now = advanceBreaker(memory, settings, atMs);
  const window = now.type === 'closed' ? expireOutcomes(now.window, settings, atMs) : now.window;
  return {
    type: now.type,
    consecutiveFailures: window.streakMs.length,
    measured: window.outcomes.length,
    failures: window.failures,
    ...(now.type === 'open' ? { retryAfterMs: breakerDueMs(now, settings) - atMs } : {}),
  };
};

/**
 * A breaker whose memory can be read and replaced, as one that several processes share needs it. All that it knows is
 * what a `scan` of its inputs over the pure `decideBreaker` came to last.
 */
export class OpenBreaker implements PermitOwner {
  /** What those who call and those who watch have of it. */
  readonly breaker: Breaker;
  readonly settings: BreakerSettings;
  readonly #read: ErrorReader;
  readonly #runtime: Runtime;
  readonly #keeper: BreakerKeeper;
  #step: Step;
  /** Inputs go to the scan's own subscriber: a Subject in front of it would cost as much as the decision. */
  #inputs: Subscriber<BreakerInput> | undefined;
  readonly #inputs$ = new Subject<BreakerInput>();
  readonly #changes$ = new Subject<BreakerMemory>();
  readonly #dues$ = new Subject<number>();
  #shownType: BreakerStateName;

  constructor(read: ErrorReader, options: BreakerOptions, runtime: Runtime, keeper: BreakerKeeper = {}) {
    const settings = breakerSettings(options);
    this.settings = settings;
    this.#read = read;
    this.#runtime = runtime;
    this.#keeper = keeper;
    this.#step = [initialBreaker(settings), undefined];
    this.#shownType = this.memory.type;
    new Observable<BreakerInput>((subscriber) => void (this.#inputs = subscriber))
      .pipe(scan(([memory]: Step, input) => decideBreaker(memory, input, settings), this.#step))
      .subscribe((step) => (this.#step = step));
    this.breaker = this.#shown();
  }

  /** All that it knows since its last input. */
  get memory(): BreakerMemory {
    return this.#step[0];
  }

  /**
   * Gives the breaker an input, on somebody's behalf or nobody's; returns the permit where that input asked for
   * admission.
   */
  tell(input: BreakerInput, by?: string): Permit | undefined {
    this.#inputs?.next(input);
    // Kept here: an observer that calls back into the breaker replaces both.
    const [now, given] = this.#step;
    const from = this.#shownType;
    this.#shownType = now.type;
    if (this.#dues$.observed) this.#dues$.next(breakerDueMs(now, this.settings));
    // One queue for all: an observer that calls back cannot make others hear of a later input or change first.
    if (now.type !== from || this.#inputs$.observed) tellInOrder(() => this.#publish(input, from, now, by));
    return given;
  }

  /** The input that the end of an attempt becomes. */
  outcomeOf(
    permit: Permit,
    startedAtMs: number,
    outcome: BreakerOutcome,
    error: unknown,
    atMs: number = this.#runtime.now(),
  ): Extract<BreakerInput, { type: 'outcome' }> {
    const ended = { type: 'outcome', atMs, permit, outcome, durationMs: atMs - startedAtMs } as const;
    if (error === undefined) return ended;
    if (outcome === 'ignored') return wasRefusedBy(this.breaker, error) ? { ...ended, starved: true } : ended;
    const hintMs = this.#read(error, () => this.#runtime.wallNow()).error.retryAfterMs;
    return hintMs === undefined ? ended : { ...ended, retryAfterMs: hintMs };
  }

  ended(
    given: Permit,
    startedAtMs: number,
    outcome: BreakerOutcome,
    by: string | undefined,
    error?: unknown,
    atMs?: number,
  ): void {
    this.tell(this.outcomeOf(given, startedAtMs, outcome, error, atMs), by);
  }

  progressed(given: Permit): void {
    this.tell({ type: 'progress', atMs: this.#runtime.now(), permit: given });
  }

  #admit(atMs: number = this.#runtime.now(), by?: string): Admission {
    const isRamping = this.memory.rampFromMs !== undefined;
    const given = this.tell(
      isRamping ? { type: 'admit', atMs, random: this.#runtime.random() } : { type: 'admit', atMs },
      by,
    );
    if (given === undefined)
      return { admitted: false, retryAfterMs: rejectionHintMs(this.memory, this.settings, atMs) };
    return new LivePermit(given, atMs, this, by);
  }

  #publish(input: BreakerInput, from: BreakerStateName, now: BreakerMemory, by: string | undefined): void {
    this.#inputs$.next(input);
    if (now.type === from) return;
    try {
      this.#keeper.changed?.(from, now.type, detailOf(input, now, this.settings, by));
    } catch {
      // A listener that throws must not break the breaker.
    }
    this.#changes$.next(now);
  }

  /**
   * Changes the state at the moment at which time alone does, for as long as it is subscribed to. Watching a breaker
   * does not keep a process alive.
   */
  get #ticks$(): Observable<never> {
    const runtime = this.#runtime;
    const idle = runtime.background ?? runtime;
    return defer(() => this.#dues$.pipe(startWith(breakerDueMs(this.memory, this.settings)))).pipe(
      distinctUntilChanged(),
      switchMap((dueMs) =>
        dueMs === Infinity ? EMPTY : idle.after(Math.max(0, dueMs - runtime.now())).pipe(map(() => dueMs)),
      ),
      // Timers may come a fraction of a millisecond early; the tick is of the instant it was set for.
      tap((dueMs) => this.tell({ type: 'tick', atMs: Math.max(dueMs, runtime.now()) })),
      ignoreElements(),
    );
  }

  /** @param ticks$ shared by all who watch: one timer */
  #states(ticks$: Observable<never>): Observable<BreakerState> {
    const runtime = this.#runtime;
    return defer(() => {
      this.tell({ type: 'tick', atMs: runtime.now() });
      const seen = this.memory;
      // Changes first, for what the watcher does at its first sight; older ones may still be on their way to others.
      const later$ = this.#changes$.pipe(filter(({ generation }) => generation > seen.generation));
      return merge(later$, of(seen), ticks$);
    }).pipe(
      map((memory) => show(memory, this.settings, runtime.now())),
      distinctUntilChanged((a, b) => a.type === b.type),
    );
  }

  #shown(): Breaker {
    const order = (type: 'force_open' | 'reset' | 'disable') => () =>
      void this.tell({ type, atMs: this.#runtime.now() });
    const state = (): BreakerState => show(this.memory, this.settings, this.#runtime.now());
    const states$ = this.#states(this.#ticks$.pipe(share()));
    return {
      get state() {
        return state();
      },
      state$: new QuietStream((subscriber) => {
        subscriber.add(this.#keeper.watched?.());
        return states$.subscribe(subscriber);
      }),
      inputs$: new QuietStream((subscriber) => this.#inputs$.subscribe(subscriber)),
      admit: (atMs, by) => this.#admit(atMs, by),
      forceOpen: order('force_open'),
      reset: () => {
        const isClosed = this.memory.type === 'closed';
        order('reset')();
        if (isClosed) tellInOrder(() => this.#keeper.reset?.());
      },
      disable: order('disable'),
    };
  }
}
