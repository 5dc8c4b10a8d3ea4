// Was: in `bestEffort`, a safety-critical failure that may have taken effect was run again, since it was retriable.
// Now: the cached error is the answer.
import { describe, expect, it } from 'vitest';
import type { ToolPolicy } from 'spillway';
import type { DedupeRecord } from 'spillway/contract';
import { decideClaim } from 'spillway/policy';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, watched } from '../spec/tr-02-stores.ts';

describe('R-2.5 safetyCritical forces the refusal', () => {
  it.each([
    ['its tool is safety-critical', { safetyCritical: true }, false, 1],
    ['its caller says so', {}, true, 1],
    ['its resource checks keys, which does not count then', { safetyCritical: true, enforcesKey: true }, false, 1],
    ['nobody says so', {}, false, 2],
  ] as const)(
    'R-2.5 a timeout that may have taken effect, asked again in bestEffort, when %s',
    async (_what, policy: ToolPolicy, hinted, expected) => {
      const runtime = virtualRuntime();
      let runs = 0;
      const { layer } = watched(
        memoryStore({ runtime, sweepMs: Infinity }),
        () => {
          runs++;
          return new Promise(() => undefined);
        },
        { effects: 'mutating', timeoutMs: 100, ...policy },
        { runtime },
      );
      for (const fromCache of [false, expected === 1]) {
        const request = asked({ mode: 'bestEffort' });
        const result = layer.execute({
          ...request,
          payload: { ...request.payload, ...(hinted ? { callHints: { safetyCritical: true } } : {}) },
        });
        await runtime.advance(1_000);
        expect(await result).toMatchObject({ fromCache, error: { code: 'timeout', uncertain: true } });
      }
      expect(runs).toBe(expected);
    },
  );

  it('R-9.4 a failure that took no effect may be run again', () => {
    const request = { sessionKey: 's', actorId: 'a', requestId: 'r', paramsDigest: 'd' };
    const record: DedupeRecord = {
      key: 'k',
      tool: 't',
      idempotencyKey: 'k',
      state: 'failed',
      createdAtMs: 0,
      updatedAtMs: 0,
      expiresAtMs: 9,
      ttlMs: 9,
      request,
      version: 4,
      error: { code: 'timeout', message: '', terminal: false, shouldRetriable: true },
    };
    const question = { key: 'k', tool: 't', mode: 'bestEffort', request, neverTwice: true } as const;
    expect(decideClaim({ record, atMs: 1 }, question)).toEqual({ act: 'take_over', version: 4 });
    expect(
      decideClaim({ record: { ...record, error: { ...record.error, uncertain: true } as never }, atMs: 1 }, question),
    ).toEqual({ act: 'replay' });
  });
});
