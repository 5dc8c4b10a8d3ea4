// Was: nothing held that a failed safety-critical call is remembered as long as a success, and one whose caller says so
// was forgotten after 5 minutes. Now: both are remembered for `doneTtlMs`, and replayed, not run again.
import { describe, expect, it } from 'vitest';
import type { ToolPolicy } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, watched } from '../spec/tr-02-stores.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Fails under a key, and asks again after each wait: how often the tool has run by then. */
const runsAfter = async (policy: ToolPolicy, hinted: boolean, waitsMs: readonly number[]): Promise<number[]> => {
  const runtime = virtualRuntime();
  let runs = 0;
  const failing = (): never => {
    runs++;
    throw Object.assign(new Error('declined'), { status: 402 });
  };
  const { layer } = watched(memoryStore({ runtime }), failing, { effects: 'mutating', ...policy }, { runtime });
  const counts: number[] = [];
  for (const waitMs of [0, ...waitsMs]) {
    await runtime.advance(waitMs);
    const request = asked();
    const result = layer.execute({
      ...request,
      payload: { ...request.payload, ...(hinted ? { callHints: { safetyCritical: true } } : {}) },
    });
    await runtime.advance(1_000);
    expect(await result).toMatchObject({ status: 'error', error: { code: 'execution_error' } });
    counts.push(runs);
  }
  return counts;
};

describe('R-2.5 what must never happen twice is not forgotten sooner because it failed', () => {
  it.each<readonly [string, ToolPolicy, boolean]>([
    ['its tool is safety-critical', { safetyCritical: true }, false],
    ['its caller says so', {}, true],
  ])('R-10.2 a failure is replayed after 6 minutes and after 23 hours, when %s', async (_what, policy, hinted) => {
    expect(await runsAfter(policy, hinted, [6 * MINUTE_MS, 23 * HOUR_MS])).toEqual([1, 1, 1]);
  });

  it('R-10.2 it is kept for doneTtlMs, as a success is, and no longer', async () => {
    expect(
      await runsAfter({ safetyCritical: true, dedupe: { doneTtlMs: HOUR_MS } }, false, [
        50 * MINUTE_MS,
        11 * MINUTE_MS,
      ]),
    ).toEqual([1, 1, 2]);
  });

  it('R-10.2 any other failure is forgotten after 5 minutes', async () => {
    expect(await runsAfter({}, false, [4 * MINUTE_MS, 2 * MINUTE_MS])).toEqual([1, 1, 2]);
  });
});
