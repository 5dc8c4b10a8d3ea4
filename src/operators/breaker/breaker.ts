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
import { breakerSettings, type BreakerSettings } from '../../policy/breaker/settings.ts';
import { expireOutcomes } from '../../policy/breaker/window.ts';
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
import { readAsCall } from '../../policy/recovery/classify.ts';
import { liveRuntime } from '../../runtime.ts';
import { QuietStream } from '../work/quiet-stream.ts';
import { LivePermit, type PermitOwner } from './live-permit.ts';
import { tellInOrder } from './tell-in-order.ts';

/** What a breaker shows of itself. */
export interface BreakerState {
  /** The state's name. */
  readonly type: BreakerStateName;
  /** Failures in a row; kept while open. */
  readonly consecutiveFailures: number;
  /** Outcomes in the window, and how many of them failed. */
  readonly measured: number;
  /** How many outcomes of the window failed. */
  readonly failures: number;
  /** While open: until it lets a probe through. */
  readonly retryAfterMs?: number;
}

/** An admission: a permit that ends once, with the first of its verbs to be called, or a rejection. */
export type Admission =
  | {
      /** The call may be made; it holds a probe's place while the breaker is half-open. */
      readonly admitted: true;
      /**
       * Ends the permit: the dependency answered.
       * @param atMs now, from one who has just read the runtime's clock
       */
      success(atMs?: number): void;
      /** The error's `retryAfterMs` is a floor under the cooldown. */
      failure(error?: unknown): void;
      /**
       * It was refused in words alone, by whomever: a row of failures ends, and nothing else is known of the
       * dependency.
       */
      answered(): void;
      /**
       * It ended, and says nothing about the dependency.
       * @param error with which; a refusal by this very breaker tells it that the call needed a second place
       */
      ignore(error?: unknown): void;
      /**
       * It gave a value, and is not done: half-open’s deadline is counted from the last one. A breaker of your own may
       * leave it out.
       */
      progress?(): void;
      /** It was given up before it ended. */
      release(): void;
    }
  | {
      /** The call must not be made. */
      readonly admitted: false;
      /** How long until the breaker may admit one, in milliseconds. */
      readonly retryAfterMs: number;
    };

/** An admission that was given. */
export type GivenPermit = Extract<Admission, { admitted: true }>;

/**
 * A circuit breaker, as `createBreaker` makes it. Give it to `circuitBreaker`, or ask `admit()` before
 * each call and end what it gives.
 */
export interface Breaker {
  /** The state now, time that has passed without traffic included. */
  readonly state: BreakerState;
  /** The present state at once, then each change of `type` at its instant. Holds a timer only while it is watched. */
  readonly state$: Observable<BreakerState>;
  /** Each input of the breaker: folded with `reduceBreaker` from the start, it gives the breaker's states. */
  readonly inputs$: Observable<BreakerInput>;
  /**
   * Asks for one call. Whoever is admitted must end the permit, or a probe's place stays taken until
   * `halfOpenTimeoutMs`.
   * @param atMs now, from one who has just read the runtime's clock
   * @param by whose call it is; a change of state that it brings about is told with this name
   */
  admit(atMs?: number, by?: string): Admission;
  /** Rejects everything until `reset`. */
  forceOpen(): void;
  /** Straight to closed, with nothing remembered. */
  reset(): void;
  /** Admits everything and measures nothing until `reset`. */
  disable(): void;
}

/** Called after each change of a breaker's state, once the new state stands. What it throws is ignored. */
export type BreakerChange = (from: BreakerStateName, to: BreakerStateName) => void;

/** What else there is to say of a change. */
export interface ChangeDetail {
  /** When an open one lets a probe through. */
  readonly untilMs?: number;
  /** Who was admitted, or whose attempt ended, as it was said at admission. */
  readonly by?: string;
}

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

/** The errors of refusals, each with the breaker that refused. */
const refusals = new WeakMap<object, Breaker>();

/**
 * Remembers whose refusal an error is, so that a probe that ends with it can tell its breaker that it needed a second
 * place.
 */
export function refusedBy<E extends object>(breaker: Breaker, refusal: E): E {
  refusals.set(refusal, breaker);
  return refusal;
}

