// Was: a claim was told before the key was the call's, so whoever left at that word had nothing to give back, and the
// tool ran for nobody. Now: nothing runs and nothing is kept.
import { Observable, Subscription } from 'rxjs';
import { expect, it } from 'vitest';
import type { DedupeStore, ToolEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, records, watched } from '../spec/tr-02-stores.ts';

const leavingAt = async (
  step: string,
  change: (store: DedupeStore) => Partial<DedupeStore>,
  mode: 'enforced' | 'bestEffort',
): Promise<unknown> => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime, sweepMs: Infinity });
  let runs = 0;
  const { layer, steps } = watched({ ...memory, ...change(memory) }, () => ++runs, {}, { runtime });
  const own = new Subscription();
  new Observable<ToolEvent>((subscriber) => {
    own.add(subscriber);
    return layer.call(asked({ mode })).subscribe(subscriber);
  }).subscribe((event) => {
    if (event.type === 'dedupe' && event.step === step) own.unsubscribe();
  });
  await runtime.run();
  expect(steps()).toContain(step);
  return [runs, (await records(memory)).length];
};

it.each(['enforced', 'bestEffort'] as const)(
  'R-9.6 whoever unsubscribes when %s is told that the key is claimed runs nothing and keeps nothing',
  async (mode) => {
    expect(await leavingAt('claimed', () => ({}), mode)).toEqual([0, 0]);
  },
);

it('R-10.3 whoever unsubscribes when told that nothing protects the call runs nothing', async () => {
  const lost = (): never => {
    throw new Error('connect ECONNREFUSED');
  };
  expect(await leavingAt('unprotected', () => ({ setIfNotExists: lost }), 'bestEffort')).toEqual([0, 0]);
});
