// Was: an async iterator that threw where it should reject left an unhandled rejection and a stream without end. Now:
// what it throws is the stream's error, or is dropped after the end.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { abortable } from '../../src/operators/work/abortable.ts';

const boom = new Error('boom');
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(() => void process.off('unhandledRejection', note));

const iterable = (
  next: () => Promise<IteratorResult<number>>,
  end?: () => Promise<IteratorResult<number>>,
): AsyncIterable<number> => ({
  [Symbol.asyncIterator]: () => (end === undefined ? { next } : { next, return: end }),
});

describe('ERR-1 an iterator that throws where it should reject', () => {
  // The throw happened inside a promise's callback, where it became an unhandled rejection and the stream never ended.
  it('in a later next: it is the stream’s error', async () => {
    let calls = 0;
    const events: unknown[] = [];
    const next = (): Promise<IteratorResult<number>> => {
      if (++calls === 2) throw boom;
      return Promise.resolve({ done: false, value: calls });
    };
    abortable(() => iterable(next)).subscribe({
      next: (value) => events.push(value),
      error: (error) => events.push(error),
    });
    await settled();
    expect(events).toStrictEqual([1, boom]);
    expect(unhandled).toStrictEqual([]);
  });

  it('in the first next: it is the stream’s error', async () => {
    const events: unknown[] = [];
    const next = (): never => {
      throw boom;
    };
    abortable(() => iterable(next)).subscribe({ error: (error) => events.push(error) });
    await settled();
    expect(events).toStrictEqual([boom]);
  });

  // The error used to come out of unsubscribe().
  it('in return: nobody is told', async () => {
    const work = abortable(() =>
      iterable(
        () => new Promise(() => undefined),
        () => {
          throw boom;
        },
      ),
    ).subscribe();
    expect(() => work.unsubscribe()).not.toThrow();
    await settled();
    expect(unhandled).toStrictEqual([]);
  });
});