type Step = readonly [BreakerMemory, Permit | undefined];

/**
 * A circuit breaker: it counts outcomes, stops calling what keeps failing, and probes for its recovery. Its state is a
 * `scan` of its inputs over the pure `reduceBreaker`; it opens after 5 consecutive failures or when half of the last 20
 * outcomes (at least 10) failed, stays open for 30 s, and closes after 2 good probes (SI 3.2, CLAW 1.5).
 *
 * @param options when it opens and how it recovers; see `BreakerOptions` for each default
 * @param runtime where time and chance come from
 * @param onChange called at each change of state once the new state stands, in order and before those who watch
 *   `state$`; what it throws is ignored
 * @throws RangeError for an option out of its range
 *
 * @example
 * const breaker = createBreaker({ failureThreshold: 3, cooldownMs: 10_000 });
 * const guarded$ = search$.pipe(circuitBreaker(breaker));
 * breaker.state$.subscribe(({ type }) => console.log(type)); // 'closed', later perhaps 'open'
 */
export function createBreaker(
  options: BreakerOptions = {},
  runtime: Runtime = liveRuntime,
  onChange?: BreakerChange,
): Breaker {
  return createBreakerFor(readAsCall, options, runtime, onChange);
}

/** `createBreaker` with a reader of errors as an argument: `spillway/mini` gives one without tables. */
export function createBreakerFor(
  read: ErrorReader,
  options: BreakerOptions,
  runtime: Runtime,
  onChange?: BreakerChange,
): Breaker {
  return createOpenBreaker(
    read,
    options,
    runtime,
    onChange === undefined ? {} : { changed: (from, to) => onChange(from, to) },
  ).breaker;
}

/** A breaker, and what it knows. */
export interface OpenBreaker {
  readonly breaker: Breaker;
  readonly settings: BreakerSettings;
  /** All that it knows since its last input. */
  readonly memory: BreakerMemory;
  /**
   * Gives the breaker an input, on somebody's behalf or nobody's; returns the permit where that input asked for
   * admission.
   */
  tell(input: BreakerInput, by?: string): Permit | undefined;
  /** The input that the end of an attempt becomes. */
  outcomeOf(
    given: Permit,
    startedAtMs: number,
    outcome: BreakerOutcome,
    error: unknown,
    atMs?: number,
  ): Extract<BreakerInput, { type: 'outcome' }>;
}

/** Called at a breaker's change of state, with all that there is to say of it. */
export type DetailedChange = (from: BreakerStateName, to: BreakerStateName, detail: ChangeDetail) => void;

/** Whoever made a breaker, and is called when it changes or is watched. */
export interface BreakerKeeper {
  readonly changed?: DetailedChange;
  /** A closed one was reset: it has forgotten what it had counted. */
  readonly reset?: () => void;
  /** Somebody begins to watch `state$`; what it gives is called when they stop. */
  readonly watched?: () => () => void;
}

