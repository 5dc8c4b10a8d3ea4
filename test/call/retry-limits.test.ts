import { createSpillway, tool, ToolExecutionError, type ToolPolicy, type ToolResultEnvelope } from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

/** A tool that fails with one error after the other, the last of them for ever, and when each attempt began. */
const failing = (
  runtime: VirtualRuntime,
  errors: readonly ToolExecutionError[],
  policy: ToolPolicy,
): { readonly result: Promise<ToolResultEnvelope>; readonly startsMs: readonly number[] } => {
  const beginMs = runtime.now();
  const startsMs: number[] = [];
  const flaky = tool({
    name: 'flaky',
    policy: { effects: 'read', breaker: false, ...policy },
    execute: () => {
      startsMs.push(runtime.now() - beginMs);
      throw errors[Math.min(startsMs.length, errors.length) - 1] ?? new Error('no more of them');
    },
  });
  return { result: createSpillway({ tools: [flaky], runtime }).execute({ toolName: 'flaky' }), startsMs };
};

const busy = (retryAfterMs?: number): ToolExecutionError =>
  new ToolExecutionError('execution_error', 'busy', {
    status: 503,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });

describe('a call’s retries', () => {
  it('R-2.1 decorrelated delays grow from the backoff before, not from what a server asked for', async () => {
    // Chance at its highest: three times the one before.
    const runtime: VirtualRuntime = { ...virtualRuntime(), random: () => 1 - Number.EPSILON };
    const retry = {
      strategy: 'decorrelated',
      initialDelayMs: 100,
      maxDelayMs: 60_000,
      maxAttempts: 3,
      maxTotalTimeMs: 600_000,
    } as const;
    const { result, startsMs } = failing(runtime, [busy(10_000), busy()], { retry });
    await runtime.run();
    expect((await result).retriedBy?.map(({ delayMs }) => Math.round(delayMs))).toEqual([10_000, 900]);
    expect(startsMs.map(Math.round)).toEqual([0, 10_000, 10_900]);
  });

  it.each([
    ['in time', 50, 2],
    ['at maxTotalTimeMs', 100, 1],
    ['after it', 250, 1],
  ])('R-2.3 a retry whose wait ends %s, behind a stalled event loop', async (_when, lateMs, attempts) => {
    const runtime = virtualRuntime();
    const retry = {
      strategy: 'constant',
      initialDelayMs: 900,
      maxDelayMs: 900,
      jitterPercent: 0,
      maxAttempts: 2,
      maxTotalTimeMs: 1_000,
    } as const;
    const { result, startsMs } = failing(runtime, [busy()], { retry });
    await runtime.advance(899);
    runtime.stall(1 + lateMs);
    await runtime.run();
    expect(startsMs).toHaveLength(attempts);
    expect(await result).toMatchObject({
      attempts,
      status: attempts === 1 ? 'retriable_error' : 'retry_exhausted',
      durationMs: 900 + lateMs,
    });
  });
});
