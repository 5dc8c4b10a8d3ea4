import { Observable, Subject, takeUntil, tap } from 'rxjs';
import * as z from 'zod';
import type { ToolEvent, TraceEvent, TurnEvent } from '../../contract/event.ts';
import type { AnyTool, ToolContext } from '../../contract/tool.ts';
import { createSpillway, type Spillway } from '../../spillway.ts';
import { SimulatedTime, type Task } from '../time.ts';
import { Chance } from './draws/chance.ts';
import type { Replayed } from './certainty/doubts.ts';
import type { Ending } from './trace/endings.ts';
import type { Assumption, Fates } from './fates.ts';
import { policyOf, type LayerPolicies } from './policies.ts';
import { recordedJournal } from './journal.ts';
import { recordedStore } from './store.ts';
import type { RecordedCall, RecordedOrder, RecordedTurn, Recording } from './trace/recording.ts';
import { planOf, requestOf } from './requests.ts';
import { RecordedTools, SAME_MS, type InOrder } from './tools.ts';

/** Steps of one instant that something waits for what came before it: more than any chain of calls takes. */
const ROUNDS_MAX = 16;

/** A trace as the world of a production layer, in simulated time. */
export class TraceWorld {
  readonly #recording: Recording;
  readonly #time: SimulatedTime;
  readonly #chance: Chance;
  readonly #spillway: Spillway;
  readonly #policies: LayerPolicies;
  readonly #events: TraceEvent[] = [];
  /** The call whose tool is run next. */
  #running = '';
  readonly #tools: RecordedTools;

  /** @param sample draws what shifted attempts do once more, by this number */
  constructor(recording: Recording, policies: LayerPolicies, assumption: Assumption, fates: Fates, sample?: number) {
    this.#recording = recording;
    this.#policies = policies;
    this.#chance = new Chance(recording);
    this.#time = new SimulatedTime(recording.startMs, () => this.#chance.draw());
    const inOrder: InOrder = (atMs, seq, work) => this.#at(atMs, seq, work);
    this.#tools = new RecordedTools({ recording, assumption, fates, sample, time: this.#time, inOrder });
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
      ...(recording.keys.size === 0 ? {} : { store: recordedStore(this.#time, inOrder, recording.keys) }),
      retryBudget: policies.retryBudget ?? false,
      // Asked right before a tool is run. The tool itself is told the key, which several calls may share.
      traceContext: (callId) => {
        this.#running = callId;
        return undefined;
      },
      breakerKey: ({ name }) => breakerKeys.get(name) ?? name,
    });
  }

  /** Lets all of the trace happen. */
  run(): Replayed {
    const { calls, turns, orders } = this.#recording;
    const listening = this.#spillway.trace$.subscribe((event) => {
      this.#events.push(event);
      this.#chance.hear(event);
      this.#tools.follows(event);
    });
    for (const call of calls) this.#at(call.started.atMs, call.started.seq, () => this.#call(call));
    for (const turn of turns) this.#at(turn.started.atMs, turn.started.seq, () => this.#turn(turn));
    for (const order of orders) this.#at(order.atMs, order.seq, () => this.#order(order));
    this.#time.run(this.#endMs());
    listening.unsubscribe();
    return { events: this.#events, ...this.#tools.unknown };
  }

  /**
   * When all of it is over: who holds a key renews its lease for as long as its tool runs, and a tool that never
   * answers would have it do so for ever.
   */
  #endMs(): number {
    const { keys, events } = this.#recording;
    if (keys.size === 0) return Infinity;
    const longest = this.#policies.tools.map(({ policy }) => (policy.retry.maxTotalTimeMs ?? 0) + policy.timeoutMs);
    return (events.at(-1)?.atMs ?? 0) + 2 * longest.reduce((sum, ms) => sum + ms, 0);
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
      const nowMs = this.#time.now();
      const dueMs = nowMs + Math.max(0, ms);
      const fired = ms <= 0 ? undefined : this.#recording.lateness.firedAt(dueMs, ms, callId);
      // One that came by now, by the last digit of a sum, would be found too early and be set again, for ever.
      const { atMs, seq } =
        fired === undefined || (fired.atMs <= nowMs && dueMs - nowMs < SAME_MS) ? { atMs: dueMs, seq: 0 } : fired;
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
    const ending = this.#endingOf(call.started.callId, call);
    if (ending?.how === 'abort' && ending.told === 1 && ending.inNext && refusedAtOnce(call)) abort.abort();
    // An envelope brings its id along.
    if (call.terms.maxAttempts === undefined) this.#chance.begins(call.started.callId);
    const optional = call.terms.optional === true ? { optional: true } : {};
    const events$ = this.#spillway.call(requestOf(call, this.#recording.keys.get(call.started.callId)), {
      signal: abort.signal,
      ...optional,
    });
    this.#follow(events$, ending, abort);
  }

  #turn(turn: RecordedTurn): void {
    const abort = new AbortController();
    // A turn of a fleet brings its id along.
    if (turn.started.worker === undefined) this.#chance.begins(turn.started.turnId);
    const { session, tenant } = [...turn.calls.values()][0] ?? {};
    const events$ = this.#spillway.turn(planOf(turn, this.#recording.keys), {
      signal: abort.signal,
      ...(session === undefined ? {} : { session }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(turn.started.worker === undefined ? {} : { journal: recordedJournal(turn, this.#time) }),
    });
    this.#follow(events$, this.#endingOf(turn.started.turnId, turn), abort);
  }

  #endingOf(id: string, { endings }: Pick<RecordedCall, 'endings'>): Ending | undefined {
    return endings[this.#recording.readings.get(id) ?? 0];
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
    const { refusedInputs } = this.#recording;
    // Asked of the call that has just begun: its input says nothing, since a trace holds none.
    const fits = (): boolean => !refusedInputs.has(`${this.#chance.callId} ${inForce.name}`);
    return {
      name: inForce.name,
      ...(refusedInputs.size === 0 ? {} : { input: z.custom(fits) }),
      policy: policyOf(inForce),
      ...(inForce.dependency === undefined ? {} : { dependency: inForce.dependency }),
      execute: (_: never, context: ToolContext) => this.#tools.execute(inForce, context, this.#running),
    };
  }
}

const policyOfBreaker = ({ tools }: LayerPolicies, key: string): ReturnType<typeof policyOf>['breaker'] & object => {
  const tool = tools.find(({ breakerKey }) => breakerKey === key);
  const breaker = tool === undefined ? undefined : policyOf(tool).breaker;
  return breaker === undefined || breaker === false ? {} : breaker;
};

/** Refused before it began: its caller had canceled it already. */
const refusedAtOnce = ({ events }: RecordedCall): boolean =>
  events.some((event) => event.type === 'rejected' && event.error.kind === 'canceled');
