import { takeWhile } from 'rxjs';
import type { Context } from 'rxjs-marbles';
import { plan, type Plan, type Spillway, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent, transient } from '../support.ts';
import { World, answers, fails, noBackoff, resultOf, states, traceFaults, turnResultOf, type Scripted } from './kit.ts';

const CALL_EVENTS = [
  'call_started',
  'attempt_started',
  'attempt_failed',
  'decision',
  'attempt_succeeded',
  'settled',
] as const;
const TURN_EVENTS = [
  'turn_started',
  'node_started',
  'call_started',
  'attempt_started',
  'attempt_failed',
  'decision',
  'attempt_succeeded',
  'node_settled',
  'escalated',
  'settled',
] as const;

/** Two nodes that answer after a retry, one that fails, one that cannot do without it. */
const trip = (world: World): { readonly layer: Spillway; readonly planned: Plan; readonly starts: () => number } => {
  const tools: Scripted[] = [
    world.scripted('flight_search', [fails(5, transient), answers(5)], { retry: noBackoff }),
    world.scripted('hotel_search', [answers(5)]),
    world.scripted('car_search', [fails(5, permanent)]),
  ];
  const planned = plan.from([
    { id: 'flights', tool: 'flight_search' },
    { id: 'cars', tool: 'car_search' },
    { id: 'hotels', tool: 'hotel_search', needs: ['flights'] },
    { id: 'garage', tool: 'hotel_search', needs: ['cars'] },
  ]);
  return {
    layer: world.layer(tools),
    planned,
    starts: () => tools.reduce((sum, { starts }) => sum + starts.length, 0),
  };
};

