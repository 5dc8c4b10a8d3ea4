import { NEVER, Observable, Subject, of, range, take, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ToolOutput } from '../../src/contract/output.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { marbles } from '../marbles.ts';

interface Run<T> {
  readonly signals: AbortSignal[];
  readonly events: Array<T | string | Error>;
  readonly stop: () => void;
}

const run = <T>(start: (signal: AbortSignal) => ToolOutput<T>): Run<T> => {
  const signals: AbortSignal[] = [];
  const events: Array<T | string | Error> = [];
  const work = abortable((signal) => {
    signals.push(signal);
    return start(signal);
  }).subscribe({
    next: (value) => events.push(value),
    error: (error: Error) => events.push(error),
    complete: () => events.push('|'),
  });
  return { signals, events, stop: () => work.unsubscribe() };
};
/** Lets all promises that can settle do so. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const boom = new Error('boom');

/** An async iterable that says what is done to it. */
const scripted = (
  steps: ReadonlyArray<() => Promise<IteratorResult<number>>>,
  log: string[],
  end: () => Promise<IteratorResult<number>>,
): AsyncIterable<number> => ({
  [Symbol.asyncIterator]: () => {
    let step = 0;
    return {
      next: () => {
        log.push('next');
        return steps[step++]?.() ?? Promise.resolve({ done: true, value: undefined });
      },
      return: () => {
        log.push('return');
        return end();
      },
    };
  },
});
const give = (value: number) => (): Promise<IteratorResult<number>> => Promise.resolve({ done: false, value });
const pending = (): Promise<never> => new Promise(() => undefined);
const ended = (): Promise<IteratorResult<number>> => Promise.resolve({ done: true, value: undefined });

describe('R-4.2 what the work may give', () => {
  it.each([
    ['a string', 'text'],
    ['an array, whole', [1, 2]],
    ['null', null],
    ['nothing', undefined],
    ['zero', 0],
    ['an object', { a: 1 }],
  ])('%s is a value', (_name, value) => {
    const { signals, events, stop } = run<unknown>(() => value);
    expect(events).toStrictEqual([value, '|']);
    stop();
    expect(signals[0]?.aborted).toBe(false);
  });

  it('a promise is its value', async () => {
    const { signals, events } = run(() => Promise.resolve(1));
    await settled();
    expect(events).toStrictEqual([1, '|']);
    expect(signals[0]?.aborted).toBe(false);
  });

  it('a rejection is the error', async () => {
    const { signals, events } = run(() => Promise.reject(boom));
    await settled();
    expect(events).toStrictEqual([boom]);
    expect(signals[0]?.aborted).toBe(false);
  });

  it('a thenable is a promise', async () => {
    class Thenable {
      then(settle: (value: number) => void): void {
        settle(1);
      }
    }
    const { events } = run<unknown>(() => new Thenable());
    await settled();
    expect(events).toStrictEqual([1, '|']);
  });

  it(
    'a stream is itself',
    marbles((m) => {
      const source = m.cold<string>('-a-b|');
      const subs = '                 ^---!';
      const expected = '             -a-b|';
      m.expect(abortable(() => source)).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('an async iterable is pulled, one after the other, and not returned once it is done', async () => {
    const log: string[] = [];
    const { events } = run(() => scripted([give(1), give(2)], log, ended));
    await settled();
    expect(events).toStrictEqual([1, 2, '|']);
    expect(log).toStrictEqual(['next', 'next', 'next']);
  });

  it('an async generator’s throw is the error', async () => {
    const { events, signals } = run(async function* () {
      yield 1;
      await Promise.resolve();
      throw boom;
    });
    await settled();
    expect(events).toStrictEqual([1, boom]);
    expect(signals[0]?.aborted).toBe(false);
  });

  it('R-2.1 a synchronous throw lands in the error channel', () => {
    const { events, signals } = run(() => {
      throw boom;
    });
    expect(events).toStrictEqual([boom]);
    expect(signals[0]?.aborted).toBe(false);
  });

  it('a getter that throws is a synchronous throw too', () => {
    const hostile = Object.defineProperty({}, 'then', {
      get: () => {
        throw boom;
      },
    });
    expect(run<object>(() => hostile).events).toStrictEqual([boom]);
  });
});

describe('R-4.2 the signal', () => {
  it('is fresh for each subscription', () => {
    const signals: AbortSignal[] = [];
    const work = abortable((signal) => {
      signals.push(signal);
      return NEVER;
    });
    const first = work.subscribe();
    const second = work.subscribe();
    first.unsubscribe();
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, false]);
    second.unsubscribe();
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, true]);
  });

  it('nothing starts before it is subscribed', () => {
    let started = 0;
    abortable(() => started++);
    expect(started).toBe(0);
  });

  it('is aborted when a promise is unsubscribed, and what it gives then is dropped', async () => {
    for (const late of [() => Promise.resolve(1), () => Promise.reject<number>(boom)]) {
      const { signals, events, stop } = run(late);
      stop();
      expect(signals[0]?.aborted).toBe(true);
      await settled();
      expect(events).toStrictEqual([]);
    }
  });

  it('is aborted when a stream is unsubscribed after a value but before its end', () => {
    const source = new Subject<number>();
    const { signals, events, stop } = run(() => source);
    source.next(1);
    stop();
    expect(signals[0]?.aborted).toBe(true);
    expect(source.observed).toBe(false);
    expect(events).toStrictEqual([1]);
  });

  it('is not aborted after a stream completed or failed', () => {
    for (const source of [of(1), throwError(() => boom)]) {
      const { signals, stop } = run(() => source);
      stop();
      expect(signals[0]?.aborted).toBe(false);
    }
  });

  it('is aborted once, in the instant of unsubscribing, before an iterable is returned', async () => {
    const log: string[] = [];
    const { stop, events } = run((signal) => {
      signal.addEventListener('abort', () => log.push('abort'));
      return scripted([give(1), pending], log, ended);
    });
    await settled();
    stop();
    stop();
    expect(events).toStrictEqual([1]);
    expect(log).toStrictEqual(['next', 'next', 'abort', 'return']);
  });

  it('take(1) of an async iterable returns it and asks for no more', async () => {
    const log: string[] = [];
    const seen: number[] = [];
    abortable(() => scripted([give(1), give(2)], log, ended))
      .pipe(take(1))
      .subscribe((value) => seen.push(value));
    await settled();
    expect(seen).toStrictEqual([1]);
    expect(log).toStrictEqual(['next', 'return']);
  });

  it('a return that rejects or is missing disturbs nobody', async () => {
    const log: string[] = [];
    const rejecting = run(() => scripted([pending], log, () => Promise.reject(boom)));
    rejecting.stop();
    const missing = run<number>(() => ({ [Symbol.asyncIterator]: () => ({ next: pending }) }));
    missing.stop();
    await settled();
    expect(log).toStrictEqual(['next', 'return']);
  });

  it('work that is unsubscribed while it starts is aborted', () => {
    const signals: AbortSignal[] = [];
    const stop = new Subject<void>();
    const work = abortable((signal) => {
      signals.push(signal);
      stop.next();
      return NEVER;
    });
    const subscription = new Observable((subscriber) => {
      stop.subscribe(() => subscriber.unsubscribe());
      work.subscribe(subscriber);
    }).subscribe();
    expect(subscription.closed).toBe(true);
    expect(signals[0]?.aborted).toBe(true);
  });

  it('an endless synchronous stream ends where it is no longer wanted', () => {
    const seen: number[] = [];
    abortable(() => range(0, Infinity))
      .pipe(take(3))
      .subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual([0, 1, 2]);
  });
});
