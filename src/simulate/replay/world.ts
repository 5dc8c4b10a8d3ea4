import { Observable, Subject, takeUntil, tap } from 'rxjs';
import * as z from 'zod';
import type { ToolEvent, TraceEvent, TurnEvent } from '../../contract/event.ts';
import type { Effects } from '../../contract/policy.ts';
import type { AnyTool, ToolContext } from '../../contract/tool.ts';
import { createSpillway, type Spillway } from '../../spillway.ts';
import { SimulatedTime, type Task } from '../time.ts';
import { attemptKey, type RecordedAttempt } from './trace/attempts.ts';
import { Chance } from './chance.ts';
import type { Ending } from './trace/endings.ts';
import { errorOf } from './errors.ts';
import type { Assumption, Fate, Fates } from './fates.ts';
import { policyOf, type LayerPolicies } from './policies.ts';
import type { RecordedCall, RecordedOrder, RecordedTurn, Recording } from './trace/recording.ts';
import { planOf, requestOf } from './requests.ts';

/** What had to be assumed, and how often. */
export interface Unknowns {
  /** Attempts that were cut off when they were recorded, and are now waited for longer. */
  censored: number;
  /** Attempts that were never made when it was recorded. */
  unmade: number;
  /** Of the unmade, those at a tool that mostly failed in that minute: more load could have made it worse. */
  feedback: number;
  /** Attempts in all. */
  attempts: number;
}

/** What came of a replay. */
export interface Replayed {
  readonly events: readonly TraceEvent[];
  readonly unknown: Readonly<Unknowns>;
}

/** Two instants that differ by less are one: sums of milliseconds end in different last digits. */
const SAME_MS = 0.001;
/**
 * A live process reads its clock for each event of a tick, where here all of a tick is one instant: what is done as it
 * was recorded may begin so much sooner, and ends when it did.
 */
const TICK_MS = 50;
/** Of a call that did not go on as it was recorded. */
const ASTRAY = -1;
/** Steps of one instant that something waits for what came before it: more than any chain of calls takes. */
const ROUNDS_MAX = 16;

/** A trace as the world of a production layer, in simulated time. */
export class TraceWorld {
  readonly #recording: Recording;
  readonly #assumption: Assumption;
  readonly #fates: Fates;
  readonly #time: SimulatedTime;
  readonly #chance: Chance;
  readonly #spillway: Spillway;
  readonly #policies: LayerPolicies;
  readonly #events: TraceEvent[] = [];
  /** By call: how many of its events were as recorded, all of them so far. */
  readonly #told = new Map<string, number>();
  readonly #unknown: Unknowns = { censored: 0, unmade: 0, feedback: 0, attempts: 0 };