describe('R-7.1 a subscriber that unsubscribes inside next', () => {
  it.each(CALL_EVENTS)(
    'R-4.2 of a call, on %s: nothing starts after it, nothing is left',
    marbles((m: Context, type: string) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient), answers(5)], { retry: noBackoff });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      let startsThen = NaN;
      const seen = world.watch(
        layer.call({ toolName: 'flight_search' }).pipe(
          takeWhile((event) => {
            if (event.type === type) startsThen = tried.starts.length;
            return event.type !== type;
          }),
        ),
      );
      world.flush();
      expect(seen.endedAtMs).toBeLessThanOrEqual(10);
      expect(tried.starts).toHaveLength(startsThen);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it.each(TURN_EVENTS)(
    'R-5.2 of a turn, on %s: nothing starts after it, nothing is left',
    marbles((m: Context, type: string) => {
      const world = new World(m);
      const { layer, planned, starts } = trip(world);
      const trace = world.watch(layer.trace$).events;
      let startsThen = NaN;
      let eventsThen = NaN;
      world.watch(
        layer.turn(planned).pipe(
          takeWhile((event) => {
            if (event.type !== type) return true;
            startsThen = starts();
            eventsThen = trace.length;
            return false;
          }),
        ),
      );
      world.flush();
      expect(starts()).toBe(startsThen);
      const after = trace.slice(eventsThen).map((event) => event.type);
      expect(
        after.filter((later) => later !== type && later !== 'attempt_canceled' && later !== 'abandoned'),
      ).toStrictEqual([]);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it.each(TURN_EVENTS)(
    'R-4.2 a signal aborted inside next, on %s: the turn settles there',
    marbles((m: Context, type: string) => {
      const world = new World(m);
      const { layer, planned, starts } = trip(world);
      const trace = world.watch(layer.trace$).events;
      const controller = new AbortController();
      let startsThen = NaN;
      const seen = world.watch(layer.turn(planned, { signal: controller.signal }));
      seen.unsubscribe();
      trace.length = 0;
      const events: TraceEvent[] = [];
      layer.turn(planned, { signal: controller.signal }).subscribe((event) => {
        events.push(event);
        if (event.type !== type || controller.signal.aborted) return;
        startsThen = starts();
        controller.abort();
      });
      world.flush();
      expect(starts()).toBe(startsThen);
      expect(events.at(-1)?.type).toBe('settled');
      expect(trace.filter((event) => event.type === 'settled' && event.source === 'turn')).toHaveLength(1);
      expect(trace.at(-1)).toMatchObject({ type: 'settled', source: 'turn' });
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );
});

describe('R-7.1 a trace subscriber that acts', () => {
  it.each(CALL_EVENTS)(
    'R-7.1 it aborts the call on %s, and every subscriber hears one order',
    marbles((m: Context, type: string) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient), answers(5)], { retry: noBackoff });
      const layer = world.layer([tried]);
      const controller = new AbortController();
      layer.trace$.subscribe((event) => {
        if (event.type === type) controller.abort();
      });
      const trace = world.watch(layer.trace$).events;
      const own = world.watch(layer.call({ toolName: 'flight_search' }, { signal: controller.signal }));
      world.flush();
      expect(own.events.map(({ seq }) => seq)).toStrictEqual(trace.map(({ seq }) => seq));
      expect(resultOf(own.events).status).toBe(type === 'settled' ? 'success' : 'error');
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-7.1 it unsubscribes a call when its breaker opens: the attempt ends once',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(5, transient)], { breaker: { failureThreshold: 1 } }),
      ]);
      const trace = world.watch(layer.trace$).events;
      layer.trace$.subscribe((event) => {
        if (event.type === 'breaker_changed') seen.unsubscribe();
      });
      const seen = world.watch(layer.call({ toolName: 'flight_search' }));
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(trace.map(({ type }) => type).slice(-2)).toStrictEqual(['attempt_canceled', 'abandoned']);
      expect(layer.breakers.get('flight_search').state.type).toBe('open');
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-3.6 it unsubscribes a call when its probe is admitted: the permit is given back',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient), answers(5)], {
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, cooldownMs: 100 },
      });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      world.watch(layer.call({ toolName: 'flight_search' }));
      const probes: Array<{ unsubscribe(): void }> = [];
      layer.trace$.subscribe((event) => {
        if (event.type === 'breaker_changed' && event.to === 'half_open') controller.abort();
      });
      const controller = new AbortController();
      world.at(200, () =>
        probes.push(world.watch(layer.call({ toolName: 'flight_search' }, { signal: controller.signal }))),
      );
      world.at(300, () => probes.push(world.watch(layer.call({ toolName: 'flight_search' }))));
      world.flush();
      expect(tried.starts).toStrictEqual([0, 300]);
      expect(traceFaults(trace.filter(({ source }) => source === 'call'))).toStrictEqual(
        expect.not.arrayContaining([expect.stringMatching(/attempt|after/)]),
      );
    }),
  );

  it(
    'R-7.1 it starts another turn inside next: both settle, and every subscriber hears one order',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [answers(0, 'a')]),
        world.scripted('hotel_search', [answers(5, 'b')]),
      ]);
      const second = plan.from([
        { id: 'hotels', tool: 'hotel_search' },
        { id: 'more', tool: 'flight_search', needs: ['hotels'] },
      ]);
      const inner: TraceEvent[] = [];
      let begun = false;
      layer.trace$.subscribe((event) => {
        if (begun || event.type !== 'attempt_succeeded') return;
        begun = true;
        layer.turn(second).subscribe((own) => inner.push(own));
      });
      const trace = world.watch(layer.trace$).events;
      const outer = world.watch(
        layer.turn(
          plan.from([
            { id: 'flights', tool: 'flight_search' },
            { id: 'later', tool: 'flight_search', needs: ['flights'] },
          ]),
        ),
      );
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(states(turnResultOf(outer.events))).toStrictEqual({ flights: 'succeeded', later: 'succeeded' });
      expect(inner.at(-1)).toMatchObject({
        type: 'settled',
        result: { status: 'completed', values: { hotels: 'b', more: 'a' } },
      });
    }),
  );

  it(
    'R-7.1 it starts another call inside the next of a call',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [answers(0, 'a')])]);
      const trace = world.watch(layer.trace$).events;
      const inner: TraceEvent[] = [];
      layer.call({ toolName: 'flight_search' }).subscribe((event) => {
        if (event.type === 'call_started')
          layer.call({ toolName: 'flight_search' }).subscribe((own) => inner.push(own));
      });
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(trace.filter(({ type }) => type === 'settled')).toHaveLength(2);
      expect(inner.at(-1)?.type).toBe('settled');
    }),
  );
});
