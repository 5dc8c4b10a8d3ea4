import { Observable } from 'rxjs';
import { createSpillway } from 'spillway';
import type { TraceEvent } from '../../../src/contract/event.ts';
import type { ToolPolicy } from '../../../src/contract/policy.ts';
import type { AnyTool } from '../../../src/contract/tool.ts';
import { seededRandom } from '../../../src/policy/random.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

export interface StormOptions {
  readonly calls: number;
  readonly seed?: number;
  /** From when to when, in milliseconds from the start, most calls fail. */
  readonly outage?: readonly [number, number];
  readonly policy?: ToolPolicy;
  readonly everyMs?: number;
}

/** A trace of calls through an outage, as a layer tells it in simulated time. */
export function recordStorm({ calls, seed = 7, outage, policy = {}, everyMs = 20 }: StormOptions): TraceEvent[] {
  const time = new SimulatedTime(1_000_000, seed);
  const random = seededRandom(seed + 1);
  const pay: AnyTool = {
    name: 'pay',
    policy: {
      effects: 'read',
      timeoutMs: 1_000,
      retry: { maxAttempts: 3, maxTotalTimeMs: 10_000 },
      breaker: { cooldownMs: 300 },
      ...policy,
    },
    execute: () =>
      new Observable((subscriber) => {
        const sinceMs = time.now() - 1_000_000;
        const down = outage !== undefined && sinceMs >= outage[0] && sinceMs < outage[1];
        const afterMs = -Math.log(1 - random()) * (down ? 700 : 150);
        const fails = random() < (down ? 0.7 : 0.05);
        const task = time.at(time.now() + afterMs, 0, () => {
          if (fails) return subscriber.error(Object.assign(new Error('unavailable'), { status: 503 }));
          subscriber.next('paid');
          subscriber.complete();
        });
        return () => task.cancel();
      }),
  };
  const spillway = createSpillway({ tools: [pay], runtime: time });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => void events.push(event));
  for (let i = 0; i < calls; i++)
    time.at(1_000_000 + i * everyMs, 0, () => void spillway.call({ toolName: 'pay', input: { i } }).subscribe());
  time.run();
  return events;
}