  constructor(recording: Recording, policies: LayerPolicies, assumption: Assumption, fates: Fates) {
    this.#recording = recording;
    this.#policies = policies;
    this.#assumption = assumption;
    this.#fates = fates;
    this.#chance = new Chance(recording);
    this.#time = new SimulatedTime(recording.startMs, () => this.#chance.draw());
    const breakerKeys = new Map(policies.tools.map(({ name, breakerKey }) => [name, breakerKey ?? name]));
    this.#spillway = createSpillway({
      tools: policies.tools.map((tool) => this.#toolOf(tool)),
      runtime: {
        now: this.#time.now,
        wallNow: this.#time.wallNow,
        random: this.#time.random,
        id: () => this.#chance.id(),
        after: (ms) => this.#after(ms),
      },
      retryBudget: policies.retryBudget ?? false,
      breakerKey: ({ name }) => breakerKeys.get(name) ?? name,
    });
  }

  /** Lets all of the trace happen. */
  run(): Replayed {
    const { calls, turns, orders } = this.#recording;
    const listening = this.#spillway.trace$.subscribe((event) => {
      this.#events.push(event);
      this.#chance.hear(event);
      this.#follows(event);
    });
    for (const call of calls) this.#at(call.started.atMs, call.started.seq, () => this.#call(call));
    for (const turn of turns) this.#at(turn.started.atMs, turn.started.seq, () => this.#turn(turn));
    for (const order of orders) this.#at(order.atMs, order.seq, () => this.#order(order));
    this.#time.run();
    listening.unsubscribe();
    return { events: this.#events, unknown: this.#unknown };
  }

  /** Notes whether a call goes on as it was recorded. */
  #follows(event: TraceEvent): void {
    if (event.source !== 'call') return;
    const { callId } = event;
    const told = this.#told.get(callId) ?? 0;
    if (told === ASTRAY) return;
    const recorded = this.#recording.byCall.get(callId)?.[told];
    const same =
      recorded?.type === event.type && recorded.toolName === event.toolName && waitOf(recorded) === waitOf(event);
    this.#told.set(callId, same ? told + 1 : ASTRAY);
  }

  /**
   * Does something when, and in the order in which, it was recorded: what was told before it has to be told first, and
   * may take some steps of the same instant. In a world that has become another one it never is.
   */
  #at(atMs: number, seq: number, work: () => void): Task {
    let rounds = 0;
    const turn = (): void => {
      const waits = seq !== Number.MAX_SAFE_INTEGER && this.#events.length < seq && rounds < ROUNDS_MAX;
      rounds++;
      if (waits) task = this.#time.at(this.#time.now(), seq, turn);
      else work();
    };
    let task = this.#time.at(atMs, seq, turn);
    return { cancel: () => task.cancel() };
  }

  /** A timer comes when the recorded one of that instant came. */
  #after(ms: number): Observable<0> {
    return new Observable((subscriber) => {
      const { callId } = this.#chance;
      const dueMs = this.#time.now() + Math.max(0, ms);
      const { atMs, seq } = ms <= 0 ? { atMs: dueMs, seq: 0 } : this.#recording.lateness.firedAt(dueMs);
      const task = this.#at(atMs, seq, () => {
        this.#chance.callId = callId;
        subscriber.next(0);
        subscriber.complete();
      });
      return () => task.cancel();
    });
  }

  #call(call: RecordedCall): void {
    const abort = new AbortController();
    if (call.ending?.how === 'abort' && call.ending.told === 1 && call.ending.inNext && refusedAtOnce(call))
      abort.abort();
    // An envelope brings its id along.
    if (call.terms.maxAttempts === undefined) this.#chance.begins(call.started.callId);
    const optional = call.terms.optional === true ? { optional: true } : {};
    const events$ = this.#spillway.call(requestOf(call), { signal: abort.signal, ...optional });
    this.#follow(events$, call.ending, abort);
  }

  #turn(turn: RecordedTurn): void {
    const abort = new AbortController();
    this.#chance.begins(turn.started.turnId);
    const { session, tenant } = [...turn.calls.values()][0] ?? {};
    const events$ = this.#spillway.turn(planOf(turn), {
      signal: abort.signal,
      ...(session === undefined ? {} : { session }),
      ...(tenant === undefined ? {} : { tenant }),
    });
    this.#follow(events$, turn.ending, abort);
  }

  /** Subscribes as the recorded caller did, and leaves or aborts when that one did. */
  #follow(events$: Observable<ToolEvent | TurnEvent>, ending: Ending | undefined, abort: AbortController): void {
    if (ending === undefined) return void events$.subscribe();
    const left$ = new Subject<void>();
    const leave = (): void => (ending.how === 'abort' ? abort.abort() : left$.next());
    let told = 0;
    const inNext = (): void => {
      told++;
      if (ending.inNext && told === ending.told && Math.abs(this.#time.now() - ending.atMs) < SAME_MS) leave();
    };
    events$.pipe(tap(inNext), takeUntil(left$)).subscribe();
    this.#at(ending.atMs, ending.seq, leave);
  }

  #order({ key, scope, act }: RecordedOrder): void {
    const options = policyOfBreaker(this.#policies, key);
    const breaker = this.#spillway.breakers.get(key, scope, options);
    if (act === 'look') breaker.state$.subscribe().unsubscribe();
    else breaker[act]();
  }

  #toolOf(inForce: LayerPolicies['tools'][number]): AnyTool {
    const { misfits } = this.#recording;
    // Asked of the call that has just begun: its input says nothing, since a trace holds none.
    const fits = (): boolean => !misfits.has(`${this.#chance.callId} ${inForce.name}`);
    return {
      name: inForce.name,
      ...(misfits.size === 0 ? {} : { input: z.custom(fits) }),
      policy: policyOf(inForce),
      ...(inForce.dependency === undefined ? {} : { dependency: inForce.dependency }),
      execute: (_: never, context: ToolContext) => this.#execute(inForce, context),
    };
  }

  #execute({ name, effects }: LayerPolicies['tools'][number], context: ToolContext): Observable<unknown> {
    const { callKey: callId, attempt: own, signal } = context;
    const startMs = this.#time.now();
    const recorded = this.#recording.attempts.get(attemptKey(callId, name, own));
    this.#unknown.attempts++;
    return new Observable((subscriber) => {
      const answer = ({ end, of }: Pick<Fate, 'end' | 'of'>): void => {
        if (end === 'failure') return subscriber.error(failureOf(of, effects));
        subscriber.next({});
        subscriber.complete();
      };
      const assume = (lastedMs: number): void => {
        if (this.#assumption !== 'recorded') this.#count(lastedMs, name, startMs);
        const fate = this.#fates.of(this.#assumption, callId, name, own, startMs, lastedMs);
        if (fate.end !== 'never')
          subscriber.add(cancelable(this.#time.at(this.#time.now() + fate.afterMs, 0, () => answer(fate))));
      };
      if (recorded === undefined) return assume(0);
      const sameSoFar = this.#told.get(callId) !== ASTRAY;
      const onTrack = Math.abs(startMs - recorded.startMs) < (sameSoFar ? TICK_MS : SAME_MS);
      const at = (atMs: number): number => (onTrack ? atMs : atMs - recorded.startMs + startMs);
      for (const { atMs, seq, report } of recorded.progress)
        subscriber.add(cancelable(this.#at(at(atMs), seq, () => context.progress(report))));
      if (recorded.end !== 'cut') {
        if (recorded.atOnce) return answer({ end: recorded.end, of: recorded });
        const task = this.#at(at(recorded.endMs), recorded.endSeq, () =>
          answer({ end: recorded.end as 'success', of: recorded }),
        );
        subscriber.add(cancelable(task));
        return;
      }
      if (this.#assumption === 'recorded') return;
      // It is waited for longer than it was only if it is still waited for a little later.
      const cutMs = at(recorded.endMs) + 2 * SAME_MS;
      const still = this.#time.at(cutMs, Number.MAX_SAFE_INTEGER, () => {
        if (!signal.aborted) assume(cutMs - startMs);
      });
      subscriber.add(cancelable(still));
    });
  }

  #count(lastedMs: number, toolName: string, atMs: number): void {
    if (lastedMs > 0) this.#unknown.censored++;
    else {
      this.#unknown.unmade++;
      if (this.#fates.isSick(toolName, atMs)) this.#unknown.feedback++;
    }
  }
}

const cancelable =
  (task: { cancel(): void }): (() => void) =>
  () =>
    task.cancel();

const policyOfBreaker = ({ tools }: LayerPolicies, key: string): ReturnType<typeof policyOf>['breaker'] & object => {
  const tool = tools.find(({ breakerKey }) => breakerKey === key);
  const breaker = tool === undefined ? undefined : policyOf(tool).breaker;
  return breaker === undefined || breaker === false ? {} : breaker;
};

/** Refused before it began: its caller had canceled it already. */
const refusedAtOnce = ({ events }: RecordedCall): boolean =>
  events.some((event) => event.type === 'rejected' && event.error.kind === 'canceled');

/** What an event says of a wait: a call that waits for another time is no more as it was recorded. */
const waitOf = (event: TraceEvent): number | undefined => (event.type === 'decision' ? event.delayMs : undefined);

/** What an attempt fails with that does what another one did. */
const failureOf = (of: RecordedAttempt | undefined, effects: Effects): Error =>
  of?.error === undefined ? new Error('it failed') : errorOf(of.error, of, effects);
