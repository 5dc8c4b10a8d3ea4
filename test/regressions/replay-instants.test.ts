// Was: what a layer did at one instant could not be decided once more: nothing told that a canceled attempt had given a
// value, that a closed breaker was reset, or what a fleet's turn had left, and endings were read in one way only.
// Now: the trace tells the three, and an ending is read as what was decided shows it.
import { NEVER, concat, delayWhen, of, throwError, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { replayTrace } from 'spillway/simulate';
import type { AnyTool } from '../../src/contract/tool.ts';
import type { TurnJournal } from '../../src/contract/fleet/journal.ts';
import { SimulatedTime } from '../../src/simulate/time.ts';

type Layer = ReturnType<typeof createSpillway>;
const START_MS = 1_000_000;

const recorded = (tools: readonly AnyTool[], act: (layer: Layer, time: SimulatedTime) => void): TraceEvent[] => {
  const time = new SimulatedTime(START_MS);
  const layer = createSpillway({ tools: [...tools], runtime: time });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  act(layer, time);
  time.run();
  return events;
};

const failing = Object.assign(new Error('unavailable'), { status: 503 });
const breaker = { failureThreshold: 2, cooldownMs: 10, successThreshold: 2, probes: 1 };
const answering = (of$: (n: number) => Observable<unknown>): AnyTool => {
  let asked = 0;
  return { name: 'a', policy: { effects: 'read', retry: { maxAttempts: 1 }, breaker }, execute: () => of$(++asked) };
};

describe('RPL-1 a replay is told', () => {
  it('R-3.6 that a canceled attempt had given a value, which its breaker took for a success', () => {
    const tool = answering((n) =>
      n <= 2 ? throwError(() => failing) : n === 3 ? concat(of('half'), NEVER) : of('done'),
    );
    const events = recorded([tool], (layer, time) => {
      const call = (): ReturnType<ReturnType<Layer['call']>['subscribe']> =>
        layer.call({ toolName: 'a', input: {} }).subscribe();
      for (const afterMs of [0, 1]) time.at(START_MS + afterMs, 0, () => void call());
      time.at(START_MS + 50, 0, () => {
        const left = call();
        time.at(START_MS + 60, 0, () => left.unsubscribe());
      });
      time.at(START_MS + 70, 0, () => void call());
    });
    expect(events.find(({ type }) => type === 'attempt_canceled')).toMatchObject({ answered: true });
    expect(events.findLast(({ type }) => type === 'breaker_changed')).toMatchObject({ to: 'closed' });
    expect(replayTrace(events).identity.calls).toBe(4);
  });

  it('R-3.8 that a closed breaker was reset: it has forgotten what it had counted', () => {
    const tool = answering(() => throwError(() => failing));
    const events = recorded([tool], (layer, time) => {
      const call = (): void => void layer.call({ toolName: 'a', input: {} }).subscribe();
      time.at(START_MS, 0, call);
      time.at(START_MS + 1, 0, () => layer.breakers.get('a').reset());
      time.at(START_MS + 2, 0, call);
    });
    expect(events.filter(({ type }) => type.startsWith('breaker_'))).toMatchObject([
      { type: 'breaker_reset', toolName: 'a', scope: '' },
    ]);
    expect(replayTrace(events).identity.calls).toBe(2);
  });

  it('what a turn had left that a fleet began late', () => {
    const tool: AnyTool = { name: 'a', policy: { effects: 'read' }, execute: () => of('done') };
    const journal: TurnJournal = {
      turnId: 'late',
      submission: 'late',
      epoch: 1,
      remainingMs: 0,
      started: false,
      worker: 'w',
      tell: () => undefined,
      settled: () => undefined,
      settle: (_, node) => of(node),
      decided: () => undefined,
      decide: () => of(true),
      holds: () => true,
      owned: () => of(true),
      givenUp: () => of(false),
      standing$: NEVER,
      leave: () => undefined,
      ended$: of(true),
      left$: NEVER,
    };
    const events = recorded([tool], (layer, time) =>
      time.at(START_MS, 0, () => {
        const late = plan.from([{ id: 'n', tool: 'a', input: {} }], { timeoutMs: 500 });
        layer.turn(late, { journal }).subscribe();
      }),
    );
    expect(events.find(({ type }) => type === 'turn_started')).toMatchObject({ timeoutMs: 500, remainingMs: 0 });
    expect(replayTrace(events).identity).toMatchObject({ turns: 1, calls: 0 });
  });
});

describe('RPL-1 an ending of one instant is read as what was decided shows it', () => {
  const call = (layer: Layer, signal: AbortSignal): void =>
    void layer.call({ toolName: 'a', input: {} }, { signal }).subscribe();
  const tool: AnyTool = {
    name: 'a',
    policy: { effects: 'read', retry: { strategy: 'constant', initialDelayMs: 20, jitterPercent: 0, maxAttempts: 3 } },
    execute: () => throwError(() => failing),
  };

  it('a caller who left at the instant at which a wait was over, and was first', () => {
    const events = recorded([tool], (layer, time) => {
      const abort = new AbortController();
      time.at(START_MS, 0, () => call(layer, abort.signal));
      time.at(START_MS + 20, -1, () => abort.abort());
    });
    expect(events.filter(({ type }) => type === 'attempt_started')).toHaveLength(1);
    expect(replayTrace(events).identity.calls).toBe(1);
  });

  it('a caller who left at the instant at which an attempt ended, and after its end was told', () => {
    const wait: AnyTool = {
      name: 'a',
      policy: { effects: 'read' },
      execute: () => of('done').pipe(delayWhen(() => clock.after(10))),
    };
    let clock = new SimulatedTime(START_MS);
    const events = recorded([wait], (layer, time) => {
      clock = time;
      const abort = new AbortController();
      const two = plan.from([
        { id: 'x', tool: 'a', input: {} },
        { id: 'y', tool: 'a', input: {}, needs: ['x'] },
      ]);
      time.at(START_MS, 0, () => void layer.turn(two, { signal: abort.signal }).subscribe());
      time.at(START_MS + 10, 1, () => abort.abort());
    });
    const nodes = events.flatMap((event) => (event.type === 'node_settled' ? [event.state] : []));
    expect(nodes).toEqual(['succeeded', 'canceled']);
    expect(replayTrace(events).identity).toMatchObject({ turns: 1, calls: 2 });
  });
});
