import { describe, expect, it } from 'vitest';
import { anthropicGateway } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway } from 'spillway/gateway/anthropic-server';
import { TurnGate } from '../../../src/gateway/wire/limits.ts';
import { handClock } from '../../support.ts';
import { add, asked, kit, until } from '../kit.ts';
import { said } from '../upstream.ts';

const kindOf = (work: () => unknown): unknown => {
  try {
    work();
    return 'in';
  } catch (error) {
    return (error as { kind: unknown }).kind;
  }
};

describe('R-13.5 limits', () => {
  it('R-13.5 a key may ask so often, and again as the window goes on', () => {
    const clock = handClock();
    const gate = new TurnGate(100, { requests: 2, windowMs: 1_000 }, clock.runtime);
    const enter = (key: string): unknown => kindOf(() => gate.admit([key]));
    expect([enter('a'), enter('a'), enter('a'), enter('b')]).toStrictEqual(['in', 'in', 'rate_limited', 'in']);
    clock.pass(499);
    expect(enter('a')).toBe('rate_limited');
    clock.pass(1);
    expect([enter('a'), enter('a')]).toStrictEqual(['in', 'rate_limited']);
    try {
      gate.admit(['a']);
    } catch (error) {
      expect(error).toMatchObject({ retryAfterMs: 500 });
    }
  });

  it('R-13.5 a key that was idle for long may ask no more often at once than the limit says', () => {
    const clock = handClock();
    const gate = new TurnGate(100, { requests: 2, windowMs: 1_000 }, clock.runtime);
    const ask = (): unknown => kindOf(() => gate.admit(['a']));
    ask();
    clock.pass(10_000);
    expect([ask(), ask(), ask()]).toStrictEqual(['in', 'in', 'rate_limited']);
  });

  it('R-13.5 drain: a gateway whose turns have ended in time leaves no timer that would hold the process', async () => {
    const clock = handClock();
    const gate = new TurnGate(100, undefined, clock.runtime);
    const place = gate.enter();
    const done = gate.drain(30_000);
    expect(clock.runtime.timers).toBe(1);
    place.leave();
    await done;
    expect([gate.running, clock.runtime.timers, place.harvest.aborted]).toStrictEqual([0, 0, false]);
  });

  it('R-13.5 drain: waits for those inside, and no longer than it may', async () => {
    const clock = handClock();
    const gate = new TurnGate(100, undefined, clock.runtime);
    const place = gate.enter();
    let drained = false;
    const done = gate.drain(1_000).then(() => (drained = true));
    expect(kindOf(() => gate.enter())).toBe('draining');
    clock.pass(999);
    expect(place.harvest.aborted).toBe(false);
    clock.pass(2);
    clock.pass(1);
    expect(place.harvest.aborted).toBe(true);
    expect(drained).toBe(false);
    place.leave();
    place.leave();
    await done;
    expect([gate.running, clock.runtime.timers]).toStrictEqual([0, 0]);
  });

  it('R-13.5 over the wire: 529 with too many turns, 429 with too many of one key, each with retry-after', async () => {
    const gate = await kit({ limits: { maxTurns: 1, rate: { requests: 3, windowMs: 600_000 } } });
    const { promise: after, resolve: goOn } = Promise.withResolvers<void>();
    gate.upstream.answer((_, place) => (place === 0 ? { after, blocks: [said('late')] } : {}));
    const first = gate.post(asked);
    await until(() => gate.gateway.running === 1);
    const second = await gate.post(asked);
    expect([second.status, second.headers.get('retry-after')]).toStrictEqual([529, '1']);
    expect(await second.json()).toMatchObject({ error: { type: 'overloaded_error' } });
    goOn();
    expect((await first).status).toBe(200);
    expect((await gate.post(asked)).status).toBe(200);
    const fourth = await gate.post(asked);
    expect(fourth.status).toBe(429);
    // A third of the window, less what has passed since the first one.
    const waitS = Number(fourth.headers.get('retry-after'));
    expect(waitS > 100 && waitS <= 200, `${waitS} s`).toBe(true);
    expect(await fourth.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
    expect((await gate.post(asked, { 'x-api-key': 'other' })).status).toBe(200);
    expect(gate.log.map(({ fields }) => fields['kind'])).toStrictEqual(['overloaded', 'rate_limited']);
    expect(JSON.stringify(gate.log)).not.toContain('test-key');
    await gate.close();
  });

  it('R-2.9 options are checked', async () => {
    const upstream = 'http://127.0.0.1:1';
    const wrong: ReadonlyArray<readonly [object, RegExp]> = [
      [{ upstream: 'nowhere' }, /upstream must be an address/],
      [{ upstream: 'ftp://x' }, /http or https/],
      [{ upstream: 'http://user:pass@x' }, /no user, query or fragment/],
      [{ upstream, tools: [add] }, /tools need a layer/],
      [{ upstream, tool: [] }, /no option "tool"/],
      [{ upstream, limits: { maxDepth: 1 } }, /limits.maxDepth must be an integer from 8/],
      [{ upstream, limits: { rate: { requests: 0, windowMs: 1 } } }, /limits.rate.requests/],
      [{ upstream, pingMs: 0 }, /pingMs/],
      [{ upstream, unknownCalls: 'maybe' }, /unknownCalls must be one of refuse, pass/],
      [{ upstream, upstreamRetry: { maxAttempts: 0 } }, /maxAttempts/],
    ];
    for (const [options, message] of wrong)
      expect(() => anthropicGateway(options as { upstream: string })).toThrow(message);
    const gateway = anthropicGateway({ upstream });
    await expect(serveAnthropicGateway(gateway, { port: -1 })).rejects.toThrow(/port must be an integer/);
    await expect(serveAnthropicGateway(gateway, { host: 'a b' })).rejects.toThrow(/host must be/);
    const server = await serveAnthropicGateway(gateway);
    await expect(serveAnthropicGateway(gateway, { port: server.port })).rejects.toThrow(
      /another program listens there/,
    );
    await server.close();
  });
});
