import { firstValueFrom } from 'rxjs';
import { plan, tool, type AnyTool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { handFleet, type HandWorker } from './by-hand.ts';

/** How a trip ends that no worker dies in. */
type Way = 'fails' | 'completes' | 'runs out of time' | 'is cancelled' | 'has a booking that outlasts it';

/** Those that can end with all that they wanted. */
const CAN_COMPLETE: readonly Way[] = ['completes', 'has a booking that outlasts it'];

const trip = plan.from(
  [
    { id: 'flight', tool: 'flight' },
    { id: 'hotel', tool: 'hotel', needs: ['flight'] },
    { id: 'car', tool: 'car' },
    { id: 'look', tool: 'look', needs: ['hotel'] },
  ],
  { onFailure: 'compensate', timeoutMs: 10_000 },
);

/** Kills a machine at its question of this number, before anybody has heard it or behind its answer. */
const diesAt = ({ machine }: HandWorker, question: number, isHeard: boolean): { readonly asked: () => number } => {
  const ask = machine.ask.bind(machine);
  let asked = 0;
  machine.ask = async <T>(given: () => T | PromiseLike<T>): Promise<T> => {
    if (++asked !== question) return ask(given);
    if (!isHeard) machine.kill();
    return ask(async () => {
      const answer = await given();
      machine.kill();
      return answer;
    });
  };
  return { asked: () => asked };
};

/** One trip whose first worker dies at a question, and whose second one finishes it. */
const tripOf = async (way: Way, question: number, isHeard: boolean, enforcesKey: boolean) => {
  const world = handFleet();
  const { runtime } = world;
  const effects = new Map<string, number>();
  const booked = new Set<string>();
  const toolsOf = (): AnyTool[] => [
    ...['flight', 'hotel', 'car'].map(
      (name) =>
        tool({
          name,
          policy: {
            effects: 'mutating',
            retry: { maxAttempts: 1 },
            timeoutMs: 30_000,
            verify: { settleMs: 1_000 },
            compensate: { enforcesKey },
          },
          execute: async (_: unknown, { callKey }) => {
            const outlasts = name === 'car' && way === 'has a booking that outlasts it';
            await firstValueFrom(runtime.after(outlasts ? 12_000 : 20));
            if (!booked.has(callKey)) effects.set(name, (effects.get(name) ?? 0) + 1);
            booked.add(callKey);
            return { name };
          },
          verify: async (_: unknown, { callKey }) => ({ done: booked.has(callKey) }),
          compensate: async (_: unknown, { callKey }) => {
            await firstValueFrom(runtime.after(20));
            booked.delete(callKey);
          },
        }) as AnyTool,
    ),
    tool({
      name: 'look',
      policy: { effects: 'read', timeoutMs: 30_000, retry: { maxAttempts: 1 } },
      execute: async () => {
        if (way === 'fails') throw Object.assign(new Error('nothing to see'), { status: 422 });
        if (!CAN_COMPLETE.includes(way)) await firstValueFrom(runtime.after(1e9));
        return 'the sea';
      },
    }),
  ];
  const a = world.worker('A', toolsOf());
  const b = world.worker('B', toolsOf());
  await world.fleet.submit('t', trip);
  const death = diesAt(a, question, isHeard);
  await a.give('t');
  await runtime.advance(500);
  if (way === 'is cancelled') await world.fleet.cancel('t');
  await runtime.advance(15_000);
  const isDead = a.machine.isDead;
  if (isDead) await b.give('t');
  await runtime.advance(60_000);
  return { result: world.result('t'), booked, effects, isDead, asked: death.asked() };
};

/** What must be so, wherever its worker died. */
const problemsOf = (way: Way, { result, booked, effects }: Awaited<ReturnType<typeof tripOf>>): string[] => {
  if (result === undefined) return ['it did not settle'];
  const { compensated = [], stays = [], shared = [] } = result.compensation ?? {};
  const ids = [...compensated, ...stays.map(({ id }) => id), ...shared];
  const there = [...booked].map((callKey) => callKey.split('/')[1] ?? '');
  const isWhole = result.status === 'completed' && result.compensation === undefined;
  return [
    ...[...effects].flatMap(([name, times]) => (times > 1 ? [`${name} was booked ${times} times`] : [])),
    ...(new Set(ids).size === ids.length ? [] : [`a node is named twice: ${ids.join()}`]),
    ...(isWhole && there.length !== 3 ? ['it completed without what it booked'] : []),
    ...(isWhole && !CAN_COMPLETE.includes(way) ? ['it completed'] : []),
    ...there.flatMap((id) => (isWhole || stays.some((left) => left.id === id) ? [] : [`${id} stays untold`])),
    ...compensated.flatMap((id) => (there.includes(id) ? [`${id} is told as undone`] : [])),
  ];
};

describe('R-18.6 a trip of a fleet whose worker dies at any of its questions', () => {
  it.each(['fails', 'completes', 'runs out of time', 'is cancelled', 'has a booking that outlasts it'] as const)(
    'R-18.6 that %s: what it booked is undone, stays as it should, or is told to a person',
    async (way) => {
      const found: string[] = [];
      let deaths = 0;
      for (const enforcesKey of [true, false])
        for (const isHeard of [false, true])
          for (let question = 1; ; question++) {
            const run = await tripOf(way, question, isHeard, enforcesKey);
            found.push(...problemsOf(way, run).map((problem) => `${problem} (${question} ${isHeard} ${enforcesKey})`));
            if (!run.isDead) break;
            deaths++;
          }
      expect(found).toEqual([]);
      expect(deaths).toBeGreaterThan(100);
    },
  );
});
