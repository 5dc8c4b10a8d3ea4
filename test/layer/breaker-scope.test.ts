import { plan, type Spillway } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent, transient } from '../support.ts';
import { World, answers, envelope, fails, hangs, noBackoff, once, typed } from '../call/kit.ts';

const oneStrike = { retry: once, breaker: { failureThreshold: 1, cooldownMs: 1_000, successThreshold: 1 } } as const;

describe('R-3.7 the scope of a breaker', () => {
  it(
    'R-3.7 per tool: one tool’s failures do not touch another',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('a', [fails(1, transient)], oneStrike),
        world.scripted('b', [answers(1)], oneStrike),
      ]);
      world.call(layer, 'a');
      expect([world.call(layer, 'a').status, world.call(layer, 'b').status]).toStrictEqual(['circuit_open', 'success']);
    }),
  );

  it(
    'R-3.7 and per tenant, on both forms of a request',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('a', [fails(1, transient)], oneStrike);
      const layer = world.layer([tried]);
      const target = { sessionKey: 's', actorId: 'a' };
      expect(world.call(layer, { toolName: 'a', tenant: 'acme' }).status).toBe('retriable_error');
      expect(world.call(layer, { toolName: 'a', tenant: 'acme' }).status).toBe('circuit_open');
      expect(world.call(layer, envelope('a', { target: { ...target, tenantId: 'acme' } })).status).toBe('circuit_open');
      expect(world.call(layer, { toolName: 'a', tenant: 'globex' }).status).toBe('retriable_error');
      expect(world.call(layer, { toolName: 'a' }).status).toBe('retriable_error');
      expect(layer.breakers.get('a', 'acme').state.type).toBe('open');
      expect(layer.breakers.get('a', 'initech').state.type).toBe('closed');
    }),
  );

  it(
    'R-3.7 no tool’s name is another’s name and tenant',
    marbles((m) => {
      const world = new World(m);
      const names = ['ab', '2:abc', '1:cab', 'cab', ':ab'];
      const layer = world.layer(names.map((name) => world.scripted(name, [answers(1)], oneStrike)));
      layer.breakers.get('ab', 'c').forceOpen();
      for (const name of names) expect(world.call(layer, name).status, name).toBe('success');
      expect(world.call(layer, { toolName: 'ab', tenant: 'c' }).status).toBe('circuit_open');
    }),
  );

  it(
    'R-3.7 the registry is bounded, drops the one used longest ago, and says so',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('a', [answers(0)])]);
      const trace = world.watch(layer.trace$).events;
      for (let i = 0; i < 10_001; i++) layer.breakers.get('a', `tenant-${i}`);
      expect(typed(trace, 'breaker_evicted')).toMatchObject([{ toolName: 'a', scope: 'tenant-0' }]);
      layer.breakers.get('a', 'tenant-1');
      layer.breakers.get('a', 'tenant-new');
      expect(typed(trace, 'breaker_evicted').at(-1)).toMatchObject({ scope: 'tenant-2' });
    }),
  );

  it(
    'R-3.7 calls of a turn share it with calls of their own',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('a', [fails(1, transient)], oneStrike)]);
      world.turn(layer, plan.from([{ id: 'n', tool: 'a' }]));
      expect(world.call(layer, 'a').status).toBe('circuit_open');
    }),
  );

  it(
    'R-3.1 a tool without a breaker is never refused',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('a', [fails(1, transient)], { retry: once, breaker: false });
      const layer = world.layer([tried]);
      for (let i = 0; i < 20; i++)
        expect(world.call(layer, 'a')).toMatchObject({
          status: 'retriable_error',
          error: { breakerState: 'disabled' },
        });
      expect(tried.starts).toHaveLength(20);
    }),
  );
});

