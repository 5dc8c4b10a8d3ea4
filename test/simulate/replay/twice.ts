import { Observable } from 'rxjs';
import { createSpillway } from 'spillway';
import type { TraceEvent } from '../../../src/contract/event.ts';
import type { RetryBudgetOptions, ToolPolicy } from '../../../src/contract/policy.ts';
import type { AnyTool, ToolContext } from '../../../src/contract/tool.ts';
import { drawFor } from '../../../src/simulate/replay/draws/neighbours.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

const START_MS = 1_000_000;

/**
 * A world that can be lived through twice: what an attempt does hangs on its call, its number and on whether its server
 * is down at that time; in one of chance, on its instant as well.
 */
export interface World {
  readonly seed: number;
  readonly calls: number;
  readonly everyMs: number;
  /** From when to when most attempts fail, in milliseconds from the start. */
  readonly outage?: readonly [number, number];
  /** What an attempt does at one instant says nothing of what it would have done at another. */
  readonly chance?: true;
}

export interface Policies {
  readonly tool: ToolPolicy;
  readonly retryBudget?: RetryBudgetOptions | false;
}

const toolIn = (world: World, time: SimulatedTime, policy: ToolPolicy): AnyTool => ({
  name: 'pay',
  policy: { effects: 'read', ...policy },
  execute: (input: unknown, { attempt }: ToolContext) =>
    new Observable((subscriber) => {
      const [from = Infinity, to = Infinity] = world.outage ?? [];
      const sinceMs = time.now() - START_MS;
      const down = sinceMs >= from && sinceMs < to;
      const luck = world.chance === true ? ` ${time.now()}` : '';
      const name = `${world.seed} ${(input as { call: number }).call} ${attempt}${luck}`;
      const fails = drawFor(`${name} fails`) < (down ? 0.7 : 0.05);
      const afterMs = -Math.log(1 - drawFor(`${name} lasts`)) * (down ? 700 : 150);
      const task = time.at(time.now() + afterMs, 0, () => {
        if (fails) return subscriber.error(Object.assign(new Error('unavailable'), { status: 503 }));
        subscriber.next('paid');
        subscriber.complete();
      });
      return () => task.cancel();
    }),
});

/** The trace of a world under policies. Each backoff has the same number in it, whatever else was drawn. */
export function liveThrough(world: World, { tool, retryBudget }: Policies): TraceEvent[] {
  let failed = '';
  const time = new SimulatedTime(START_MS, () => drawFor(`${world.seed} waits ${failed}`));
  const layer = createSpillway({
    tools: [toolIn(world, time, tool)],
    runtime: time,
    ...(retryBudget === undefined ? {} : { retryBudget }),
  });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => {
    events.push(event);
    if (event.type === 'attempt_failed') failed = `${event.callId} ${event.attempt}`;
  });
  for (let call = 0; call < world.calls; call++)
    time.at(
      START_MS + call * world.everyMs,
      0,
      () => void layer.call({ toolName: 'pay', input: { call } }).subscribe(),
    );
  time.run();
  return events;
}