/** A breaker whose memory can be read and replaced, as one that several processes share needs it. */
export function createOpenBreaker(
  read: ErrorReader,
  options: BreakerOptions,
  runtime: Runtime,
  keeper: BreakerKeeper = {},
): OpenBreaker {
  const settings = breakerSettings(options);
  let step: Step = [initialBreaker(settings), undefined];
  // Inputs go to the scan's own subscriber: a Subject in front of it would cost as much as the decision.
  let inputs: Subscriber<BreakerInput> | undefined;
  new Observable<BreakerInput>((subscriber) => void (inputs = subscriber))
    .pipe(scan((before: Step, input) => decideBreaker(before[0], input, settings), step))
    .subscribe((next) => (step = next));

  const inputs$ = new Subject<BreakerInput>();
  const changes$ = new Subject<BreakerMemory>();
  const dues$ = new Subject<number>();
  let shownType = step[0].type;

  const publish = (input: BreakerInput, from: BreakerStateName, now: BreakerMemory, by: string | undefined): void => {
    inputs$.next(input);
    if (now.type === from) return;
    try {
      keeper.changed?.(from, now.type, {
        ...(now.type === 'open' ? { untilMs: breakerDueMs(now, settings) } : {}),
        ...(by === undefined ? {} : { by }),
      });
    } catch {
      // A listener that throws must not break the breaker.
    }
    changes$.next(now);
  };

  const tell = (input: BreakerInput, by?: string): Permit | undefined => {
    inputs?.next(input);
    // Kept here: an observer that calls back into the breaker replaces both.
    const now = step[0];
    const given = step[1];
    const from = shownType;
    shownType = now.type;
    if (dues$.observed) dues$.next(breakerDueMs(now, settings));
    // One queue for all: an observer that calls back cannot make others hear of a later input or change first.
    if (now.type !== from || inputs$.observed) tellInOrder(() => publish(input, from, now, by));
    return given;
  };

  // Watching a breaker does not keep a process alive.
  const idle = runtime.background ?? runtime;
  // Shared by all who watch: one timer for the moment at which time alone changes the state.
  const ticks$ = defer(() => dues$.pipe(startWith(breakerDueMs(step[0], settings)))).pipe(
    distinctUntilChanged(),
    switchMap((dueMs) =>
      dueMs === Infinity ? EMPTY : idle.after(Math.max(0, dueMs - runtime.now())).pipe(map(() => dueMs)),
    ),
    // Timers may come a fraction of a millisecond early; the tick is of the instant it was set for.
    tap((dueMs) => tell({ type: 'tick', atMs: Math.max(dueMs, runtime.now()) })),
    ignoreElements(),
    share(),
  );

  const outcomeOf: OpenBreaker['outcomeOf'] = (permit, startedAtMs, outcome, error, atMs = runtime.now()) => {
    const ended = { type: 'outcome', atMs, permit, outcome, durationMs: atMs - startedAtMs } as const;
    if (error === undefined) return ended;
    if (outcome === 'ignored') return refusals.get(error as object) === breaker ? { ...ended, starved: true } : ended;
    const hintMs = read(error, () => runtime.wallNow()).error.retryAfterMs;
    return hintMs === undefined ? ended : { ...ended, retryAfterMs: hintMs };
  };
  const owner: PermitOwner = {
    ended: (given, startedAtMs, outcome, by, error, atMs) =>
      void tell(outcomeOf(given, startedAtMs, outcome, error, atMs), by),
    progressed: (given) => void tell({ type: 'progress', atMs: runtime.now(), permit: given }),
  };

  const admit = (atMs = runtime.now(), by?: string): Admission => {
    const given = tell(
      step[0].rampFromMs === undefined ? { type: 'admit', atMs } : { type: 'admit', atMs, random: runtime.random() },
      by,
    );
    if (given === undefined) return { admitted: false, retryAfterMs: rejectionHintMs(step[0], settings, atMs) };
    return new LivePermit(given, atMs, owner, by);
  };

  const states$ = defer(() => {
    tell({ type: 'tick', atMs: runtime.now() });
    const seen = step[0];
    // Changes first, for what the watcher does at its first sight; older ones may still be on their way to others.
    return merge(changes$.pipe(filter(({ generation }) => generation > seen.generation)), of(seen), ticks$);
  }).pipe(
    map((shown) => show(shown, settings, runtime.now())),
    distinctUntilChanged((a, b) => a.type === b.type),
  );

  const breaker: Breaker = {
    get state() {
      return show(step[0], settings, runtime.now());
    },
    state$: new QuietStream((subscriber) => {
      subscriber.add(keeper.watched?.());
      return states$.subscribe(subscriber);
    }),
    inputs$: new QuietStream((subscriber) => inputs$.subscribe(subscriber)),
    admit,
    forceOpen: () => void tell({ type: 'force_open', atMs: runtime.now() }),
    reset: () => {
      const isClosed = step[0].type === 'closed';
      tell({ type: 'reset', atMs: runtime.now() });
      if (isClosed) keeper.reset?.();
    },
    disable: () => void tell({ type: 'disable', atMs: runtime.now() }),
  };
  return {
    breaker,
    settings,
    get memory() {
      return step[0];
    },
    tell,
    outcomeOf,
  };
}
