// Was: a canceled call whose attempt may have taken effect did not say so, and work that had settled was aborted after
// the fact. Now: it says so, and settled work is left alone.
import { NEVER, Observable, Subject, lastValueFrom, take, toArray, type Observer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { abortable, createSpillway, guard, tool, type SpillwayOptions, type ToolResultEnvelope } from 'spillway';
import { z } from 'zod';

const once = { retry: { maxAttempts: 1 } } as const;
const gone = Object.assign(new Error('gone'), { code: 'ECONNRESET' });

/** A stream of another copy of RxJS 7: it asks its observer whether it still wants more. */
const foreign = (values: Iterable<number>): Observable<number> =>
  ({
    lift: () => foreign(values),
    subscribe: (observer: Observer<number> & { readonly closed?: boolean }) => {
      for (const value of values) {
        if (observer.closed === true) return { unsubscribe: () => undefined };
        observer.next(value);
      }
      observer.complete();
      return { unsubscribe: () => undefined };
    },
  }) as unknown as Observable<number>;
let made = 0;
function* naturals(): Generator<number, void, undefined> {
  for (made = 0; made < 1_000; made++) yield made;
}

describe('what an attempt leaves behind', () => {
  it.each([
    ['abortable', () => abortable(() => foreign(naturals()))],
    ['guard.from', () => guard({ timeoutMs: 1_000 }).from(() => foreign(naturals()))],
  ])('R-4.1 %s stops a stream of another RxJS that nobody wants any more', async (_what, stream) => {
    expect(await lastValueFrom(stream().pipe(take(2), toArray()))).toStrictEqual([0, 1]);
    expect(made).toBeLessThan(1_000);
  });

  /** Runs a tool whose call is canceled by who hears an event, or in the wait before a retry. */
  const canceledAt = async (
    type: string,
    options: Pick<SpillwayOptions, 'hooks'>,
    execute: () => Promise<number>,
  ): Promise<ToolResultEnvelope> => {
    const caller = new AbortController();
    const spillway = createSpillway({
      ...options,
      tools: [tool({ name: 'tried', policy: { timeoutMs: 10, retry: { initialDelayMs: 500 } }, execute })],
    });
    spillway.trace$.subscribe((event) => {
      if (event.type === type) caller.abort();
    });
    return spillway.execute({ toolName: 'tried' }, { signal: caller.signal });
  };
  const never = (): Promise<number> => new Promise(() => undefined);
  it.each<[string, string, () => Promise<number>]>([
    ['after it succeeded', 'attempt_succeeded', () => Promise.resolve(1)],
    ['in the wait after it timed out', 'decision', never],
    ['while it runs', 'attempt_started', never],
  ])('IDEM-5 a call that is canceled %s says that it may have taken effect', async (_when, type, execute) => {
    expect((await canceledAt(type, {}, execute)).error).toMatchObject({ code: 'canceled', uncertain: true });
  });

  it('IDEM-5 a call that is canceled before anything ran, or after what did nothing, does not', async () => {
    const refused = (): Promise<number> => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }));
    expect((await canceledAt('call_started', {}, never)).error?.uncertain).toBeUndefined();
    expect((await canceledAt('decision', {}, refused)).error?.uncertain).toBeUndefined();
  });

  it('IDEM-5 a layer that is closed by who hears of a cancel tells that the attempt may have taken effect', async () => {
    const caller = new AbortController();
    const spillway = createSpillway({ tools: [tool({ name: 'tried', policy: once, execute: () => NEVER })] });
    spillway.trace$.subscribe(({ type }) => {
      if (type === 'attempt_canceled') void spillway.close();
    });
    const answer = spillway.execute({ toolName: 'tried' }, { signal: caller.signal });
    caller.abort();
    expect((await answer).error).toMatchObject({ code: 'canceled', uncertain: true });
  });

  it('R-7.6 work that an around starts behind a failed attempt finds its signal aborted', async () => {
    const signals: AbortSignal[] = [];
    const tried = tool({ name: 'tried', policy: once, execute: (_input, { signal }) => void signals.push(signal) });
    const late = new Subject<() => unknown>();
    late.subscribe((run) => void run());
    const spillway = createSpillway({
      tools: [tried],
      around: (_callId, _attempt, run) => {
        queueMicrotask(() => late.next(run));
        throw gone;
      },
    });
    await spillway.execute({ toolName: 'tried' });
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true]);
  });

  it('R-8.2 an answer counts once, whatever its tool does while it is checked', async () => {
    let reject: (error: unknown) => void = () => undefined;
    let report: () => void = () => undefined;
    const reported: string[] = [];
    const odd = {
      // A promise that is none.
      then: (resolve: (value: object) => void, refuse: (error: unknown) => void) => {
        reject = refuse;
        queueMicrotask(() => resolve({ n: 1 }));
      },
    };
    const tried = tool({
      name: 'tried',
      policy: once,
      output: z.object({ n: z.number() }).refine(() => {
        reject(gone);
        report();
        return true;
      }),
      execute: (_input, { progress }) => {
        report = () => progress({ progress: 1 });
        return odd as unknown as Promise<{ n: number }>;
      },
    });
    const spillway = createSpillway({ tools: [tried] });
    spillway.trace$.subscribe(({ type }) => void reported.push(type));
    expect((await spillway.execute({ toolName: 'tried' })).output?.content).toStrictEqual({ n: 1 });
    expect(reported).not.toContain('progress');
  });

  it.each([
    ['a Promise', (): unknown => Promise.resolve(1)],
    [
      'a stream',
      (): unknown =>
        new Observable((subscriber) =>
          queueMicrotask(() => {
            subscriber.next(1);
            subscriber.complete();
          }),
        ),
    ],
  ])('R-4.1 %s that has settled is not aborted by a cancel from within its schema', async (_what, output) => {
    const caller = new AbortController();
    let signal: AbortSignal | undefined;
    const tried = tool({
      name: 'tried',
      policy: once,
      output: z.unknown().refine(() => {
        caller.abort();
        return true;
      }),
      execute: (_input, context) => {
        signal = context.signal;
        return output();
      },
    });
    expect(
      (await createSpillway({ tools: [tried] }).execute({ toolName: 'tried' }, { signal: caller.signal })).error?.code,
    ).toBe('canceled');
    expect(signal?.aborted).toBe(false);
  });
});
