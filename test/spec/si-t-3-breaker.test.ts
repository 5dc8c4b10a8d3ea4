import { ToolExecutionError, type Spillway, type ToolPolicy, type ToolResultEnvelope } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';
import { World, answers, fails, messages, once, resultOf, type Step } from '../call/kit.ts';

const COOLDOWN_MS = 30_000;
/** One attempt a call, so that a call is one outcome; `successThreshold` 1 as section 14 says. */
const policy: ToolPolicy = {
  retry: once,
  breaker: { failureThreshold: 5, cooldownMs: COOLDOWN_MS, successThreshold: 1 },
};

const state = (layer: Spillway): string => layer.breakers.get('flight_search').state.type;
const call = (world: World, layer: Spillway): ToolResultEnvelope =>
  resultOf(world.watch(layer.call({ toolName: 'flight_search' })).events);
/** A layer whose breaker has just opened at t = 0; what comes after the five failures follows `then`. */
const opened = (
  world: World,
  then: readonly Step[],
): { readonly layer: Spillway; readonly starts: readonly number[] } => {
  const tried = world.scripted(
    'flight_search',
    [...Array.from({ length: 5 }, () => fails(0, transient)), ...then],
    policy,
  );
  const layer = world.layer([tried]);
  for (let i = 0; i < 5; i++) call(world, layer);
  return { layer, starts: tried.starts };
};

describe('SI-T 3 circuit breaker', () => {
  it(
    'SI-T 3.1 opens after N failures',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], policy);
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      for (let failure = 1; failure <= 5; failure++) {
        expect(state(layer)).toBe('closed');
        expect(call(world, layer).status).toBe('retriable_error');
      }
      expect(state(layer)).toBe('open');
      expect(call(world, layer)).toMatchObject({ status: 'circuit_open', attempts: 0, durationMs: 0 });
      expect(tried.starts).toHaveLength(5);
      expect(messages(trace)).toContain('Circuit breaker opened for flight_search');
    }),
  );

  it.each([
    ['succeeds: closed', answers(10), 'closed'],
    ['fails: open, and the cooldown starts anew', fails(10, transient), 'open'],
  ] as const)('SI-T 3.2 half-opens after the timeout; the one retry %s', (_name, probe, after) =>
    marbles((m) => {
      const world = new World(m);
      const { layer, starts } = opened(world, [probe, answers(0)]);
      const seen: Array<readonly [number, string]> = [];
      layer.breakers.get('flight_search').state$.subscribe(({ type }) => seen.push([world.runtime.now(), type]));
      const rejected: string[] = [];
      const reject = (): void => void rejected.push(call(world, layer).status);
      reject();
      world.at(15_000, reject);
      let queried = '';
      world.at(COOLDOWN_MS, () => {
        queried = state(layer);
        world.watch(layer.call({ toolName: 'flight_search' }));
        // Exactly one is let through until it has ended.
        reject();
        reject();
      });
      world.at(COOLDOWN_MS + 9, reject);
      if (after === 'open') {
        world.at(COOLDOWN_MS + 10 + 29_999, reject);
        world.at(COOLDOWN_MS + 10 + 30_000, () => world.watch(layer.call({ toolName: 'flight_search' })));
      }
      world.flush();
      expect(queried).toBe('half_open');
      expect(rejected.every((status) => status === 'circuit_open')).toBe(true);
      expect(rejected).toHaveLength(after === 'open' ? 6 : 5);
      expect(starts.slice(5)).toStrictEqual(
        after === 'open' ? [COOLDOWN_MS, COOLDOWN_MS + 10 + 30_000] : [COOLDOWN_MS],
      );
      expect(seen.slice(0, 3)).toStrictEqual([
        [0, 'open'],
        [COOLDOWN_MS, 'half_open'],
        [COOLDOWN_MS + 10, after],
      ]);
    })(),
  );

  it(
    'SI-T 3.3 closes after success in half-open, with the counter at 0',
    marbles((m) => {
      const world = new World(m);
      const { layer } = opened(world, [answers(0)]);
      const statuses: string[] = [];
      world.at(COOLDOWN_MS, () => {
        expect(state(layer)).toBe('half_open');
        statuses.push(call(world, layer).status);
        expect(layer.breakers.get('flight_search').state).toMatchObject({ type: 'closed', consecutiveFailures: 0 });
        for (let i = 0; i < 3; i++) statuses.push(call(world, layer).status);
      });
      world.flush();
      expect(statuses).toStrictEqual(['success', 'success', 'success', 'success']);
    }),
  );

  it(
    'SI-T 3.4 permanent errors do not increment the counter',
    marbles((m) => {
      const world = new World(m);
      const errors = [
        'Invalid input',
        'Authentication failed (401)',
        'Not found (404)',
        'Invalid input',
        'Authentication failed (401)',
      ];
      const layer = world.layer([
        world.scripted(
          'flight_search',
          errors.map((message) => fails(0, new Error(message))),
          policy,
        ),
      ]);
      for (const _ of errors) {
        expect(call(world, layer)).toMatchObject({ status: 'error', error: { terminal: true } });
        expect(layer.breakers.get('flight_search').state).toMatchObject({
          type: 'closed',
          consecutiveFailures: 0,
          failures: 0,
        });
      }
    }),
  );

  it(
    'SI-T 3.5 transient errors increment it',
    marbles((m) => {
      const world = new World(m);
      const errors = [
        new ToolExecutionError('timeout', 'Tool timeout after 30s', { uncertain: true }),
        new Error('Rate limit exceeded (429)'),
        Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
        new Error('Connection timeout after 30s'),
        new Error('Rate limit exceeded (429)'),
      ];
      const layer = world.layer([
        world.scripted(
          'flight_search',
          errors.map((error) => fails(0, error)),
          policy,
        ),
      ]);
      errors.forEach((_, i) => {
        expect(layer.breakers.get('flight_search').state).toMatchObject({ type: 'closed', consecutiveFailures: i });
        call(world, layer);
      });
      expect(layer.breakers.get('flight_search').state).toMatchObject({ type: 'open', consecutiveFailures: 5 });
    }),
  );
});
