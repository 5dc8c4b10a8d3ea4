import { Observable, type Subscriber } from 'rxjs';
import type { ToolInForce, TraceEvent } from '../../contract/event.ts';
import type { ToolContext } from '../../contract/tool.ts';
import type { SimulatedTime, Task } from '../time.ts';
import { Doubts, type Replayed, type Why } from './certainty/doubts.ts';
import { errorOf } from './errors.ts';
import type { Assumption, Fate, Fates } from './fates.ts';
import { attemptKey, type RecordedAttempt } from './trace/attempts.ts';
import { TICK_MS } from './trace/endings.ts';
import type { Recording } from './trace/recording.ts';

/** Has work done at an instant, in the order in which it was recorded. */
export type InOrder = (atMs: number, seq: number, work: () => void) => Task;

/** Two instants that differ by less are one: sums of milliseconds end in different last digits. */
export const SAME_MS = 0.001;
/** Of a call that did not go on as it was recorded. */
const ASTRAY = -1;

/** What tools need to do what they did. */
export interface ToolsParts {
  readonly recording: Recording;
  readonly assumption: Assumption;
  readonly fates: Fates;
  /** Draws what shifted attempts do once more, by this number. */
  readonly sample: number | undefined;
  readonly time: SimulatedTime;
  readonly inOrder: InOrder;
}

/** An attempt that is made now. */
interface Made {
  /** By which the recording knows it, if it was made then. */
  readonly key: string;
  readonly callId: string;
  readonly toolName: string;
  readonly own: number;
  readonly startMs: number;
  readonly effects: ToolInForce['effects'];
  readonly context: ToolContext;
}

/** The tools of a replay: they do what they did, and what is assumed of them where the trace does not tell. */
export class RecordedTools {
  readonly #parts: ToolsParts;
  readonly #doubts: Doubts;
  /** By call: how many of its events were as recorded, all of them so far. */
  readonly #told = new Map<string, number>();
  /** Calls of which an attempt is made at another time, and that go on from what is known of that. */
  readonly #shifted = new Set<string>();
  /** When each attempt of the recording was made, by its key. */
  readonly #madeAtMs = new Map<string, number>();
  /** The most attempts that calls of each tool could have made. */
  readonly #attemptsMax: ReadonlyMap<string, number>;

  constructor(parts: ToolsParts) {
    this.#parts = parts;
    this.#doubts = new Doubts(parts.fates);
    this.#attemptsMax = new Map(parts.recording.tools.map(({ name, policy }) => [name, policy.retry.maxAttempts ?? 1]));
  }

  /** What had to be assumed. */
  get unknown(): Omit<Replayed, 'events'> {
    return { unknown: this.#doubts.unknown, doubts: this.#doubts.all, madeAtMs: this.#madeAtMs };
  }

  /** Notes whether a call goes on as it was recorded. */
  follows(event: TraceEvent): void {
    if (event.source !== 'call') return;
    const { callId } = event;
    const told = this.#told.get(callId) ?? 0;
    if (told === ASTRAY) return;
    const recorded = this.#parts.recording.byCall.get(callId)?.[told];
    const same =
      recorded?.type === event.type && recorded.toolName === event.toolName && waitOf(recorded) === waitOf(event);
    this.#told.set(callId, same ? told + 1 : ASTRAY);
  }

  /** Runs a tool for a call. */
  execute({ name: toolName, effects }: ToolInForce, context: ToolContext, callId: string): Observable<unknown> {
    const { recording, time } = this.#parts;
    const own = context.attempt;
    const key = attemptKey(callId, toolName, own);
    const made = { key, callId, toolName, own, startMs: time.now(), effects, context };
    const recorded = recording.attempts.get(key);
    this.#madeAtMs.set(key, made.startMs);
    this.#doubts.attempt();
    return new Observable((subscriber) => {
      const laterMs = recorded === undefined ? 0 : this.#laterMs(recorded, made);
      if (recorded !== undefined && (laterMs === 0 || this.#parts.assumption === 'recorded'))
        return this.#play(recorded, made, subscriber, laterMs);
      const shifted = this.#shiftedOf(recorded, made);
      if (shifted !== undefined) return this.#play(shifted, made, subscriber, made.startMs - shifted.startMs);
      if (recorded === undefined) return this.#assume('unmade', made, subscriber, 0);
      this.#report(recorded, made, subscriber, laterMs);
      this.#assume(
        'moved',
        made,
        subscriber,
        0,
        this.#parts.fates.moved(this.#parts.assumption, recorded, made.startMs),
      );
    });
  }

  /** How much later an attempt begins than it did: where it does not, what it then came to is what it comes to now. */
  #laterMs({ callId, startMs }: RecordedAttempt, made: Made): number {
    // The policies that were recorded make it at this instant, too, however late their process was.
    const sameMs = this.#parts.recording.madeAtMs.get(made.key) ?? NaN;
    if (Math.abs(made.startMs - sameMs) < SAME_MS) return 0;
    const slackMs = this.#told.get(callId) === ASTRAY ? SAME_MS : TICK_MS;
    return Math.abs(made.startMs - startMs) < slackMs ? 0 : made.startMs - startMs;
  }

  /** What an attempt does at another time, or following on one at another time, where others tell how its tool was. */
  #shiftedOf(
    recorded: RecordedAttempt | undefined,
    { callId, toolName, own, startMs }: Made,
  ): RecordedAttempt | undefined {
    const { assumption, fates, sample } = this.#parts;
    const goesOn = this.#shifted.has(callId) && own <= (this.#attemptsMax.get(toolName) ?? 1);
    if (assumption === 'recorded' || (recorded === undefined && !goesOn)) return undefined;
    const shifted = fates.shifted({ callId, toolName, own, recorded }, startMs, sample);
    if (shifted === undefined) return undefined;
    this.#shifted.add(callId);
    this.#doubts.unknown.shifted++;
    return shifted;
  }

