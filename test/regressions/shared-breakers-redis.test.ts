// Was: over Redis, too, half of a breaker's options were each process's own, and a server that hangs kept every
// rejection waiting. Now: as says.
import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, tool, type BreakerOptions, type Spillway } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { CLIENTS, at, type TestClient } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

/** What is waited for here comes within this, however busy the machine is. */
const SOON = { timeout: 60_000, interval: 10 } as const;

describe.each(CLIENTS)('R-3.10 breakers shared over Redis, by %s', (_, connect) => {
  let server: RedisServer;
  let clients: TestClient[] = [];
  let layers: Spillway[] = [];
  let state = { up: false, runs: 0, ranAtMs: [] as number[], retryAfterMs: undefined as number | undefined };

  /** A layer with a store and a connection of its own, as another process has. */
  const made = async (breaker: BreakerOptions, storeTimeoutMs = 5_000): Promise<Spillway> => {
    const client = await connect(at(server));
    clients.push(client);
    const flaky = tool({
      name: 'flaky',
      policy: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 2, ...breaker } },
      execute: () => {
        state.runs++;
        state.ranAtMs.push(performance.now());
        if (state.up) return 'ok';
        throw state.retryAfterMs === undefined
          ? new Error('ECONNRESET')
          : new ToolExecutionError('execution_error', 'slow down', { status: 503, retryAfterMs: state.retryAfterMs });
      },
    });
    const layer = createSpillway({
      tools: [flaky],
      store: redisStore(client.client),
      shareBreakers: true,
      storeTimeoutMs,
    });
    layers.push(layer);
    return layer;
  };
  const call = async (layer: Spillway): Promise<string> => (await layer.execute({ toolName: 'flaky' })).status;
  const stateOf = (layer: Spillway): string => layer.breakers.get('flaky').state.type;
  const open = async (layer: Spillway): Promise<void> => {
    for (let failure = 0; failure < 2; failure++) await call(layer);
    await expect.poll(() => server.cli('--raw', 'keys', '*breaker*'), SOON).toContain('breaker');
  };
  /** Asks until it runs again, and gives how long after the last time that was. */
  const untilRun = async (layer: Spillway): Promise<number> => {
    const before = state.runs;
    await expect
      .poll(async () => {
        await call(layer);
        return state.runs;
      }, SOON)
      .toBe(before + 1);
    const [last = NaN, now = NaN] = state.ranAtMs.slice(-2);
    return now - last;
  };

  beforeEach(async () => {
    server = await startRedis();
    clients = [];
    layers = [];
    state = { up: false, runs: 0, ranAtMs: [], retryAfterMs: undefined };
  });
  afterEach(async () => {
    // One that was stopped answers nobody, not even who closes.
    await server.kill('SIGCONT');
    for (const layer of layers) await layer.close();
    for (const client of clients) await client.close();
    await server.stop();
  });

  it('R-2.4 R-3.10 a Retry-After and a growing cooldown keep the other process away, and it shows why', async () => {
    const breaker = { cooldownMs: 200, cooldownMultiplier: 4, successThreshold: 1 };
    const [a, b] = [await made(breaker), await made(breaker)];
    // Long enough for all that is looked at before it is over, on a machine that stands still for a second.
    state.retryAfterMs = 3_000;
    const openedMs = performance.now();
    await open(a);
    expect([await call(b), stateOf(b)]).toEqual(['circuit_open', 'open']);
    // Its record is there before what it says: open is all that is known until then.
    await expect
      .poll(async () => (await call(b), (await b.inspect()).breakers), SOON)
      .toMatchObject([{ toolName: 'flaky', state: { type: 'open', consecutiveFailures: 2 } }]);
    expect(b.breakers.get('flaky').state.retryAfterMs).toBeGreaterThan(200);
    state.retryAfterMs = undefined;
    await untilRun(b);
    // By the store's clock, which a process knows to a round trip.
    expect(performance.now() - openedMs).toBeGreaterThan(2_900);
    // The probe of one process failed; 200 x 4 for the other.
    expect(await untilRun(a)).toBeGreaterThan(600);
    state.up = true;
    await expect.poll(() => call(b), SOON).toBe('success');
    expect(stateOf(b)).toBe('closed');
    // The result may be there before the record is gone.
    await expect.poll(() => call(a), SOON).toBe('success');
    expect(stateOf(a)).toBe('closed');
  });

  it('R-3.10 R-3.8 Redis hangs: found once, then each call is local and no rejection takes 10 ms, until it answers again', async () => {
    const [a, b] = [await made({ cooldownMs: 60_000 }, 500), await made({ cooldownMs: 60_000 }, 500)];
    const told: string[] = [];
    a.trace$.subscribe((event) => event.type === 'store_changed' && event.state !== 'weak' && told.push(event.state));
    expect([await call(a)]).toEqual(['retriable_error']);
    await server.kill('SIGSTOP');
    expect([await call(a), told]).toEqual(['retriable_error', ['lost']]);
    const tookMs: number[] = [];
    for (let n = 0; n < 50; n++) {
      const fromMs = performance.now();
      expect(await call(a)).toBe('circuit_open');
      tookMs.push(performance.now() - fromMs);
    }
    // The quickest: the machine may be busy, a wait for the store would be in each.
    expect(Math.min(...tookMs)).toBeLessThan(10);
    await server.kill('SIGCONT');
    await expect.poll(() => told, SOON).toEqual(['lost', 'back']);
    // What was found while nobody could be told is told now.
    expect(await call(a)).toBe('circuit_open');
    await expect
      .poll(
        async () => ((await b.inspect()).breakers.length === 0 || stateOf(b) !== 'open' ? call(b) : stateOf(b)),
        SOON,
      )
      .toBe('open');
    expect(await call(b)).toBe('circuit_open');
  });

  it('R-3.10 Redis hangs while 50 ask for a probe: at most one is admitted, by the process’s own breaker', async () => {
    const [a, b] = [await made({ cooldownMs: 3_000 }), await made({ cooldownMs: 3_000 }, 1_000)];
    await open(a);
    expect(await call(b)).toBe('circuit_open');
    await expect.poll(() => stateOf(b), SOON).toBe('half_open');
    const before = state.runs;
    await server.kill('SIGSTOP');
    const statuses = await Promise.all(Array.from({ length: 50 }, () => call(b)));
    expect(statuses.filter((status) => status !== 'circuit_open').length).toBeLessThanOrEqual(1);
    expect(state.runs - before).toBeLessThanOrEqual(1);
  });
});
