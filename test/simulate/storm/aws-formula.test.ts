import { expect, it, vi } from 'vitest';
import type * as Backoff from '../../../src/policy/retry/backoff.ts';
import { AWS, contention } from './aws.ts';

/** How often a wait was drawn by the formula below. */
const drawn = vi.hoisted(() => ({ count: 0 }));

// `min(cap, random(base, 3 * previous))`: the value is cut, where cuts the range that it is drawn from.
vi.mock('../../../src/policy/retry/backoff.ts', async (original) => {
  const module = await original<typeof Backoff>();
  const backoffDelayMs: typeof module.backoffDelayMs = (policy, retry, previousDelayMs, random) => {
    const { strategy, initialDelayMs, maxDelayMs } = policy;
    if (strategy !== 'decorrelated') return module.backoffDelayMs(policy, retry, previousDelayMs, random);
    drawn.count++;
    const topMs = 3 * (previousDelayMs ?? initialDelayMs);
    return Math.min(maxDelayMs, initialDelayMs + random() * (topMs - initialDelayMs));
  };
  return { ...module, backoffDelayMs };
});

it.each(AWS.filter(({ policy }) => policy === 'decorrelated'))(
  'SIM-3 $clients clients, decorrelated by the formula of the AWS simulator: its work and its time',
  (line) => {
    const { success, z } = contention(line);
    expect(success).toBe(1);
    expect(drawn.count).toBeGreaterThan(1_000);
    expect(Math.abs(z.work)).toBeLessThan(4);
    expect(Math.abs(z.ms)).toBeLessThan(4);
  },
);
