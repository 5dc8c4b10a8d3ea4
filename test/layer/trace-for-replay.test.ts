import { describe, expect, it } from 'vitest';
import { createSpillway, plan, ToolExecutionError, tool, type TraceEvent } from 'spillway';
import { backoffDelayMs } from 'spillway/policy';
import { virtualRuntime } from 'spillway/testing';

const failing = (error: unknown) =>
  tool({
    name: 'failing',
    dependency: 'api',
    policy: { effects: 'read', retry: { maxAttempts: 2, maxTotalTimeMs: 60_000, jitterPercent: 50 } },
    execute: () => {
      throw error;
    },
  });

const traced = async (
  options: Parameters<typeof createSpillway>[0],
  run: (layer: ReturnType<typeof createSpillway>) => void,
): Promise<TraceEvent[]> => {
  const runtime = virtualRuntime();
  const layer = createSpillway({ ...options, runtime });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  run(layer);
  await runtime.run();
  return events;
};
const of = <T extends TraceEvent['type']>(events: readonly TraceEvent[], type: T): Extract<TraceEvent, { type: T }> => {
  const found = events.find((event): event is Extract<TraceEvent, { type: T }> => event.type === type);
  if (found === undefined) throw new Error(`there is no ${type}`);
  return found;
};
const down = Object.assign(new Error('unavailable'), { status: 503 });

describe('RPL-1 a trace tells what a replay needs', () => {
  it('the budget in force, the dependency, and what of the host’s decides', async () => {
    const plain = await traced({ tools: [failing(down)], retryBudget: { ratio: 0.1 } }, () => undefined);
    expect(of(plain, 'layer_started')).toMatchObject({
      retryBudget: { ratio: 0.1, minPerSecond: 10, windowMs: 10_000 },
      host: [],
      tools: [{ dependency: 'api' }],
    });
    const hosted = await traced(
      {
        tools: [failing(down)],
        retryBudget: false,
        hooks: {},
        errorHandler: () => ({ strategy: 'fail', code: 'guidance', reason: '' }),
      },
      () => undefined,
    );
    expect(of(hosted, 'layer_started')).toMatchObject({ host: ['hooks', 'errorHandler'] });
    expect('retryBudget' in of(hosted, 'layer_started')).toBe(false);
  });

  it('the attempt at its own tool that was decided about, also where the end of the layer cut it off', async () => {
    const slow = tool({ name: 'slow', policy: { effects: 'read' }, execute: () => new Promise(() => undefined) });
    const first = tool({
      name: 'first',
      policy: { effects: 'read', alternatives: ['slow'], retry: { maxAttempts: 2 } },
      execute: () => Promise.reject(down),
    });
    const closed = await traced({ tools: [first, slow] }, (layer) => {
      layer.call({ toolName: 'first', input: {} }).subscribe(({ type, toolName }) => {
        if (type === 'attempt_started' && toolName === 'slow') void layer.close();
      });
    });
    const decided = closed.flatMap((event) =>
      event.type === 'decision' ? [[event.toolName, event.code, event.attempt]] : [],
    );
    expect(decided).toEqual([
      ['first', 'transient', 1],
      ['first', 'attempts_exhausted', 2],
      ['slow', 'canceled', 1],
    ]);
    const canceled = closed.find((event) => event.type === 'attempt_canceled');
    expect(canceled).toMatchObject({ toolName: 'slow', attempt: 3 });
  });

  it('the number that a wait was drawn with, which repeats it', async () => {
    const events = await traced({ tools: [failing(down)] }, (layer) =>
      layer.call({ toolName: 'failing', input: {} }).subscribe(),
    );
    const { draw, delayMs } = of(events, 'decision');
    const retry = of(events, 'layer_started').tools[0]?.policy.retry;
    if (draw === undefined || retry === undefined) throw new Error('nothing was drawn');
    expect(backoffDelayMs(retry, 0, undefined, () => draw)).toBe(delayMs);
  });

  it('what a call asks for itself, and nothing of one that asks for nothing', async () => {
    const events = await traced({ tools: [failing(down)] }, (layer) => {
      layer.call({ toolName: 'failing', input: {}, idempotencyKey: 'k' }, { optional: true }).subscribe();
      layer.call({ toolName: 'failing', input: {} }).subscribe();
    });
    const started = events.flatMap((event) => (event.type === 'call_started' ? [event.terms] : []));
    expect(started).toEqual([{ keyed: true, optional: true }, undefined]);
  });

  it('how a plan is cut at its deadline, how wide it runs, and what its nodes can do without', async () => {
    const events = await traced({ tools: [failing(down)] }, (layer) =>
      layer
        .turn(
          plan.from(
            [
              { id: 'a', tool: 'failing', optional: true },
              { id: 'b', tool: 'failing', needs: ['a'], default: 1 },
            ],
            { onDeadline: 'abort', concurrency: 1 },
          ),
        )
        .subscribe(),
    );
    expect(of(events, 'turn_started')).toMatchObject({
      onDeadline: 'abort',
      concurrency: 1,
      nodes: [
        { id: 'a', optional: true },
        { id: 'b', hasDefault: true },
      ],
    });
  });

  it('whether a tool ran, where its error says otherwise than its kind', async () => {
    const refused = new ToolExecutionError('execution_error', 'not begun', { executed: false });
    const [unusual, usual] = await Promise.all(
      [refused, down].map((error) =>
        traced({ tools: [failing(error)] }, (layer) => layer.call({ toolName: 'failing', input: {} }).subscribe()),
      ),
    );
    expect(of(unusual ?? [], 'attempt_failed').error.executed).toBe(false);
    expect('executed' in of(usual ?? [], 'attempt_failed').error).toBe(false);
  });
});
