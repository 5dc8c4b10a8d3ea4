import { expect, it, vi } from 'vitest';
import { liveRuntime } from '../../src/runtime.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const msOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

it('R-8.1 ids are UUIDv7s of the moment, all different, and in order', () => {
  const startedAtMs = Date.now();
  const ids = Array.from({ length: 100_000 }, () => liveRuntime.id());
  const endedAtMs = Date.now();
  expect(ids.filter((id) => !UUID_V7.test(id))).toStrictEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toStrictEqual(ids);
  expect(ids.map(msOf).filter((ms) => ms < startedAtMs || ms > endedAtMs)).toStrictEqual([]);
});

it('R-8.1 ids of one millisecond, and of a clock that is set back, are all different', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 });
  try {
    const ids = Array.from({ length: 5_000 }, () => liveRuntime.id());
    expect(ids.toSorted()).toStrictEqual(ids);
    vi.setSystemTime(1_700_000_000_000);
    ids.push(...Array.from({ length: 5_000 }, () => liveRuntime.id()));
    vi.setSystemTime(1_800_000_000_000);
    ids.push(...Array.from({ length: 5_000 }, () => liveRuntime.id()));
    expect(new Set(ids).size).toBe(ids.length);
    expect([ids[0], ids[5_000], ids[10_000]].map((id = '') => msOf(id))).toStrictEqual([
      1_800_000_000_000, 1_700_000_000_000, 1_800_000_000_000,
    ]);
  } finally {
    vi.useRealTimers();
  }
});
