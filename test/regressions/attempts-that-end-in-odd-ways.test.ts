// Was: an attempt that a cancel ended from within a hook or its own failure was told twice or never, and outputs were
// read too late. Now: each has one signal, one end and its value.
import { NEVER, Observable, lastValueFrom, toArray, type Observer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  abortable,
  createSpillway,
  guard,
  isToolExecutionError,
  tool,
  type SpillwayOptions,
  type ToolEvent,
} from 'spillway';
import { z } from 'zod';

const once = { retry: { maxAttempts: 1 } } as const;

describe('an attempt that ends in an odd way', () => {
  it('R-7.6 has one signal, however often an around runs the tool', async () => {
    const signals = new Set<AbortSignal>();
    const caller = new AbortController();
    const slow = tool({
      name: 'slow',
      execute: (_input, { signal }) => {
        signals.add(signal);
        return NEVER;
      },
    });
    const spillway = createSpillway({
      tools: [slow],
      around: (_callId, _attempt, run) => {
        for (let i = 0; i < 20_000; i++) run();
        return run();
      },
    });
    const answer = spillway.execute({ toolName: 'slow' }, { signal: caller.signal });
    caller.abort();
    expect((await answer).error?.code).toBe('canceled');
    expect([...signals].map(({ aborted }) => aborted)).toStrictEqual([true]);
  });

  it('R-7.6 by itself aborts nothing that an around starts behind it', async () => {
    let refresh: AbortSignal | undefined;
    const kept = tool({ name: 'kept', execute: (_input, { signal }) => void (refresh = signal) });
    const spillway = createSpillway({
      tools: [kept],
      around: (_callId, _attempt, run) => {
        queueMicrotask(() => void run());
        return 'kept';
      },
    });
    expect((await spillway.execute({ toolName: 'kept' })).output?.content).toBe('kept');
    await Promise.resolve();
    expect(refresh?.aborted).toBe(false);
  });

  it('R-8.2 has its output read before its stream is taken down', async () => {
    const cursor = tool({
      name: 'cursor',
      policy: once,
      output: z.object({ rows: z.array(z.number()) }),
      execute: () =>
        new Observable<{ readonly rows: number[] }>((subscriber) => {
          let open = true;
          subscriber.add(() => (open = false));
          queueMicrotask(() => {
            subscriber.next({
              get rows() {
                if (!open) throw new Error('the cursor is closed');
                return [1, 2];
              },
            });
            subscriber.complete();
          });
        }),
    });
    expect((await createSpillway({ tools: [cursor] }).execute({ toolName: 'cursor' })).output?.content).toStrictEqual({
      rows: [1, 2],
    });
  });

  it('R-4.1 by both limits at once is told the hard one', async () => {
    const silent = tool({
      name: 'silent',
      policy: { ...once, timeoutMs: 20, idleTimeoutMs: 20 },
      execute: () => NEVER,
    });
    expect((await createSpillway({ tools: [silent] }).execute({ toolName: 'silent' })).error?.message).toBe(
      'Tool timeout after 20ms',
    );
  });

  const heard = async (options: SpillwayOptions, signal: AbortSignal): Promise<string[]> => {
    const spillway = createSpillway(options);
    const told = lastValueFrom(spillway.trace$.pipe(toArray()));
    await spillway.execute({ toolName: 'tried' }, { signal });
    await spillway.close();
    return (await told).filter((event): event is ToolEvent => event.source === 'call').map(({ type }) => type);
  };

  it('R-11.1 by a cancel from within its own failure is told to the hooks once', async () => {
    const caller = new AbortController();
    const ends: Array<readonly [number, string | undefined]> = [];
    const tried = tool({
      name: 'tried',
      policy: { ...once, breaker: { failureThreshold: 1 } },
      execute: () => Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNRESET' })),
    });
    const spillway = createSpillway({
      tools: [tried],
      hooks: {
        afterToolCall: ({ attempt, error }) =>
          void ends.push([attempt, isToolExecutionError(error) ? error.kind : undefined]),
      },
    });
    spillway.trace$.subscribe(({ type }) => {
      if (type === 'breaker_changed') caller.abort();
    });
    await spillway.execute({ toolName: 'tried' }, { signal: caller.signal });
    expect(ends).toStrictEqual([[1, 'canceled']]);
  });

  it.each([
    ['attempt_succeeded', (): Promise<number> => Promise.resolve(1)],
    ['attempt_failed', (): Promise<number> => Promise.reject(new Error('it broke'))],
  ])('TRC-1 is told as %s, though a hook that hears of it cancels the call', async (end, execute) => {
    const caller = new AbortController();
    const events = await heard(
      { tools: [tool({ name: 'tried', policy: once, execute })], hooks: { afterToolCall: () => caller.abort() } },
      caller.signal,
    );
    expect(events.filter((type) => type.startsWith('attempt_'))).toStrictEqual(['attempt_started', end]);
    expect(events.at(-1)).toBe('settled');
  });

  /** As RxJS 6 tells an observer: through an object that inherits from it. */
  const foreign: Observable<number> = {
    lift: () => foreign,
    subscribe: (observer: Observer<number>) => {
      const own = Object.create(observer) as Observer<number>;
      own.next(1);
      own.complete();
      return { unsubscribe: () => undefined };
    },
  } as unknown as Observable<number>;
  it.each<[string, () => Promise<unknown>]>([
    ['abortable', () => lastValueFrom(abortable(() => foreign))],
    ['guard.from', () => lastValueFrom(guard({ timeoutMs: 1_000 }).from(() => foreign))],
    [
      'a tool',
      async () =>
        (await createSpillway({ tools: [tool({ name: 't', execute: () => foreign })] }).execute({ toolName: 't' }))
          .output?.content,
    ],
  ])('R-4.1 hears a stream of an older RxJS: %s', async (_what, value) => {
    expect(await value()).toBe(1);
  });
});
