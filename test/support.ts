import { Observable } from 'rxjs';
import type { Runtime } from '../src/contract/runtime.ts';
import { ToolExecutionError } from '../src/contract/tool-error.ts';
import type { Breaker } from '../src/operators/breaker/breaker.ts';
import type { Admission } from '../src/operators/breaker/permit.ts';

/** A failure that may be retried and that counts against a breaker. */
export const transient: ToolExecutionError = new ToolExecutionError('transport_error', 'connection reset', {
  code: 'ECONNRESET',
});
/** A failure that the dependency itself answered: asking again gives the same. */
export const permanent: ToolExecutionError = new ToolExecutionError('execution_error', 'no such airport', {
  status: 404,
});

/** A runtime with its timers counted, so that a test can see one that is left behind. */
export interface CountingRuntime extends Runtime {
  /** Timers that run now. */
  readonly timers: number;
  /** Timers that were ever started. */
  readonly started: number;
}

export function counting(runtime: Runtime): CountingRuntime {
  let timers = 0;
  let started = 0;
  return {
    ...runtime,
    after: (ms) =>
      new Observable((subscriber) => {
        timers++;
        started++;
        subscriber.add(() => timers--);
        runtime.after(ms).subscribe(subscriber);
      }),
    get timers() {
      return timers;
    },
    get started() {
      return started;
    },
  };
}

/** A clock that a test moves by hand. It starts at no round number, so that nothing can lean on zero. */
export interface HandClock {
  readonly runtime: CountingRuntime;
  /** Lets time pass; timers fire in order, at their own instants. */
  pass(ms: number): void;
  /** The wall clock jumps; monotonic time does not. */
  jumpWall(ms: number): void;
  /** What `random` gives from now on. */
  draw(random: number): void;
}

export function handClock(): HandClock {
  let nowMs = 1_234_567;
  let wallMs = Date.UTC(2026, 0, 1);
  let random = 0.5;
  let timers: Array<{ readonly dueMs: number; readonly fire: () => void }> = [];
  const runtime: Runtime = {
    now: () => nowMs,
    wallNow: () => wallMs,
    random: () => random,
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
  };
  const move = (toMs: number): void => {
    wallMs += toMs - nowMs;
    nowMs = toMs;
  };
  return {
    runtime: counting(runtime),
    pass: (ms) => {
      const untilMs = nowMs + ms;
      for (;;) {
        const [next] = timers.filter(({ dueMs }) => dueMs <= untilMs).toSorted((a, b) => a.dueMs - b.dueMs);
        if (next === undefined) break;
        timers = timers.filter((other) => other !== next);
        move(Math.max(nowMs, next.dueMs));
        next.fire();
      }
      move(untilMs);
    },
    jumpWall: (ms) => {
      wallMs += ms;
    },
    draw: (next) => {
      random = next;
    },
  };
}

/** An admission that a test counts on. */
export function permit(breaker: Breaker): Extract<Admission, { admitted: true }> {
  const admission = breaker.admit();
  if (!admission.admitted) throw new Error(`the breaker is ${breaker.state.type} and did not admit`);
  return admission;
}

export const rejects = (breaker: Breaker): boolean => {
  const admission = breaker.admit();
  if (admission.admitted) admission.release();
  return !admission.admitted;
};

export function fail(breaker: Breaker, times = 1): void {
  for (let i = 0; i < times; i++) permit(breaker).failure(transient);
}

export function succeed(breaker: Breaker, times = 1): void {
  for (let i = 0; i < times; i++) permit(breaker).success();
}
