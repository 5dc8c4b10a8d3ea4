// Was: a record whose cooldown was no time that anyone sets kept a shared breaker open for as long as it lay in the
// store. Now: our own cap holds.
import { describe, expect, it } from 'vitest';
import type { DedupeReading } from 'spillway/contract';
import { stateOf, world } from './shared-world.ts';

const damaged = (reading: DedupeReading): DedupeReading => {
  const payload = JSON.stringify({ ...(JSON.parse(reading.record.payload ?? '') as object), cooldownMs: 1e308 });
  return { ...reading, record: { ...reading.record, payload } };
};

describe('R-3.8 a cooldown that a record states', () => {
  it('R-3.8 is never beyond `cooldownMaxMs`, so that a damaged one does not wedge the breaker', async () => {
    const {
      layers: [a, b],
      runtime,
      dependency,
      call,
      open,
    } = world({ cooldownMaxMs: 5_000, successThreshold: 1 }, (memory) => ({
      get: async (key) => {
        const reading = await memory.get(key);
        return reading?.record.state === 'done' ? damaged(reading) : reading;
      },
    }));
    await open(a);
    dependency.up = true;
    expect(await call(b)).toBe('circuit_open');
    await runtime.advance(4_999);
    expect([await call(b), stateOf(b)]).toEqual(['circuit_open', 'open']);
    await runtime.advance(1);
    expect([await call(b), stateOf(b)]).toEqual(['success', 'closed']);
  });
});