  #report({ progress }: RecordedAttempt, { context }: Made, subscriber: Subscriber<unknown>, laterMs: number): void {
    for (const { atMs, seq, report } of progress) {
      const task = this.#parts.inOrder(atMs + laterMs, laterMs === 0 ? seq : 0, () => context.progress(report));
      subscriber.add(() => task.cancel());
    }
  }

  /** Does what an attempt did, so much later than that. */
  #play(attempt: RecordedAttempt, made: Made, subscriber: Subscriber<unknown>, laterMs: number): void {
    const { assumption, time, inOrder } = this.#parts;
    this.#report(attempt, made, subscriber, laterMs);
    const { end, atOnce, answered, endSeq } = attempt;
    const endMs = attempt.endMs + laterMs;
    if (end !== 'cut') {
      if (atOnce) return this.#answer({ end, of: attempt }, made, subscriber);
      const task = inOrder(endMs, laterMs === 0 ? endSeq : 0, () =>
        this.#answer({ end, of: attempt }, made, subscriber),
      );
      subscriber.add(() => task.cancel());
      return;
    }
    if (answered) subscriber.next({});
    if (assumption === 'recorded') return;
    // It is waited for longer than it was only if it is still waited for a little later.
    const cutMs = endMs + 2 * SAME_MS;
    const still = time.at(cutMs, Number.MAX_SAFE_INTEGER, () => {
      if (!made.context.signal.aborted) this.#assume('censored', made, subscriber, cutMs - made.startMs);
    });
    subscriber.add(() => still.cancel());
  }

  #assume(why: Why, made: Made, subscriber: Subscriber<unknown>, lastedMs: number, fate?: Fate): void {
    const { assumption, fates, time } = this.#parts;
    const { callId, toolName, own, startMs } = made;
    if (assumption !== 'recorded') this.#doubts.add(why, { callId, toolName, atMs: time.now() });
    const assumed = fate ?? fates.of(assumption, callId, toolName, own, startMs, lastedMs);
    if (assumed.end === 'never') return;
    const task = time.at(time.now() + assumed.afterMs, 0, () => this.#answer(assumed, made, subscriber));
    subscriber.add(() => task.cancel());
  }

  #answer({ end, of }: Pick<Fate, 'end' | 'of'>, { effects }: Made, subscriber: Subscriber<unknown>): void {
    if (end === 'failure') return subscriber.error(failureOf(of, effects));
    subscriber.next({});
    subscriber.complete();
  }
}

/** What an event says of a wait: a call that waits for another time is no more as it was recorded. */
const waitOf = (event: TraceEvent): number | undefined => (event.type === 'decision' ? event.delayMs : undefined);

/** What an attempt fails with that does what another one did. */
const failureOf = (of: RecordedAttempt | undefined, effects: ToolInForce['effects']): Error =>
  of?.error === undefined ? new Error('it failed') : errorOf(of.error, of, effects);