describe('R-3.8 an open breaker in a call', () => {
  it(
    'R-3.8 rejects at once with retryAfterMs; the tool is not called',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('a', [fails(0, transient), answers(0)], oneStrike);
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      world.watch(layer.call({ toolName: 'a' }));
      world.at(400, () => world.watch(layer.call({ toolName: 'a' })));
      world.at(1_000, () => world.watch(layer.call({ toolName: 'a' })));
      world.flush();
      expect(tried.starts).toStrictEqual([0, 1_000]);
      expect(typed(trace, 'rejected')).toMatchObject([
        {
          atMs: 400,
          error: { kind: 'circuit_open', retryAfterMs: 600 },
          classification: 'transient',
          breakerState: 'open',
        },
      ]);
      expect(typed(trace, 'breaker_changed').map(({ from, to, atMs }) => [from, to, atMs])).toStrictEqual([
        ['closed', 'open', 0],
        ['open', 'half_open', 1_000],
        ['half_open', 'closed', 1_000],
      ]);
    }),
  );

  it(
    'R-3.8 the failure that opens it is not retried',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('a', [fails(1, transient)], { retry: noBackoff, breaker: { failureThreshold: 3 } }),
      ]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'a')).toMatchObject({
        attempts: 3,
        status: 'retry_exhausted',
        error: { breakerState: 'open' },
      });
      expect(typed(trace, 'decision').map(({ code }) => code)).toStrictEqual([
        'transient',
        'transient',
        'circuit_open',
      ]);
    }),
  );

  it(
    'R-3.3 permanent answers and cancellations do not count against it',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('a', [fails(1, permanent)], { breaker: { failureThreshold: 2 } }),
        world.scripted('b', [hangs], { breaker: { failureThreshold: 1 } }),
      ]);
      for (let i = 0; i < 20; i++) world.call(layer, 'a');
      expect(layer.breakers.get('a').state).toMatchObject({ type: 'closed', consecutiveFailures: 0, failures: 0 });
      for (let i = 0; i < 3; i++) world.watch(layer.call({ toolName: 'b' })).unsubscribe();
      expect(layer.breakers.get('b').state).toMatchObject({ type: 'closed', measured: 0 });
    }),
  );

  it(
    'R-1.4 an override counts as it reads, for retry and breaker alike',
    marbles((m) => {
      const world = new World(m);
      const policy = {
        classification: { '404': 'transient', ECONNRESET: 'permanent' },
        retry: { ...noBackoff, maxAttempts: 3 },
      } as const;
      const layer = world.layer([
        world.scripted('missing', [fails(1, permanent)], policy),
        world.scripted('reset', [fails(1, transient)], policy),
      ]);
      const call = (toolName: string, of: Spillway): number => world.call(of, toolName).attempts;
      expect(call('missing', layer)).toBe(3);
      expect(layer.breakers.get('missing').state).toMatchObject({ consecutiveFailures: 3 });
      expect(call('reset', layer)).toBe(1);
      expect(layer.breakers.get('reset').state).toMatchObject({ consecutiveFailures: 0 });
    }),
  );
});

describe('R-2.6 the retry budget', () => {
  it(
    'R-2.6 is shared by all calls and tools of a layer',
    marbles((m) => {
      const world = new World(m);
      const policy = { retry: noBackoff, breaker: false } as const;
      const [a, b] = [
        world.scripted('a', [fails(0, transient)], policy),
        world.scripted('b', [fails(0, transient)], policy),
      ];
      const layer = world.layer([a, b], { retryBudget: { ratio: 0.5, minPerSecond: 2, windowMs: 1_000 } });
      for (let i = 0; i < 4; i++) world.watch(layer.call({ toolName: i % 2 === 0 ? 'a' : 'b' }));
      world.flush();
      // Four calls in the window allow two, and the floor two more.
      expect(a.starts.length + b.starts.length - 4).toBe(4);
    }),
  );

  it(
    'R-2.6 a fresh layer has 100; `false` is no limit',
    marbles((m) => {
      const world = new World(m);
      const policy = { retry: noBackoff, breaker: false } as const;
      const retries = (options: Parameters<World['layer']>[1]): number => {
        const tried = world.scripted('a', [fails(0, transient)], policy);
        const layer = world.layer([tried], options);
        for (let i = 0; i < 50; i++) world.watch(layer.call({ toolName: 'a' }));
        world.flush();
        return tried.starts.length - 50;
      };
      expect(retries({})).toBe(110);
      expect(retries({ retryBudget: false })).toBe(200);
    }),
  );

  it(
    'R-2.3 a tool whose timeout is never retried leaves a warning, once',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('usual', [answers(0)], { effects: 'read' }),
        world.scripted('short', [answers(0)], { effects: 'read', timeoutMs: 500 }),
        world.scripted('once', [answers(0)], { effects: 'read', retry: once }),
        world.scripted('patient', [answers(0)], { effects: 'read', retry: { maxTotalTimeMs: 120_000 } }),
      ]);
      expect(layer.warnings).toHaveLength(1);
      expect(layer.warnings[0]).toContain('tool usual: a timeout is never retried');
      expect(
        world.layer([], {
          profile: 'resilient',
          tools: [world.scripted('usual', [answers(0)], { effects: 'read' }).tool],
        }).warnings,
      ).toHaveLength(1);
    }),
  );
});
