// Was: Retry-After, growing cooldowns, probes, ramps and half-open's deadline were each process's own. Now: all of it
// is shared.
import { describe, expect, it } from 'vitest';
import type { Spillway } from 'spillway';
import { stateOf, world } from './shared-world.ts';

describe('R-3.10 what one process learns holds for all', () => {
  it('R-3.10 R-2.4 a Retry-After keeps all of them away, for as long as the server asked', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({});
    dependency.retryAfterMs = 5_000;
    await open(a);
    await runtime.advance(4_999);
    expect([await call(b), await call(c), await call(a)]).toEqual(['circuit_open', 'circuit_open', 'circuit_open']);
    expect(dependency.runs).toBe(2);
    dependency.up = true;
    await runtime.advance(1);
    expect(await call(b)).toBe('success');
  });

  it('R-3.10 R-2.4 a bad probe’s, too, whoever made it', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({});
    await open(a);
    await runtime.advance(1_000);
    dependency.retryAfterMs = 7_000;
    expect(await call(b)).toBe('retriable_error');
    await runtime.advance(6_999);
    expect([await call(a), await call(c)]).toEqual(['circuit_open', 'circuit_open']);
    await runtime.advance(1);
    expect(await call(c)).toBe('retriable_error');
  });

  it('R-3.10 R-3.8 no longer than cooldownMaxMs', async () => {
    const {
      layers: [a, b],
      dependency,
      runtime,
      call,
      open,
    } = world({ cooldownMaxMs: 3_000 });
    dependency.retryAfterMs = 3_600_000;
    await open(a);
    await runtime.advance(2_999);
    expect(await call(b)).toBe('circuit_open');
    await runtime.advance(1);
    expect(await call(b)).toBe('retriable_error');
  });

  it('R-3.10 R-3.11 the cooldown grows over the probes of all, up to its cap, and is itself again once closed', async () => {
    const { layers, dependency, runtime, call, open } = world({
      cooldownMultiplier: 3,
      cooldownMaxMs: 5_000,
      successThreshold: 1,
    });
    const [a, b, c] = layers;
    await open(a);
    for (const [round, cooldownMs] of [1_000, 3_000, 5_000, 5_000].entries()) {
      const prober = layers[(round + 1) % 3] ?? a;
      await runtime.advance(cooldownMs - 1);
      expect(await call(prober)).toBe('circuit_open');
      await runtime.advance(1);
      expect(await call(prober)).toBe('retriable_error');
    }
    dependency.up = true;
    await runtime.advance(5_000);
    expect(await call(c)).toBe('success');
    dependency.up = false;
    await open(b);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(a)).toBe('success');
  });

  it('R-3.10 R-3.5 as many probes at a time as there are, counted over all', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      calls,
      open,
    } = world({ probes: 3, successThreshold: 3 });
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 100, runs: 0 });
    const statuses = await calls([a, b, c, a, b, c, a, b, c], 100);
    expect(statuses.filter((status) => status === 'success')).toHaveLength(3);
    expect(statuses.filter((status) => status === 'circuit_open')).toHaveLength(6);
    expect(dependency.runs).toBe(3);
    expect(await calls([a, b, c, a, b, c], 100)).toEqual(Array.from({ length: 6 }, () => 'success'));
  });

  it('R-3.10 R-3.5 T09 two good ones close it for all: no probe more', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      calls,
      call,
      open,
      store,
    } = world({ successThreshold: 2 });
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 100 });
    expect(await call(b, 100)).toBe('success');
    expect(await calls([a, c], 100)).toEqual(['success', 'circuit_open']);
    expect(await store.get('breaker:0:t')).toBeUndefined();
    expect(await calls([a, b, c, a, b, c], 100)).toEqual(Array.from({ length: 6 }, () => 'success'));
    expect([a, b, c].map(stateOf)).toEqual(['closed', 'closed', 'closed']);
  });

  it('R-3.10 R-3.5 two are needed in a row, whoever makes them', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({ successThreshold: 2 });
    await open(a);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(b)).toBe('success');
    dependency.up = false;
    expect(await call(c)).toBe('retriable_error');
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(a)).toBe('success');
    expect(stateOf(a)).toBe('half_open');
    expect(await call(c)).toBe('success');
    expect(stateOf(c)).toBe('closed');
  });

  it('R-3.10 R-3.9 a recovery ramps for all of them', async () => {
    const { layers, dependency, runtime, calls, call, open } = world({ rampMs: 10_000, successThreshold: 1 });
    const [a, b, c] = layers;
    await open(a);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(b)).toBe('success');
    const admittedOf = async (layer: Spillway): Promise<number> => {
      const statuses = await calls(Array.from({ length: 200 }, () => layer));
      expect(statuses.every((status) => status === 'success' || status === 'circuit_open')).toBe(true);
      return statuses.filter((status) => status === 'success').length;
    };
    for (const layer of [a, b, c]) expect(await admittedOf(layer)).toBeLessThan(50);
    await runtime.advance(5_000);
    for (const layer of [a, b, c]) expect(Math.abs((await admittedOf(layer)) - 100)).toBeLessThan(40);
    await runtime.advance(5_000);
    for (const layer of [a, b, c]) expect(await admittedOf(layer)).toBe(200);
  });

  it('R-3.10 R-3.2 what fails again while it ramps opens for all again', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({ rampMs: 1_000, successThreshold: 1, failureThreshold: 1 });
    await open(a);
    await runtime.advance(1_000);
    dependency.up = true;
    expect(await call(b)).toBe('success');
    await runtime.advance(990);
    dependency.up = false;
    while (stateOf(c) === 'closed') await call(c);
    expect([await call(a), await call(b), await call(c)]).toEqual(['circuit_open', 'circuit_open', 'circuit_open']);
    expect([a, b, c].map(stateOf)).toEqual(['open', 'open', 'open']);
  });

  it('R-3.10 R-3.5 a probe that never ends is revoked for all at half-open’s deadline, and its late success changes nothing', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({ halfOpenTimeoutMs: 3_000, successThreshold: 1 }, undefined, 20_000);
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 3_500 });
    const stuck = b.execute({ toolName: 't' });
    await runtime.advance(2_999);
    expect(await call(c)).toBe('circuit_open');
    expect(stateOf(c)).toBe('half_open');
    await runtime.advance(1);
    expect([await call(c), stateOf(c), stateOf(b)]).toEqual(['circuit_open', 'open', 'open']);
    await runtime.advance(500);
    expect((await stuck).status).toBe('success');
    expect([await call(a), stateOf(a)]).toEqual(['circuit_open', 'open']);
    await runtime.advance(500);
    dependency.tookMs = 0;
    expect(await call(a)).toBe('success');
    expect(await call(b)).toBe('success');
  });

  it('R-3.10 R-3.5 a probe that flows is no stuck probe, for the others neither', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({ halfOpenTimeoutMs: 4_000, successThreshold: 1 }, undefined, 60_000);
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 1_000, values: 20 });
    const flowing = b.execute({ toolName: 't' });
    for (let second = 0; second < 19; second++) {
      await runtime.advance(1_000);
      expect([await call(c), stateOf(c)]).toEqual(['circuit_open', 'half_open']);
    }
    await runtime.advance(1_000);
    expect((await flowing).status).toBe('success');
    dependency.values = 0;
    expect(await call(c, 1_000)).toBe('success');
    expect([stateOf(b), stateOf(c)]).toEqual(['closed', 'closed']);
  });

  it('R-3.10 R-3.9 a slow probe is a bad one for all; a slow call can open it for all', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
    } = world({ slowCallMs: 50, failureThreshold: Infinity, minimumCalls: 2, windowSize: 2 });
    Object.assign(dependency, { up: true, tookMs: 60 });
    for (let slow = 0; slow < 2; slow++) expect(await call(a, 60)).toBe('success');
    expect(await call(b)).toBe('circuit_open');
    await runtime.advance(1_000);
    expect(await call(c, 60)).toBe('success');
    expect([await call(a), stateOf(a)]).toEqual(['circuit_open', 'open']);
  });

  it('R-3.6 the late end of a probe whose breaker was closed and opened anew meanwhile changes nothing', async () => {
    const {
      layers: [a, b, c],
      dependency,
      runtime,
      call,
      open,
    } = world({ probes: 2, successThreshold: 1 });
    await open(a);
    await runtime.advance(1_000);
    Object.assign(dependency, { up: true, tookMs: 2_500 });
    const late = b.execute({ toolName: 't' });
    await runtime.advance(1);
    dependency.tookMs = 0;
    expect(await call(c)).toBe('success');
    expect(stateOf(c)).toBe('closed');
    dependency.up = false;
    await open(c);
    await runtime.advance(1_000);
    expect([await call(a), await call(b)]).toEqual(['retriable_error', 'circuit_open']);
    await runtime.advance(1_000);
    const again = a.execute({ toolName: 't' });
    await runtime.advance(0);
    expect((await again).status).toBe('retriable_error');
    await runtime.advance(500);
    expect((await late).status).toBe('success');
    expect([await call(c), stateOf(c)]).toEqual(['circuit_open', 'open']);
  });
});
