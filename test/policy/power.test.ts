import fc from 'fast-check';
import { expect, it } from 'vitest';
import { power } from '../../src/policy/power.ts';

it('R-2.1 a power is the same number on every engine: exact where it fits, and never infinite', () => {
  expect(power(2, 52)).toBe(4_503_599_627_370_496);
  expect(power(1.5, 20)).toBe(3_486_784_401 / 1_048_576);
  expect(power(3, 0)).toBe(1);
  expect(power(10, 400)).toBe(Number.MAX_VALUE);
  // Here Node 22 and Node 24 differ by their own `**`.
  expect(power(1.5, 34)).toBe(Number(3n ** 34n) / 2 ** 34);
});

it('R-2.1 and close to the true one for any base and count', () => {
  fc.assert(
    fc.property(fc.double({ min: 1, max: 10, noNaN: true }), fc.nat({ max: 300 }), (base, times) => {
      expect(power(base, times) / base ** times).toBeCloseTo(1, 10);
    }),
  );
});
