import { expect, it, vi } from 'vitest';
import type { TraceEvent } from '../../../src/contract/event.ts';
import { identified } from '../../../src/simulate/replay/identity-run.ts';
import { ReplayRefusal } from '../../../src/simulate/replay/refusal.ts';
import type * as Spillway from '../../../src/spillway.ts';
import { scenarioOf } from '../../simulation/findings.ts';
import { loadSimulators } from '../../simulation/simulators.ts';

/** The traces of all layers that a simulation makes. The replay makes layers as well, and those are not recorded. */
const recorder = vi.hoisted(() => ({ on: false, traces: [] as unknown[][] }));
vi.mock('../../../src/spillway.ts', async (original) => {
  const module = await original<typeof Spillway>();
  const createSpillway: typeof module.createSpillway = (options) => {
    const spillway = module.createSpillway(options);
    if (!recorder.on) return spillway;
    const events: unknown[] = [];
    recorder.traces.push(events);
    spillway.trace$.subscribe((event) => void events.push(structuredClone(event)));
    return spillway;
  };
  return { ...module, createSpillway };
});

/** What became of a trace: `identical`, or the code of its refusal. Anything else that is thrown is a defect. */
const outcomeOf = (trace: readonly TraceEvent[]): string => {
  try {
    identified(trace);
    return 'identical';
  } catch (error) {
    if (error instanceof ReplayRefusal && error.message !== '') return error.code;
    throw error;
  }
};

it(
  'RPL-1 every trace of the first 1,000 seeds of the simulation replays as it was, or is refused with a reason',
  { timeout: 600_000 },
  async () => {
    const simulators = await loadSimulators();
    const counts = new Map<string, number>();
    for (let seed = 1; seed <= 1_000; seed++) {
      recorder.traces.length = 0;
      recorder.on = true;
      await simulators[scenarioOf(seed)](seed);
      recorder.on = false;
      for (const trace of [...recorder.traces] as TraceEvent[][]) {
        const outcome = outcomeOf(trace);
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      }
    }
    const of = (outcome: string): number => counts.get(outcome) ?? 0;
    // None is decided otherwise: what cannot be decided once more is refused by what the trace itself says.
    expect([...counts.keys()].toSorted()).toEqual([
      'host',
      'identical',
      'keys',
      'moved',
      'settled',
      'switched',
      'truncated',
    ]);
    expect(of('identical')).toBeGreaterThanOrEqual(865);
  },
);
