// Was: a handler's late answer was followed as if no time had passed, and its time was counted as the attempt's. Now:
// deadline and budget are looked at when the answer comes.
import { delay, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { ToolEvent } from '../../src/contract/event.ts';
import { decideRecovery } from '../../src/policy/recovery/decide.ts';
import type { SpillwayOptions } from '../../src/options.ts';
import { createSpillway, type Spillway } from '../../src/spillway.ts';
import { scriptedTool } from '../../src/testing/scripted-tool.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/virtual-runtime.ts';

const unavailable = Object.assign(new Error('unavailable'), { status: 503 });
const retry = {
  strategy: 'constant',
  initialDelayMs: 10,
  jitterPercent: 0,
  maxAttempts: 3,
  maxTotalTimeMs: 100,
} as const;

/**
 * A tool that always fails after 5 ms, and a handler that takes `answerMs` to say what the default would have said at
 * once.
 */
const layer = (runtime: VirtualRuntime, answerMs: number, options: Partial<SpillwayOptions> = {}): Spillway =>
  createSpillway({
    tools: [
      scriptedTool(
        { name: 'down', policy: { retry, breaker: false }, script: [{ afterMs: 5, error: unavailable }] },
        runtime.scheduler,
      ),
    ],
    runtime,
    errorHandler: (failure) => of(decideRecovery(failure)).pipe(delay(answerMs, runtime.scheduler)),
    ...options,
  });

const envelope = (runtime: VirtualRuntime, deadlineInMs: number) =>
  ({
    contractVersion: '1.1',
    requestId: 'r1',
    toolName: 'down',
    toolNamespace: 'tests',
    target: { sessionKey: 's', actorId: 'a' },
    payload: { version: '1.0', params: {} },
    transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 5, maxElapsedMs: 1_000 } },
    control: { deadlineAtMs: runtime.wallNow() + deadlineInMs },
    trace: {},
  }) as const;

const decisions = (events: readonly ToolEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'decision' ? [`${event.strategy} ${event.code}`] : []));

describe('an error handler that answers later', () => {
  it('DL-1 begins no wait that would end after the deadline as it is by then', async () => {
    const runtime = virtualRuntime();
    const events: ToolEvent[] = [];
    // It fails at 5; a wait of 10 would end in time at 15, but the answer comes at 15 and the wait would end at 25.
    layer(runtime, 10)
      .call(envelope(runtime, 20))
      .subscribe((event) => events.push(event));
    await runtime.run();
    expect(decisions(events)).toStrictEqual(['partial turn_deadline']);
  });

  it('RET-4 spends no retry that others have spent meanwhile', async () => {
    const runtime = virtualRuntime();
    const spillway = layer(runtime, 10, { retryBudget: { ratio: 0, minPerSecond: 1, windowMs: 1_000 } });
    const retries: ToolEvent[] = [];
    for (let i = 0; i < 5; i++)
      spillway
        .call({ toolName: 'down' })
        .subscribe((event) =>
          event.type === 'decision' && event.strategy === 'retry' ? retries.push(event) : undefined,
        );
    await runtime.advance(500);
    expect(retries).toHaveLength(1);
  });

  it('TRC-2 does not lengthen the attempt that its result tells of', async () => {
    const runtime = virtualRuntime();
    const result = layer(runtime, 10).execute({ toolName: 'down' });
    await runtime.run();
    expect((await result).retriedBy?.map(({ latencyMs }) => latencyMs)).toStrictEqual([5, 5]);
  });

  it('DL-1 RSC-1 a refusal that waits for it ends with the caller’s signal and leaves no timer', async () => {
    const runtime = virtualRuntime();
    const controller = new AbortController();
    const spillway = layer(runtime, 1_000);
    const result = spillway.execute({ toolName: 'unknown' }, { signal: controller.signal });
    await runtime.advance(10);
    controller.abort();
    expect((await result).error?.code).toBe('canceled');
    spillway.call({ toolName: 'unknown' }).subscribe().unsubscribe();
    expect(runtime.pending).toBe(0);
  });

  it('DL-1 a call whose deadline has passed does not wait for it', async () => {
    const runtime = virtualRuntime();
    let status = '';
    void layer(runtime, 1_000)
      .execute(envelope(runtime, 0))
      .then((result) => (status = result.status));
    await runtime.advance(1);
    expect(status).toBe('timeout');
  });
});
