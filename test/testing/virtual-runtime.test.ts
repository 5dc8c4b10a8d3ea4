import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway } from '../../src/index.ts';
import { scriptedTool, virtualRuntime } from '../../src/testing/index.ts';

describe('virtualRuntime', () => {
  it('moves promise chains of any length along with its timers', async () => {
    const runtime = virtualRuntime();
    const startMs = runtime.now();
    const seen: number[] = [];
    const work = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        await firstValueFrom(runtime.after(10));
        for (let hop = 0; hop < 100; hop++) await Promise.resolve();
        seen.push(runtime.now() - startMs);
      }
    };
    void work();
    await runtime.advance(25);
    expect([seen, runtime.now() - startMs, runtime.pending]).toStrictEqual([[10, 20], 25, 1]);
    await runtime.run();
    expect([seen, runtime.pending]).toStrictEqual([[10, 20, 30], 0]);
  });

  it('keeps the wall clock apart from the monotonic one', () => {
    const runtime = virtualRuntime({ wallMs: 5_000 });
    const startMs = runtime.now();
    runtime.jumpWall(-3_600_000);
    runtime.stall(10);
    expect([runtime.wallNow(), runtime.now() - startMs]).toStrictEqual([5_000 - 3_600_000 + 10, 10]);
  });

  it('gives the same chance and ids for the same seed', () => {
    const draw = (seed: number): unknown[] => {
      const runtime = virtualRuntime({ seed });
      return [runtime.random(), runtime.random(), runtime.id(), runtime.id()];
    };
    expect(draw(4)).toStrictEqual(draw(4));
    expect(draw(5)).not.toStrictEqual(draw(4));
  });

  it('run() says when it would never end', async () => {
    const runtime = virtualRuntime();
    const again = (): void => void runtime.scheduler.after(1, again);
    again();
    await expect(runtime.run(50)).rejects.toThrow('something sets a new one for ever');
  });
});

describe('scriptedTool', () => {
  it('follows its script, the last step again and again', async () => {
    const runtime = virtualRuntime();
    const policy = { timeoutMs: 50, retry: { strategy: 'constant', initialDelayMs: 10, jitterPercent: 0 } } as const;
    const script = [
      { error: new Error('503'), throws: true },
      { hangs: true },
      { afterMs: 20, value: 'ok', as: 'observable', earlierValues: 2 },
      { value: 'at once', as: 'value' },
    ] as const;
    const told: unknown[] = [];
    const flaky = scriptedTool(
      { name: 'flaky', policy, script, answered: ({ value }) => told.push(value) },
      runtime.scheduler,
    );
    const spillway = createSpillway({ tools: [flaky], runtime });
    const [first, startMs] = [spillway.execute({ toolName: 'flaky' }), runtime.now()];
    await runtime.run();
    // Thrown at 0, hung from 10 to 60, answered from 70 to 90.
    expect(await first).toMatchObject({ status: 'success', attempts: 3, durationMs: 90, output: { content: 'ok' } });
    expect(runtime.now() - startMs).toBe(90);
    expect((await spillway.execute({ toolName: 'flaky' })).output?.content).toBe('at once');
    expect((await spillway.execute({ toolName: 'flaky' })).output?.content).toBe('at once');
    expect(told).toStrictEqual([undefined, 'ok', 'at once', 'at once']);
  });

  it('answers late when it ignores its signal, and not at all when it minds it', async () => {
    for (const ignoresSignal of [true, false]) {
      const runtime = virtualRuntime();
      const told: unknown[] = [];
      const slow = scriptedTool(
        {
          name: 'slow',
          policy: { timeoutMs: 10, retry: { maxAttempts: 1 } },
          script: [{ afterMs: 50, value: 'late', ignoresSignal }],
          answered: ({ value }) => told.push(value),
        },
        runtime.scheduler,
      );
      const result = createSpillway({ tools: [slow], runtime }).execute({ toolName: 'slow' });
      await runtime.run();
      expect((await result).status).toBe('timeout');
      expect(told).toStrictEqual(ignoresSignal ? ['late'] : []);
    }
  });
});
