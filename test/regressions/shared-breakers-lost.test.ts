// Was: a store that hangs kept every admission and rejection waiting, and a probe whose claim failed let all through.
// Now: it is remembered as lost.
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import type { VirtualRuntime } from 'spillway/testing';
import { stateOf, world } from './shared-world.ts';

describe('R-3.10 a store that does not answer', () => {
  it('R-3.10 one that hangs is waited for once; from then on admission and rejection are local, until it answers again', async () => {
    let hangs = false;
    const slow = <T>(runtime: VirtualRuntime, answer: () => T): Promise<T> =>
      hangs ? new Promise<T>(() => undefined) : firstValueFrom(runtime.after(0)).then(answer);
    const {
      layers: [a, b],
      runtime,
      dependency,
      call,
      open,
    } = world(
      { successThreshold: 1 },
      (memory, clock) =>
        ({
          get: (key) => slow(clock, () => memory.get(key)),
          setIfNotExists: (claim, over) => slow(clock, () => memory.setIfNotExists(claim, over)),
          compareAndSet: (key, version, outcome) => slow(clock, () => memory.compareAndSet(key, version, outcome)),
          delete: (key, version) => slow(clock, () => memory.delete(key, version)),
        }) as Partial<DedupeStore>,
    );
    const told: string[] = [];
    a.trace$.subscribe((event) => event.type === 'store_changed' && told.push(event.state));
    hangs = true;
    const first = a.execute({ toolName: 't' });
    await runtime.advance(3_000);
    const second = a.execute({ toolName: 't' });
    await runtime.advance(1_999);
    expect(told).toEqual([]);
    await runtime.advance(1);
    // The second waited for 2 s when the first had waited for all 5: neither waits any longer.
    expect([(await first).status, (await second).status, told]).toEqual([
      'retriable_error',
      'retriable_error',
      ['lost'],
    ]);
    expect([await call(a), stateOf(a)]).toEqual(['circuit_open', 'open']);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(a)).toBe('success');
    dependency.up = false;
    await open(a);
    hangs = false;
    await runtime.advance(10_000);
    expect(told).toEqual(['lost', 'back']);
    dependency.up = false;
    for (let failure = 0; failure < 2; failure++) await call(b);
    expect(await call(a)).toBe('circuit_open');
  });

  it('R-3.8 a store that only takes its time keeps no rejection waiting: under 10 ms where our own breaker is open', async () => {
    const {
      layers: [a, b],
      runtime,
      open,
    } = world({}, (memory, clock) => ({
      get: (key) => (slow ? firstValueFrom(clock.after(700)).then(() => memory.get(key)) : memory.get(key)),
    }));
    let slow = false;
    await open(a);
    expect((await b.execute({ toolName: 't' })).status).toBe('circuit_open');
    slow = true;
    for (const layer of [a, b]) {
      const refused = layer.execute({ toolName: 't' });
      let over = false;
      void refused.then(() => (over = true));
      await runtime.advance(9);
      expect(over).toBe(true);
      expect((await refused).status).toBe('circuit_open');
    }
  });

  it('R-3.10 a probe whose claim got no answer is refused, all 50 of 50', async () => {
    for (const silent of [() => new Promise<never>(() => undefined), () => Promise.reject(new Error('ECONNRESET'))]) {
      const {
        layers: [a, b],
        runtime,
        dependency,
        calls,
        open,
      } = world({}, (memory) => ({
        compareAndSet: (key, version, outcome) => (lost ? silent() : memory.compareAndSet(key, version, outcome)),
      }));
      let lost = false;
      await open(a);
      await runtime.advance(1_000);
      lost = true;
      dependency.runs = 0;
      const statuses = await calls(
        Array.from({ length: 50 }, () => b),
        6_000,
      );
      expect(statuses.filter((status) => status === 'circuit_open')).toHaveLength(50);
      expect(dependency.runs).toBe(0);
    }
  });

  it('R-3.10 a place that was taken after all, by an answer too late, is given back', async () => {
    const {
      layers: [a, b],
      runtime,
      dependency,
      call,
      open,
    } = world({ successThreshold: 1 }, (memory, clock) => ({
      compareAndSet: (key, version, outcome) => {
        const record = memory.compareAndSet(key, version, outcome);
        return slow ? firstValueFrom(clock.after(7_000)).then(() => record) : record;
      },
    }));
    let slow = false;
    await open(a);
    await runtime.advance(1_000);
    slow = true;
    dependency.up = true;
    expect(await call(b, 5_000)).toBe('circuit_open');
    slow = false;
    expect(await call(a)).toBe('circuit_open');
    await runtime.advance(2_000);
    // It never ran: it was no good probe either.
    expect(stateOf(b)).toBe('half_open');
    expect(await call(a)).toBe('success');
  });

  it('R-3.10 an outage that was found while the store was lost is told once it answers', async () => {
    const {
      layers: [a, b],
      runtime,
      call,
      open,
    } = world({ cooldownMs: 60_000 }, (memory) => ({
      get: (key) => (lost ? Promise.reject(new Error('ECONNREFUSED')) : memory.get(key)),
    }));
    let lost = true;
    await open(a);
    expect(await call(b)).toBe('retriable_error');
    lost = false;
    await runtime.advance(1_000);
    expect(await call(a)).toBe('circuit_open');
    expect([await call(b), stateOf(b)]).toEqual(['circuit_open', 'open']);
  });

  it('R-3.10 nothing asks on after close()', async () => {
    const {
      layers: [a, b, c],
      runtime,
      open,
    } = world({}, () => ({ get: () => Promise.reject(new Error('ECONNREFUSED')) }));
    await open(a);
    expect(runtime.pending).toBe(1);
    await Promise.all([a.close(), b.close(), c.close()]);
    expect(runtime.pending).toBe(0);
  });
});
