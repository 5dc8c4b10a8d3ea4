import { createSpillway, plan, type PlanOptions, type TurnEvent } from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { lastValueFrom, type Subscription } from 'rxjs';
import { describe, expect, it } from 'vitest';

const NODES = 2_500;
const BURST = 100;

interface Watched {
  readonly runtime: VirtualRuntime;
  readonly events: readonly TurnEvent[];
  readonly subscription: Subscription;
  count(type: TurnEvent['type']): number;
}

/** A fan of nodes that need nothing, of a tool that answers after `ms`, or with a promise that has its value. */
const watch = (ms: number, options: PlanOptions = {}): Watched => {
  const runtime = virtualRuntime();
  const tool = { name: 'tool', execute: () => (ms === 0 ? Promise.resolve(1) : runtime.after(ms)) };
  const events: TurnEvent[] = [];
  const planned = plan.from(
    Array.from({ length: NODES }, (_, place) => ({ id: `n${place}`, tool })),
    options,
  );
  const subscription = createSpillway({ runtime })
    .turn(planned)
    .subscribe((event) => events.push(event));
  return { runtime, events, subscription, count: (type) => events.filter((event) => event.type === type).length };
};

/** A fan of quick nodes that all need one: how many run at once, at most. */
const mostAtOnce = async (needs: readonly string[]): Promise<number> => {
  const runtime = virtualRuntime();
  let [running, most] = [0, 0];
  const execute = async (): Promise<number> => {
    running++;
    most = Math.max(most, running);
    await Promise.resolve();
    running--;
    return 1;
  };
  const fan = Array.from({ length: NODES }, (_, place) => ({
    id: `n${place}`,
    tool: { name: 'tool', execute },
    needs,
  }));
  const planned = plan.from([{ id: 'first', tool: { name: 'first', execute: () => 1 } }, ...fan]);
  const settled = lastValueFrom(createSpillway({ runtime }).turn(planned));
  await runtime.run();
  expect(await settled).toMatchObject({ result: { status: 'completed', executedTools: NODES + 1 } });
  return most;
};

describe('R-5.2 more ready nodes than start in one go', () => {
  it('R-5.2 all start at one instant, and the event loop has its turn between them', async () => {
    const { runtime, events, count } = watch(10);
    expect(count('node_started')).toBe(BURST);
    await runtime.run();
    const started = events.filter(({ type }) => type === 'node_started');
    expect(started).toHaveLength(NODES);
    expect(new Set(started.map(({ atMs }) => atMs)).size).toBe(1);
    expect(events.at(-1)).toMatchObject({ type: 'settled', result: { status: 'completed', executedTools: NODES } });
    expect(runtime.pending).toBe(0);
  });

  it('R-5.2 quick ones have settled before the last ones start', async () => {
    const { runtime, events } = watch(0);
    await runtime.run();
    const settled = events.findIndex(({ type }) => type === 'node_settled');
    const lastStarted = events.findLastIndex(({ type }) => type === 'node_started');
    expect(settled).toBeLessThan(lastStarted);
    expect(events.at(-1)).toMatchObject({ result: { status: 'completed', executedTools: NODES } });
  });

  it('R-5.2 nodes that one need makes ready together start in bursts, too', async () => {
    expect(await mostAtOnce(['first'])).toBeLessThanOrEqual(BURST);
    expect(await mostAtOnce([])).toBeLessThanOrEqual(BURST);
  });

  it('R-5.2 a limit above the size of a burst holds', async () => {
    const { runtime, events } = watch(10, { concurrency: BURST + 200 });
    let [running, most] = [0, 0];
    await runtime.run();
    for (const { type } of events) {
      if (type === 'node_started') running++;
      if (type === 'node_settled') running--;
      most = Math.max(most, running);
    }
    expect(most).toBe(BURST + 200);
    expect(events.at(-1)).toMatchObject({ result: { executedTools: NODES } });
  });

  it('R-5.2 unsubscribing between bursts starts nothing more and leaves no timer', async () => {
    const { runtime, subscription, count } = watch(10);
    subscription.unsubscribe();
    expect(runtime.pending).toBe(0);
    await runtime.run();
    expect(count('node_started')).toBe(BURST);
  });

  it('R-5.2 a deadline behind a stall finds the rest not started', async () => {
    const { runtime, events, count } = watch(10, { timeoutMs: 5, onDeadline: 'abort' });
    runtime.stall(20);
    await runtime.run();
    expect(count('node_started')).toBe(BURST);
    expect(events.at(-1)).toMatchObject({ type: 'settled', result: { executedTools: BURST } });
    expect(runtime.pending).toBe(0);
  });
});
