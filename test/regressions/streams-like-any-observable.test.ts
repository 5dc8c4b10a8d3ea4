// Was: streams of our operators kept observers that had left, lost errors of teardowns, broke behind a Proxy and
// ignored switches of RxJS. Now: they behave as any Observable does. The older ways of RxJS are to be heeded, so they
// are switched on here.
/* oxlint-disable typescript/no-deprecated */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Observable, Subscription, config, finalize, of, repeat, take, timer, throwError, type Observer } from 'rxjs';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, guard, retryBackoff } from '../../src/index.ts';
import { afterEach, describe, expect, it } from 'vitest';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const collected = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
};
const limited = guard({ timeoutMs: 50_000 });

describe('a stream of an operator is like any Observable', () => {
  afterEach(() => {
    config.onUnhandledError = null;
    config.useDeprecatedNextContext = false;
    config.useDeprecatedSynchronousErrorHandling = false;
  });

  it.each([
    ['a guard', (work: () => Promise<number>) => limited.from(work)],
    ['abortable', (work: () => Promise<number>) => abortable(work)],
  ])('RSC-1 work that hangs does not keep the observer that left, behind %s', async (_what, make) => {
    const held: unknown[] = [];
    const hang = (): Promise<number> => {
      const never = new Promise<number>(() => undefined);
      held.push(never);
      return never;
    };
    const left = (): WeakRef<object> => {
      const observer = { next: () => undefined };
      make(hang).subscribe(observer).unsubscribe();
      return new WeakRef(observer);
    };
    const ref = left();
    await collected();
    expect(held).toHaveLength(1);
    expect(ref.deref()).toBeUndefined();
  });

  it('RSC-1 a subscription that is kept does not keep its observer once it has ended', async () => {
    const ended = (): [Subscription, WeakRef<object>] => {
      const observer = { next: () => undefined };
      return [of(1).pipe(limited).subscribe(observer), new WeakRef(observer)];
    };
    const [subscription, ref] = ended();
    await collected();
    expect(subscription.closed).toBe(true);
    expect(ref.deref()).toBeUndefined();
  });

  it('RSC-1 every teardown that throws is told', () => {
    const subscription = new Observable(() => () => {
      throw new Error('of the source');
    })
      .pipe(limited)
      .subscribe();
    subscription.add(() => {
      throw new Error('added');
    });
    let errors: unknown[] = [];
    try {
      subscription.unsubscribe();
    } catch (thrown) {
      errors = (thrown as { errors: Error[] }).errors.map(({ message }) => message);
    }
    expect(errors).toEqual(['of the source', 'added']);
  });

  it('RSC-1 what is removed while it is torn down still runs', () => {
    const seen: string[] = [];
    const added = (): void => void seen.push('added');
    const subscription: Subscription = new Observable(() => () => {
      seen.push('source');
      subscription.remove(added);
    })
      .pipe(limited)
      .subscribe();
    subscription.add(added);
    subscription.unsubscribe();
    expect(seen).toEqual(['source', 'added']);
  });

  it.each([
    ['guard', limited],
    ['attemptTimeout', attemptTimeout(50_000)],
    ['circuitBreaker', circuitBreaker(createBreaker())],
    ['retryBackoff', retryBackoff()],
  ] as const)('a stream of %s may be behind a Proxy', (_name, operator) => {
    const seen: unknown[] = [];
    new Proxy(of(1).pipe(operator), {}).subscribe({
      next: (value) => seen.push(value),
      error: (error) => seen.push(error),
    });
    expect(seen).toEqual([1]);
  });

  it('ERR-1 callbacks that are false are none', async () => {
    const unhandled: unknown[] = [];
    config.onUnhandledError = (error) => unhandled.push(error);
    of(1)
      .pipe(limited)
      .subscribe({ next: false, complete: false } as unknown as Partial<Observer<number>>);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).toEqual([]);
  });

  it('config.useDeprecatedSynchronousErrorHandling is heeded', () => {
    config.useDeprecatedSynchronousErrorHandling = true;
    expect(() =>
      throwError(() => new Error('at once'))
        .pipe(limited)
        .subscribe(),
    ).toThrow('at once');
  });

  it('config.useDeprecatedNextContext is heeded', () => {
    config.useDeprecatedNextContext = true;
    const seen: number[] = [];
    of(1, 2)
      .pipe(limited)
      .subscribe({
        next(this: Subscription, value: number) {
          seen.push(value);
          this.unsubscribe();
        },
      } as Partial<Observer<number>>);
    expect(seen).toEqual([1]);
  });

  it('RSC-1 what is observer and subscription is used as it is', () => {
    const own = new Subscription();
    let torn = false;
    const duck = {
      next: () => undefined,
      error: () => undefined,
      complete: () => undefined,
      closed: false,
      add: (what: () => void) => own.add(what),
      remove: () => undefined,
      unsubscribe: () => own.unsubscribe(),
    };
    new Observable(() => () => {
      torn = true;
    })
      .pipe(limited)
      .subscribe(duck);
    duck.unsubscribe();
    expect(torn).toBe(true);
  });

  it('work of abortable is called without a this, guarded or not', () => {
    const seen: unknown[] = [];
    const work = function (this: unknown): number {
      seen.push(this);
      return 1;
    };
    abortable(work).subscribe();
    abortable(work).pipe(limited).subscribe();
    expect(seen).toEqual([undefined, undefined]);
  });
});

describe('composed and fused take down in the same order', () => {
  const ways = [
    [
      'composed',
      (source: Observable<number>) =>
        source.pipe(attemptTimeout(50_000), circuitBreaker(createBreaker()), retryBackoff()),
    ],
    ['fused', (source: Observable<number>) => source.pipe(guard({ timeoutMs: 50_000, breaker: {}, retry: {} }))],
  ] as const;

  it.each(ways)('RSC-1 %s: the source is torn down before what comes after it', async (_way, guarded) => {
    const seen: string[] = [];
    const source = new Observable<number>((subscriber) => {
      subscriber.add(() => seen.push('torn down'));
      timer(1).subscribe(() => subscriber.complete());
    });
    await new Promise<void>((resolve) =>
      guarded(source)
        .pipe(
          finalize(() => {
            seen.push('finalize');
            setTimeout(resolve);
          }),
        )
        .subscribe(),
    );
    expect(seen).toEqual(['torn down', 'finalize']);
  });

  it.each(ways)('RET-2 %s: never two subscriptions to the source at once', async (_way, guarded) => {
    let [open, most] = [0, 0];
    const source = new Observable<number>((subscriber) => {
      most = Math.max(most, ++open);
      subscriber.add(() => open--);
      timer(1).subscribe(() => subscriber.complete());
    });
    await new Promise<void>((resolve) => guarded(source).pipe(repeat(3), take(9)).subscribe({ complete: resolve }));
    expect(most).toBe(1);
  });
});
