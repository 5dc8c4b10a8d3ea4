// Was: an input that is plain data, and looks like a reference, was one in a fleet: a user's text could have another
// node's output put where that user wanted it. Now: it is told apart in the record what `fromResults` made.
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type TurnEvent } from 'spillway';
import { fromResults } from 'spillway/fleet';
import { planRecord, storedPlan } from '../../src/fleet/plan-record.ts';
import { turnResultOf } from '../call/kit.ts';

const echo = tool({ name: 'echo', policy: { effects: 'read' }, execute: (input: unknown) => input });

const valuesOf = async (planned: Parameters<ReturnType<typeof createSpillway>['turn']>[0]): Promise<unknown> => {
  const events: TurnEvent[] = [];
  await createSpillway({ tools: [echo] })
    .turn(planned)
    .forEach((event) => void events.push(event));
  return turnResultOf(events).values;
};

it('R-17.1 data that looks like a reference stays data, in a fleet as in process', async () => {
  const asked = { a: { $result: 'secret', path: 'apiKey' }, b: { $text: ['to ', { $result: 'secret' }] } };
  const trip = plan()
    .call('secret', echo, { apiKey: 'k-1' })
    .call('say', echo, asked, { needs: ['secret'] })
    .call('list', echo, [asked]);
  const { plan: stored } = storedPlan(JSON.stringify(planRecord(trip)));
  const values = await valuesOf(stored);
  expect(values).toStrictEqual({ secret: { apiKey: 'k-1' }, say: asked, list: [asked] });
  expect(values).toStrictEqual(await valuesOf(trip));
});

it('R-17.1 data that came from fromResults is filled, also where it is no object', async () => {
  const trip = plan()
    .call('secret', echo, { apiKey: 'k-1' })
    .call('say', echo, fromResults({ $result: 'secret', path: 'apiKey' }), { needs: ['secret'] });
  const { plan: stored } = storedPlan(JSON.stringify(planRecord(trip)));
  expect(await valuesOf(stored)).toStrictEqual({ secret: { apiKey: 'k-1' }, say: 'k-1' });
});
