import { NEVER, Observable, map, of, switchMap, throwError } from 'rxjs';
import type { Context } from 'rxjs-marbles';
import {
  createSpillway,
  tool,
  type AnyTool,
  type NodeResult,
  type Plan,
  type Spillway,
  type SpillwayOptions,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolEvent,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
  type TurnEvent,
  type TurnOptions,
  type TurnResult,
} from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { counting, type CountingRuntime } from '../support.ts';

/** What one attempt at a scripted tool does. */
export type Step = (runtime: CountingRuntime) => Observable<unknown>;

/** Answers after a while; at once, and synchronously, with 0. */
export const answers =
  (afterMs: number, value: unknown = 'ok'): Step =>
  (runtime) =>
    afterMs === 0 ? of(value) : runtime.after(afterMs).pipe(map(() => value));
export const fails =
  (afterMs: number, error: unknown): Step =>
  (runtime) =>
    afterMs === 0 ? throwError(() => error) : runtime.after(afterMs).pipe(switchMap(() => throwError(() => error)));
/** Never answers, and never looks at its signal. */
export const hangs: Step = () => NEVER;

/** No jitter, no wait: every attempt follows at once. */
export const noBackoff = { initialDelayMs: 0, jitterPercent: 0 } as const;
/** The defaults of the interactive profile with round delays. */
export const noJitter = { jitterPercent: 0 } as const;
export const once = { maxAttempts: 1 } as const;

/** A tool that follows a script, the last step over and over, and what was seen of it. */
export interface Scripted {
  readonly tool: AnyTool;
  readonly starts: number[];
  readonly aborts: number[];
  readonly inputs: unknown[];
}

/** A stream as it was seen. */
export interface Seen<T> {
  readonly events: T[];
  /** When it completed or failed. */
  endedAtMs: number | undefined;
  error: unknown;
  unsubscribe(): void;
}

const isGreeting = (event: unknown): boolean =>
  typeof event === 'object' && event !== null && 'type' in event && event.type === 'layer_started';

export class World {
  readonly runtime: CountingRuntime;
  readonly #m: Context;

  constructor(m: Context, seed = 1) {
    this.#m = m;
    this.runtime = counting(runtimeOn(m.scheduler, seed));
  }

  scripted(name: string, steps: readonly Step[], policy: ToolPolicy = {}): Scripted {
    const starts: number[] = [];
    const aborts: number[] = [];
    const inputs: unknown[] = [];
    const scripted = tool({
      name,
      policy,
      execute: (input: unknown, { signal }) => {
        const step = steps[Math.min(starts.length, steps.length - 1)] ?? hangs;
        starts.push(this.runtime.now());
        inputs.push(input);
        signal.addEventListener('abort', () => aborts.push(this.runtime.now()));
        return step(this.runtime);
      },
    });
    return { tool: scripted, starts, aborts, inputs };
  }

  layer(tools: ReadonlyArray<AnyTool | Scripted>, options: SpillwayOptions = {}): Spillway {
    return createSpillway({
      runtime: this.runtime,
      tools: tools.map((given) => ('starts' in given ? given.tool : given)),
      ...options,
    });
  }

  /**
   * Of a trace, what happens: the policies in force, which it begins with for each who listens, have tests of their
   * own.
   */
  watch<T>(source: Observable<T>): Seen<T> {
    const events: T[] = [];
    const seen: Seen<T> = {
      events,
      endedAtMs: undefined,
      error: undefined,
      unsubscribe: () => subscription.unsubscribe(),
    };
    const subscription = source.subscribe({
      next: (event) => void (isGreeting(event) || events.push(event)),
      error: (error: unknown) => {
        seen.error = error;
        seen.endedAtMs = this.runtime.now();
      },
      complete: () => (seen.endedAtMs = this.runtime.now()),
    });
    return seen;
  }

  /** Does something at an instant. */
  at(ms: number, action: () => void): void {
    this.runtime.after(ms).subscribe(action);
  }

  /** Lets all virtual time pass. */
  flush(): void {
    this.#m.flush();
  }

  call(
    layer: Spillway,
    request: ToolCallRequest | ToolCallEnvelope | string,
    signal?: AbortSignal,
  ): ToolResultEnvelope {
    const seen = this.watch(
      layer.call(typeof request === 'string' ? { toolName: request } : request, signal === undefined ? {} : { signal }),
    );
    this.flush();
    return resultOf(seen.events);
  }

  turn(
    layer: Spillway,
    planned: Plan<unknown>,
    options: TurnOptions = {},
  ): TurnResult & { readonly settledAtMs: number } {
    const seen = this.watch(layer.turn(planned as Plan, options));
    this.flush();
    return { ...turnResultOf(seen.events), settledAtMs: seen.endedAtMs ?? NaN };
  }
}

