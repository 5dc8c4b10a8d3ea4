import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool } from 'spillway';
import { sagas } from 'spillway/sagas';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

describe('sagas, which a layer is given', () => {
  it('R-18.5 a layer that was given no sagas refuses such a turn before anything runs, and resume()', async () => {
    const runtime = virtualRuntime();
    let runs = 0;
    const book = tool({ name: 'book', policy: { effects: 'mutating' }, execute: () => ++runs });
    const layer = createSpillway({ runtime });
    const trip = plan({ onFailure: 'compensate' }).call('book', book, undefined);
    await expect(lastValueFrom(layer.turn(trip))).rejects.toThrow(/give createSpillway\(\{ sagas \}\)/);
    await expect(layer.resume()).rejects.toThrow(RangeError);
    expect(runs).toBe(0);
    expect((await layer.inspect()).undoesTurns).toBeUndefined();
    expect((await createSpillway({ runtime, sagas }).inspect()).undoesTurns).toBe(true);
  });

  it('R-18.5 sagas and shared breakers are those of their entries, and nothing else', () => {
    expect(() => createSpillway({ sagas: true as never })).toThrow(/spillway\/sagas/);
    expect(() => createSpillway({ sharedBreakers: true as never })).toThrow(/spillway\/shared-breakers/);
  });
});
