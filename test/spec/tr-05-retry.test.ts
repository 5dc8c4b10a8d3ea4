import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type ToolCallEnvelope, type ToolResultEnvelope } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { asked, places, records, watched } from './tr-02-stores.ts';

/** CLAW's own numbers: 4 attempts within 30 s. */
const patient = (parts: Parameters<typeof asked>[0]): ToolCallEnvelope => ({
  ...asked(parts),
  transport: { dedupeMode: parts?.mode ?? 'disabled', retryBudget: { maxAttempts: 4, maxElapsedMs: 30_000 } },
});

const recover = async (seed: number): Promise<ToolResultEnvelope> => {
  const runtime = virtualRuntime({ seed });
  let attempts = 0;
  // The first attempt times out, the second loses its connection, the third is well.
  const flaky = tool({
    name: 't',
    policy: { timeoutMs: 1_000 },
    execute: (): unknown => {
      attempts++;
      if (attempts === 1) return new Promise(() => undefined);
      if (attempts === 2) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
      return 'well';
    },
  });
  const result = createSpillway({ tools: [flaky], runtime, profile: 'resilient' }).execute(patient({}));
  await runtime.run();
  return result;
};

describe('TR-5 a retriable transport error', () => {
  it('TR-5 two failures, then success: exactly 3 attempts, and success at the end', async () => {
    const result = await recover(1);
    expect(result).toMatchObject({ status: 'success', attempts: 3, fromCache: false, output: { content: 'well' } });
    expect(result.retriedBy).toMatchObject([
      { attempt: 1, reasonCode: 'timeout', latencyMs: 1_000 },
      { attempt: 2, reasonCode: 'transport_error', latencyMs: 0 },
    ]);
    const waited = (result.retriedBy ?? []).reduce((sum, { delayMs, latencyMs }) => sum + delayMs + latencyMs, 0);
    expect(result.durationMs).toBeCloseTo(waited, 6);
  });

  it('TR-5 exponential full jitter: random(0, 200 * 2^n), the whole range and no constant', async () => {
    const delays = await Promise.all(
      Array.from({ length: 200 }, async (_, seed) =>
        ((await recover(seed)).retriedBy ?? []).map(({ delayMs }) => delayMs),
      ),
    );
    for (const [n, cap] of [200, 400].entries()) {
      const drawn = delays.map((pair) => pair[n] ?? NaN);
      expect(drawn.every((delay) => delay >= 0 && delay <= cap)).toBe(true);
      expect(Math.min(...drawn)).toBeLessThan(cap * 0.1);
      expect(Math.max(...drawn)).toBeGreaterThan(cap * 0.9);
      expect(new Set(drawn).size).toBeGreaterThan(190);
      expect(drawn.reduce((sum, delay) => sum + delay, 0) / drawn.length).toBeCloseTo(cap / 2, -1.7);
    }
  });

  it('TR-5 when all is well the first attempt is the only one', async () => {
    const layer = createSpillway({ tools: [tool({ name: 't', execute: () => 1 })], profile: 'resilient' });
    const result = await layer.execute(patient({}));
    expect(result).toMatchObject({ status: 'success', attempts: 1 });
    expect(result.retriedBy).toBeUndefined();
  });
});

describe.each(places())('TR-5 on %s', (_name, placeOf) => {
  it('TR-5 all attempts are one claim, and the record tells each of them', async () => {
    const place = await placeOf();
    const store = await place.open();
    let runs = 0;
    const fences: unknown[] = [];
    const { layer, steps } = watched(
      store,
      (_input, { fence }) => {
        fences.push(fence);
        if (++runs < 3) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        return 'well';
      },
      { retry: { initialDelayMs: 5, jitterPercent: 0 } },
    );
    expect(await layer.execute(patient({ mode: 'enforced' }))).toMatchObject({ status: 'success', attempts: 3 });
    expect(await layer.execute(patient({ mode: 'enforced' }))).toMatchObject({
      status: 'success',
      attempts: 0,
      fromCache: true,
    });
    expect(steps()).toEqual(['claimed', 'recorded', 'replayed']);
    expect(new Set(fences).size).toBe(1);
    const [record] = await records(store);
    expect(record).toMatchObject({
      state: 'done',
      execution: {
        attemptCount: 3,
        attempts: [
          { status: 'error', retriable: true, errorCode: 'transport_error' },
          { status: 'error' },
          { status: 'success' },
        ],
      },
    });
    for (const { startedAtMs, finishedAtMs } of record?.execution?.attempts ?? [])
      expect(finishedAtMs).toBeGreaterThanOrEqual(startedAtMs);
  });
});
