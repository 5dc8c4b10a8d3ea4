import { NEVER, Subject, concat, from, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, type TraceEvent, type TurnEvent, type TurnResult } from 'spillway';
import type { FleetEngine } from 'spillway/contract';

const result: TurnResult = {
  status: 'completed',
  nodes: [],
  values: { a: 1 },
  executedTools: 1,
  hadToolFailure: false,
  toolFailureKinds: [],
  summary: 'Completed a',
};
const header = { source: 'turn', turnId: 'trip', atMs: 0 } as const;
const started: TraceEvent = { ...header, seq: 1, type: 'turn_started', timeoutMs: 1, nodes: [] };
const settled: TraceEvent = { ...header, seq: 2, type: 'settled', result };

const port = (events: FleetEngine['attach']) => {
  const asked: string[] = [];
  const fleet: Pick<FleetEngine, 'submit' | 'attach' | 'cancel'> = {
    submit: async (turnId, _plan, options) => {
      asked.push(`submit ${turnId} ${options?.tenant ?? ''}`);
      return { turnId, state: 'accepted', deadlineAtMs: 0 };
    },
    attach: (turnId) => events(turnId),
    cancel: async (turnId) => {
      asked.push(`cancel ${turnId}`);
      return true;
    },
  };
  return { fleet, asked };
};
const trip = plan.from([{ id: 'a', tool: 'work' }]);
const quiet = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
};

describe('R-17.5 a turn that a fleet runs', () => {
  it('R-17.5 is submitted when it is subscribed to, and its events come from there', async () => {
    const { fleet, asked } = port(() => from([started, settled]));
    const turn$ = createSpillway().turn(trip, { fleet, turnId: 'trip', tenant: 'acme' });
    expect(asked).toStrictEqual([]);
    const events: TurnEvent[] = [];
    let complete = false;
    turn$.subscribe({ next: (event) => events.push(event), complete: () => (complete = true) });
    await quiet();
    expect(events).toStrictEqual([started, settled]);
    expect({ complete, asked }).toStrictEqual({ complete: true, asked: ['submit trip acme'] });
  });

  it('R-17.6 unsubscribing cancels it, and with `detach` leaves it alone', async () => {
    for (const [onUnsubscribe, expected] of [
      ['cancel', ['submit trip ', 'cancel trip']],
      ['detach', ['submit trip ']],
    ] as const) {
      const { fleet, asked } = port(() => concat(of(started), NEVER));
      const turn = createSpillway().turn(trip, { fleet, turnId: 'trip', onUnsubscribe }).subscribe();
      // At once, while it is being submitted: what is handed over is then taken back.
      turn.unsubscribe();
      await quiet();
      expect(asked).toStrictEqual(expected);
    }
  });

  it('R-17.6 an aborted signal cancels it, and its end is waited for', async () => {
    const events$ = new Subject<TraceEvent>();
    const { fleet, asked } = port(() => events$);
    const aborting = new AbortController();
    const seen: string[] = [];
    createSpillway()
      .turn(trip, { fleet, turnId: 'trip', signal: aborting.signal })
      .subscribe(({ type }) => seen.push(type));
    await quiet();
    aborting.abort();
    await quiet();
    expect(asked).toStrictEqual(['submit trip ', 'cancel trip']);
    events$.next(settled);
    events$.complete();
    expect(seen).toStrictEqual(['settled']);
  });

  it('R-17.1 a refusal of the fleet is the error of the stream', async () => {
    const { fleet } = port(() => throwError(() => new Error('lost')));
    let refused: unknown;
    createSpillway()
      .turn(trip, { fleet, turnId: 'trip' })
      .subscribe({ error: (error: unknown) => (refused = error) });
    await quiet();
    expect(refused).toMatchObject({ message: 'lost' });
  });
});
