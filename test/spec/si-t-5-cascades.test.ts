import { plan, type PlanNode } from 'spillway';
import { describe, expect, it } from 'vitest';
import { toTurnTrace } from '../../src/sinks/turn-trace.ts';
import { marbles } from '../marbles.ts';
import { World, answers, fails, nodeOf, states, type Scripted } from '../call/kit.ts';

const failing = fails(10, new Error('Invalid airport code: XYZ'));
const NAMES = ['compare_prices', 'create_itinerary', 'hotel_search', 'activity_search'];
const tools = (world: World): Record<string, Scripted> =>
  Object.fromEntries(
    [world.scripted('flight_search', [failing]), ...NAMES.map((name) => world.scripted(name, [answers(10, name)]))].map(
      (scripted) => [scripted.tool.name, scripted],
    ),
  );
const flights: PlanNode = { id: 'Tool A', tool: 'flight_search' };

describe('SI-T 5 cascading failures', () => {
  it(
    'SI-T 5.1 dependent tools are skipped when a dependency fails; independent ones continue',
    marbles((m) => {
      const world = new World(m);
      const made = tools(world);
      const result = world.turn(
        world.layer(Object.values(made)),
        plan.from([
          flights,
          { id: 'Tool B', tool: 'compare_prices', needs: ['Tool A'] },
          { id: 'Tool C', tool: 'create_itinerary', needs: ['Tool B'] },
          { id: 'Tool D', tool: 'hotel_search' },
        ]),
      );
      expect(states(result)).toStrictEqual({
        'Tool A': 'failed',
        'Tool B': 'skipped',
        'Tool C': 'skipped',
        'Tool D': 'succeeded',
      });
      expect(nodeOf(result, 'Tool B').reason).toContain('dependency failure');
      expect([made['compare_prices']?.starts, made['create_itinerary']?.starts]).toStrictEqual([[], []]);
      expect(result.values).toStrictEqual({ 'Tool D': 'hotel_search' });
    }),
  );

  it(
    'SI-T 5.2 optional tools are skipped, required ones escalate',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer(Object.values(tools(world)));
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from([
          flights,
          { id: 'Tool B', tool: 'compare_prices', needs: ['Tool A'], optional: true },
          { id: 'Tool C', tool: 'create_itinerary', needs: ['Tool A'] },
        ]),
      );
      expect(states(result)).toStrictEqual({ 'Tool A': 'failed', 'Tool B': 'skipped', 'Tool C': 'skipped' });
      expect(result.status).toBe('escalated');
      const escalations = trace.filter((event) => event.type === 'escalated' && event.source === 'turn');
      expect(escalations).toMatchObject([{ nodeId: 'Tool C' }]);
      const entries = trace.map((event) => toTurnTrace(event));
      expect(
        entries.filter((entry) => entry?.message === 'Required tool skipped due to dependency failure'),
      ).toContainEqual(expect.objectContaining({ tool_id: 'create_itinerary' }));
      expect(
        entries.filter((entry) => entry?.tool_id === 'compare_prices' && entry.event_type === 'Escalation'),
      ).toStrictEqual([]);
    }),
  );

  it(
    'SI-T 5.3 default values are used when available',
    marbles((m) => {
      const world = new World(m);
      const made = tools(world);
      const layer = world.layer(Object.values(made));
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from([
          flights,
          {
            id: 'Tool B',
            tool: 'compare_prices',
            needs: ['Tool A'],
            default: { price: 0 },
            input: (values: Readonly<Record<string, unknown>>) => values['Tool A'],
          },
        ]),
      );
      expect(states(result)).toStrictEqual({ 'Tool A': 'failed', 'Tool B': 'defaulted' });
      expect(made['compare_prices']?.inputs).toStrictEqual([{ price: 0 }]);
      expect(result).toMatchObject({ status: 'partial', values: { 'Tool B': 'compare_prices' } });
      expect(trace.map((event) => toTurnTrace(event)?.message)).toContain('Used default value for Tool B');
    }),
  );

  it(
    'SI-T 5.4 independent tools continue despite failures',
    marbles((m) => {
      const world = new World(m);
      const result = world.turn(
        world.layer(Object.values(tools(world))),
        plan.from([flights, { id: 'Tool B', tool: 'hotel_search' }, { id: 'Tool C', tool: 'activity_search' }]),
      );
      expect(states(result)).toStrictEqual({ 'Tool A': 'failed', 'Tool B': 'succeeded', 'Tool C': 'succeeded' });
      expect(result.values).toStrictEqual({ 'Tool B': 'hotel_search', 'Tool C': 'activity_search' });
    }),
  );
});
