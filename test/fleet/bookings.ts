import { firstValueFrom } from 'rxjs';
import { plan, tool, type AnyTool, type Plan, type TurnResult } from 'spillway';
import type { TraceEvent } from '../../src/contract/event.ts';
import { states } from '../call/kit.ts';
import type { HandFleet } from './by-hand.ts';

export const trip: Plan = plan.from(
  [
    { id: 'flight', tool: 'flight' },
    { id: 'hotel', tool: 'hotel', needs: ['flight'] },
    { id: 'look', tool: 'look', needs: ['hotel'] },
  ],
  { onFailure: 'compensate', timeoutMs: 60_000 },
);

export const NEVER_MS = 1e9;

/** How long a worker's tools take, and its undoings; `look` fails when it answers. */
export interface Pace {
  readonly hotelMs?: number;
  readonly lookMs?: number;
  readonly undoMs?: number;
  /** Which of the undoings takes `undoMs`; all others are done at once. */
  readonly slow?: string;
}

/** Bookings whose resource checks keys, and what all workers did, in order. */
export const bookings = ({
  runtime,
}: HandFleet): {
  readonly log: string[];
  readonly booked: Set<string>;
  toolsOf(worker: string, pace?: Pace): AnyTool[];
} => {
  const log: string[] = [];
  const booked = new Set<string>();
  const passed = (ms: number): Promise<unknown> => (ms === 0 ? Promise.resolve() : firstValueFrom(runtime.after(ms)));
  const toolsOf = (worker: string, { hotelMs = 0, lookMs = 0, undoMs = 0, slow = 'hotel' }: Pace = {}): AnyTool[] => {
    const booking = (name: string, takesMs: number): AnyTool =>
      tool({
        name,
        policy: {
          effects: 'mutating',
          enforcesKey: true,
          timeoutMs: 50_000,
          retry: { maxAttempts: 1 },
          compensate: { enforcesKey: true, timeoutMs: 80_000 },
        },
        execute: async () => {
          log.push(`${worker} books ${name}`);
          await passed(takesMs);
          booked.add(name);
          return { name };
        },
        compensate: async () => {
          log.push(`${worker} undoes ${name}`);
          await passed(name === slow ? undoMs : 0);
          booked.delete(name);
        },
      });
    const look = tool({
      name: 'look',
      policy: { effects: 'read', timeoutMs: 100_000, retry: { maxAttempts: 1 } },
      execute: async () => {
        await passed(lookMs);
        throw Object.assign(new Error('there is nothing to see'), { status: 422 });
      },
    });
    return [booking('flight', 0), booking('hotel', hotelMs), look];
  };
  return { log, booked, toolsOf };
};

export const ALL_UNDONE: Readonly<Record<string, string>> = {
  flight: 'compensated',
  hotel: 'compensated',
  look: 'failed',
};

/** What became of a turn's effects. */
interface Outcome {
  readonly states: Readonly<Record<string, string>> | undefined;
  readonly compensated: readonly string[];
  readonly stays: readonly unknown[] | undefined;
  readonly shared: readonly string[] | undefined;
}

export const outcomeIn = (result: TurnResult | undefined): Outcome => ({
  states: result === undefined ? undefined : states(result),
  compensated: [...(result?.compensation?.compensated ?? [])].toSorted(),
  stays: result?.compensation?.stays,
  shared: result?.compensation?.shared,
});

export const undoneAll: Outcome = {
  states: ALL_UNDONE,
  compensated: ['flight', 'hotel'],
  stays: [],
  shared: undefined,
};

export const eventsOf = ({ ledger }: HandFleet, turnId: string): TraceEvent[] =>
  (ledger.turns.get(turnId)?.events ?? []).map((event) => JSON.parse(event) as TraceEvent);