export function resultOf(events: readonly TraceEvent[]): ToolResultEnvelope {
  const last = events.at(-1);
  if (last?.source !== 'call' || last.type !== 'settled') throw new Error(`the call's last event is ${last?.type}`);
  return last.result;
}

export function turnResultOf(events: readonly TurnEvent[]): TurnResult {
  const last = events.at(-1);
  if (last?.source !== 'turn' || last.type !== 'settled') throw new Error(`the turn's last event is ${last?.type}`);
  return last.result;
}

export const states = ({ nodes }: TurnResult): Record<string, string> =>
  Object.fromEntries(nodes.map(({ id, state }) => [id, state]));

export function nodeOf({ nodes }: TurnResult, id: string): NodeResult {
  const found = nodes.find((node) => node.id === id);
  if (found === undefined) throw new Error(`there is no node ${id}`);
  return found;
}

/** The events of one type. */
export const typed = <E extends TraceEvent, K extends E['type']>(
  events: readonly E[],
  type: K,
): Array<Extract<E, { type: K }>> => events.filter((event): event is Extract<E, { type: K }> => event.type === type);

/** The messages of events that have one. */
export const messages = (events: readonly TraceEvent[]): string[] =>
  events.flatMap((event) => ('message' in event && event.message !== undefined ? [event.message] : []));

/** A whole envelope, to be changed in parts. */
export const envelope = (toolName: string, parts: Partial<ToolCallEnvelope> = {}): ToolCallEnvelope => ({
  contractVersion: '1.1',
  requestId: '01890a5d-ac96-774b-bcce-b302099a8057',
  toolName,
  toolNamespace: 'travel',
  target: { sessionKey: 'session-1', actorId: 'ada' },
  payload: { version: '1.0', params: {} },
  transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 5, maxElapsedMs: 2_000 } },
  control: {},
  trace: {},
  ...parts,
});

/** Ends of attempts, and breaks of the trace's own rules (TRC-1): none of them is what a test wants. */
export function traceFaults(events: readonly TraceEvent[]): string[] {
  const faults: string[] = [];
  const running = new Map<string, number>();
  const settled = new Set<string>();
  events.forEach((event, index) => {
    const before = events[index - 1];
    if (before !== undefined && event.seq !== before.seq + 1) faults.push(`${before.seq} is followed by ${event.seq}`);
    if (before !== undefined && event.atMs < before.atMs) faults.push(`time goes back at ${event.seq}`);
    if (event.source !== 'call') return;
    const { callId, type } = event;
    if (settled.has(callId)) faults.push(`${type} after the end of ${callId}`);
    if (type === 'settled') settled.add(callId);
    if (type === 'attempt_started') {
      if (running.has(callId)) faults.push(`attempt ${event.attempt} of ${callId} overlaps`);
      running.set(callId, event.attempt);
    }
    if (type === 'attempt_succeeded' || type === 'attempt_failed' || type === 'attempt_canceled') {
      if (running.get(callId) !== event.attempt)
        faults.push(`attempt ${event.attempt} of ${callId} ended without a start`);
      running.delete(callId);
    }
  });
  for (const [callId, attempt] of running) faults.push(`attempt ${attempt} of ${callId} has no end`);
  return faults;
}

export type { CountingRuntime, ToolEvent };

/**
 * A clock that jumps: what came due meanwhile fires late, in order, at the instant of the jump, and what it adds comes
 * after it.
 */
export function stallingClock(): { readonly runtime: CountingRuntime; stall(ms: number): void } {
  let nowMs = 1_000;
  let timers: Array<{ readonly dueMs: number; readonly fire: () => void }> = [];
  const runtime = counting({
    now: () => nowMs,
    wallNow: () => nowMs,
    random: () => 0.5,
    id: () => '00000000-0000-7000-8000-000000000001',
    after: (ms) =>
      new Observable((subscriber) => {
        const timer = {
          dueMs: nowMs + ms,
          fire: () => {
            subscriber.next(0);
            subscriber.complete();
          },
        };
        timers.push(timer);
        return () => {
          timers = timers.filter((other) => other !== timer);
        };
      }),
  });
  return {
    runtime,
    stall: (ms) => {
      nowMs += ms;
      for (;;) {
        const [next] = timers.filter(({ dueMs }) => dueMs <= nowMs).toSorted((a, b) => a.dueMs - b.dueMs);
        if (next === undefined) return;
        next.fire();
      }
    },
  };
}
