import fc from 'fast-check';
import { Observable, Subject, config, lastValueFrom, map, type Observer, type Subscriber } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { endWith } from '../../src/operators/consumer.ts';
import { DirectStream } from '../../src/operators/direct-stream.ts';

type Step = 'next' | 'error' | 'complete' | 'throw';

/** What a source does, step by step, whoever has gone meanwhile; what ends with it is noted. */
const play = (steps: readonly Step[], seen: unknown[]) => (subscriber: Subscriber<number>): void => {
  endWith(subscriber, { unsubscribe: () => seen.push('torn down') });
  endWith(subscriber, { unsubscribe: () => seen.push('this too') });
  for (const [n, step] of steps.entries()) {
    if (step === 'throw') throw new Error(`thrown at ${n}`);
    if (step === 'next') subscriber.next(n);
    else if (step === 'error') subscriber.error(new Error(`failed at ${n}`));
    else subscriber.complete();
    seen.push(`closed ${subscriber.closed}`);
  }
};

interface Manners {
  /** Which callbacks there are, and whether they throw. */
  readonly next?: boolean;
  readonly error?: boolean;
  readonly complete?: boolean;
  readonly form: 'observer' | 'functions' | 'subject' | 'piped' | 'none';
}

const observe = (source: Observable<number>, { form, ...throws }: Manners, seen: unknown[]): void => {
  const callback = (name: string, throwing: boolean | undefined): ((value?: unknown) => void) | undefined =>
    throwing === undefined
      ? undefined
      : (value) => {
          seen.push([name, value instanceof Error ? value.message : value]);
          if (throwing) throw new Error(`${name} of the observer`);
        };
  const { next, error, complete } = { next: callback('next', throws.next), error: callback('error', throws.error), complete: callback('complete', throws.complete) };
  const observer = Object.fromEntries(Object.entries({ next, error, complete }).filter(([, called]) => called !== undefined)) as Partial<Observer<number>>;
  if (form === 'none') source.subscribe();
  // What callers of old do.
  // oxlint-disable-next-line typescript/no-deprecated
  else if (form === 'functions') source.subscribe(next, error, complete);
  else if (form === 'piped') source.pipe(map((n) => n * 2)).subscribe(observer);
  else if (form === 'observer') seen.push(source.subscribe(observer).closed);
  else {
    const subject = new Subject<number>();
    subject.subscribe(observer);
    source.subscribe(subject);
  }
};

describe('DirectStream', () => {
  const unhandled: unknown[] = [];

  beforeEach(() => {
    vi.useFakeTimers();
    unhandled.length = 0;
    config.onUnhandledError = (thrown) => unhandled.push((thrown as Error).message);
  });
  afterEach(() => {
    vi.useRealTimers();
    config.onUnhandledError = null;
  });

  it('is heard as any Observable is, whatever source and observer do', () => {
    const manners = fc.record({ next: fc.boolean(), error: fc.boolean(), complete: fc.boolean(), form: fc.constantFrom('observer', 'functions', 'subject', 'piped', 'none') }, { requiredKeys: ['form'] });
    fc.assert(
      fc.property(fc.array(fc.constantFrom<Step>('next', 'error', 'complete', 'throw'), { maxLength: 5 }), manners, (steps, manner) => {
        const heard = (make: (begin: (subscriber: Subscriber<number>) => void) => Observable<number>): unknown[] => {
          const seen: unknown[] = [];
          unhandled.length = 0;
          observe(make(play(steps, seen)), manner, seen);
          vi.runAllTimers();
          return [...seen, 'unhandled', ...unhandled];
        };
        expect(heard((begin) => new DirectStream(begin))).toEqual(heard((begin) => new Observable(begin)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('ends what was begun when it is unsubscribed, once, in order, and also what is added after that', () => {
    const seen: string[] = [];
    let given: Subscriber<number> | undefined;
    const subscription = new DirectStream((subscriber) => {
      given = subscriber;
      endWith(subscriber, { unsubscribe: () => seen.push('first') });
    }).subscribe({ next: () => seen.push('next') });
    subscription.unsubscribe();
    subscription.unsubscribe();
    given?.next(1);
    if (given !== undefined) endWith(given, { unsubscribe: () => seen.push('late') });
    expect(seen).toEqual(['first', 'late']);
  });

  it('gives its value to a Promise', async () => {
    await expect(lastValueFrom(new DirectStream<number>((subscriber) => { subscriber.next(7); subscriber.complete(); }))).resolves.toBe(7);
  });
});
