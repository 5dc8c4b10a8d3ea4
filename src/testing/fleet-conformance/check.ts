import { defer, filter, firstValueFrom, lastValueFrom, repeat, take, takeUntil, throwIfEmpty, toArray } from 'rxjs';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { TraceEvent } from '../../contract/event.ts';
import type { Plan, TurnResult } from '../../contract/turn.ts';
import { liveRuntime } from '../../runtime.ts';
import { plan } from '../../turn/plan.ts';
import type { FleetHarness, FleetMark } from './world.ts';

/** How large the cases are. */
export interface FleetSizes {
  /** Turns of the cases with faults. */
  readonly turns: number;
  /** Workers of the cases with faults. */
  readonly workers: number;
  /** Between two faults. */
  readonly everyMs: number;
  /** How long a worker that stands still does so. */
  readonly freezeMs: number;
  /** What a node may cost more than in process. */
  readonly nodeCostMs: number;
}

/** A case over a harness. */
export interface FleetHarnessCase {
  readonly name: string;
  run(harness: FleetHarness, sizes: FleetSizes): Promise<void>;
}

/** @throws Error that says what was expected and what came instead */
export function expectThat(holds: boolean, what: string, got?: unknown): asserts holds {
  if (!holds) throw new Error(got === undefined ? what : `${what}; got ${JSON.stringify(got).slice(0, 1_000)}`);
}

export const passed = async (ms: number): Promise<void> => {
  await firstValueFrom(liveRuntime.after(ms));
};

const LOOK_MS = 20;

/** Looks until something holds. */
export const until = async <T>(look: () => Promise<T | undefined>, what: string, maxMs = 60_000): Promise<T> =>
  firstValueFrom(
    defer(look).pipe(
      repeat({ delay: () => liveRuntime.after(LOOK_MS) }),
      filter((found) => found !== undefined),
      take(1),
      takeUntil(liveRuntime.after(maxMs)),
      throwIfEmpty(() => new Error(`${what} did not happen within ${maxMs} ms`)),
    ),
  );

const SETTLE_MS = 120_000;

/** All events of a turn, once it has settled. */
export const eventsOf = (engine: FleetEngine, turnId: string): Promise<TraceEvent[]> =>
  lastValueFrom(engine.attach(turnId).pipe(takeUntil(liveRuntime.after(SETTLE_MS)), toArray()));

export const resultOf = (turnId: string, events: readonly TraceEvent[]): TurnResult => {
  const last = events.at(-1);
  expectThat(last?.source === 'turn' && last.type === 'settled', `the turn ${turnId} settles`, last?.type);
  return last.result;
};

/** Every event once, in order. */
export const expectWhole = (turnId: string, events: readonly TraceEvent[]): void =>
  expectThat(
    events.every(({ seq }, at) => seq === at + 1),
    `the events of ${turnId} are there once each, in order`,
    events.map(({ seq }) => seq),
  );

/** A chain of three, and one beside it. */
export const trip = (ms: number, timeoutMs = 120_000): Plan =>
  plan.from(
    [
      { id: 'a', tool: 'work', input: { ms, value: 'first' } },
      { id: 'beside', tool: 'work', input: { ms } },
      { id: 'b', tool: 'work', input: { ms, value: { $result: 'a', path: 'value' } }, needs: ['a'] },
      { id: 'c', tool: 'work', input: { ms, value: { $result: 'b', path: 'value' } }, needs: ['b', 'beside'] },
    ],
    { timeoutMs },
  );

const countedBy = (marks: readonly FleetMark[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const { key } of marks) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
};

/** What a clock of one machine differs by from one process to the next. */
const CLOCK_MS = 20;

/** Every turn completed, each effect once, and no node was run again once the journal had it. */
export const expectOnce = async (harness: FleetHarness, turnIds: readonly string[]): Promise<TraceEvent[][]> => {
  const all = await Promise.all(turnIds.map((turnId) => eventsOf(harness.engine, turnId)));
  const effects = countedBy(await harness.marks('effect'));
  const started = await harness.marks('started');
  for (const [at, events] of all.entries()) {
    const turnId = turnIds[at] ?? '';
    expectWhole(turnId, events);
    const { status, nodes } = resultOf(turnId, events);
    expectThat(status === 'completed', `the turn ${turnId} completes`, { status, nodes });
    for (const { id } of nodes) {
      const key = `${turnId}/${id}`;
      expectThat(effects.get(key) === 1, `the effect of ${key} happens once`, effects.get(key));
      const settled = events.find(
        (event) => event.source === 'turn' && event.type === 'node_settled' && event.nodeId === id,
      );
      const again = started.filter((mark) => mark.key === key && mark.atMs > (settled?.atMs ?? 0) + CLOCK_MS);
      expectThat(again.length === 0, `${key} is not run again once it was journalled`, { again, settled });
    }
  }
  return all;
};
