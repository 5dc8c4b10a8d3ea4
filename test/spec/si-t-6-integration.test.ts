import { ToolExecutionError, decideRecovery, plan, type FailureNotification } from 'spillway';
import { describe, expect, it } from 'vitest';
import { toTurnTrace } from '../../src/sinks/turn-trace.ts';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';
import { World, answers, fails, hangs, noBackoff, noJitter, states, typed } from '../call/kit.ts';

const timedOut = new ToolExecutionError('timeout', 'Tool timeout after 1s', { uncertain: true });
const notification: FailureNotification = {
  toolName: 'flight_search',
  callId: 'c',
  error: timedOut,
  classification: 'transient',
  breakerState: 'closed',
  attempt: 1,
  maxAttempts: 5,
  elapsedMs: 1_000,
  maxTotalTimeMs: 120_000,
  nextDelayMs: 100,
  turnRemainingMs: 299_000,
  budgetAvailable: true,
  alternatives: [],
  required: true,
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: false,
};

describe('SI-T 6 integration', () => {
  it(
    'SI-T 6.1 the error handler receives notifications: error, tool, attempt count, turn',
    marbles((m) => {
      const world = new World(m);
      const heard: FailureNotification[] = [];
      const layer = world.layer([
        world.scripted('flight_search', [fails(10, transient), answers(10)], { retry: noJitter }),
      ]);
      layer.failures$.subscribe((failure) => heard.push(failure));
      const trace = world.watch(layer.trace$).events;
      world.turn(layer, plan.from([{ id: 'flights', tool: 'flight_search' }]));
      const turnId = trace.find(({ type }) => type === 'turn_started')?.turnId;
      expect(turnId).toBeTypeOf('string');
      expect(heard).toMatchObject([
        {
          error: transient,
          toolName: 'flight_search',
          attempt: 1,
          maxAttempts: 5,
          turnId,
          elapsedMs: 10,
          turnRemainingMs: 299_990,
          classification: 'transient',
          breakerState: 'closed',
        },
      ]);
    }),
  );

  it(
    'SI-T 6.2 it decides: a transient error, the circuit closed, retries left: retry',
    marbles((m) => {
      expect(decideRecovery(notification)).toMatchObject({ strategy: 'retry', code: 'transient', delayMs: 100 });
      expect(decideRecovery(notification).reason).not.toBe('');
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [hangs, answers(1)], { timeoutMs: 1_000, retry: noJitter }),
      ]);
      const trace = world.watch(layer.trace$).events;
      world.call(layer, 'flight_search');
      expect(typed(trace, 'decision')).toMatchObject([
        { strategy: 'retry', code: 'transient', breakerState: 'closed', classification: 'transient' },
      ]);
    }),
  );

  it(
    'SI-T 6.3 a retry succeeds after a transient error',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [hangs, answers(10, 'AY73')], { timeoutMs: 1_000, retry: noJitter }),
      ]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'success',
        attempts: 2,
        output: { content: 'AY73' },
      });
      expect(
        trace.map((event) => toTurnTrace(event)).filter((entry) => entry?.message === 'Tool succeeded on retry 2'),
      ).toMatchObject([{ tool_id: 'flight_search', retry_count: 1 }]);
    }),
  );

  it(
    'SI-T 6.4 an alternative tool is used when the primary fails',
    marbles((m) => {
      const world = new World(m);
      const primary = world.scripted('flight_search', [fails(10, new Error('Invalid airport code: XYZ'))], {
        alternatives: ['flight_search_backup'],
      });
      const backup = world.scripted('flight_search_backup', [answers(10, 'AY73')]);
      const layer = world.layer([primary, backup]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'success',
        toolName: 'flight_search_backup',
        attempts: 2,
        output: { content: 'AY73' },
      });
      expect([primary.starts, backup.starts]).toStrictEqual([[0], [10]]);
      expect(typed(trace, 'decision')).toMatchObject([
        { strategy: 'alternative', code: 'permanent', toolName: 'flight_search' },
      ]);
      expect(trace.map((event) => toTurnTrace(event)?.message)).toContain('Used alternative tool');
    }),
  );

  it(
    'SI-T 6.5 escalation is triggered for permanent errors, and the user is told',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [fails(10, new Error('Invalid airport code: XYZ'))])]);
      const seen = world.watch(layer.turn(plan.from([{ id: 'flights', tool: 'flight_search' }])));
      world.flush();
      expect(typed(seen.events, 'decision')).toMatchObject([
        { strategy: 'escalate', code: 'permanent', breakerState: 'closed' },
      ]);
      expect(typed(seen.events, 'attempt_started')).toHaveLength(1);
      const escalations = typed(seen.events, 'escalated');
      expect(escalations).toHaveLength(1);
      expect(escalations[0]?.message).toMatch(/flight search failed after 1 attempt/i);
      expect(escalations[0]?.choices.length).toBeGreaterThan(0);
      expect(seen.events.at(-1)).toMatchObject({ type: 'settled', result: { status: 'escalated' } });
    }),
  );

  it(
    'SI-T 6.6 the turn trace records all error handling decisions',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(10, new Error('Connection timeout after 30s')), answers(10)], {
          retry: noBackoff,
        }),
        world.scripted('hotel_search', [fails(10, new Error('Authentication failed (401)'))]),
        world.scripted('activity_search', [hangs], { timeoutMs: 50, retry: { ...noBackoff, maxAttempts: 2 } }),
      ]);
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from(['flight_search', 'hotel_search', 'activity_search'].map((name) => ({ id: name, tool: name }))),
      );
      expect(states(result)).toStrictEqual({
        flight_search: 'succeeded',
        hotel_search: 'failed',
        activity_search: 'failed',
      });
      const entries = trace.flatMap((event) => toTurnTrace(event) ?? []);
      const of = (event_type: string): unknown[] => entries.filter((entry) => entry.event_type === event_type);
      expect(of('ToolError')).toMatchObject([
        {
          tool_id: 'flight_search',
          error: 'Connection timeout after 30s',
          classification: 'transient',
          circuit_breaker_state: 'closed',
          retry_count: 0,
          decision: 'retry',
        },
        {
          tool_id: 'hotel_search',
          error: 'Authentication failed (401)',
          classification: 'permanent',
          circuit_breaker_state: 'closed',
          retry_count: 0,
          decision: 'escalate',
        },
        {
          tool_id: 'activity_search',
          error: 'Tool timeout after 50ms',
          classification: 'transient',
          circuit_breaker_state: 'closed',
          retry_count: 0,
          decision: 'retry',
        },
        {
          tool_id: 'activity_search',
          error: 'Tool timeout after 50ms',
          classification: 'transient',
          circuit_breaker_state: 'closed',
          retry_count: 1,
          decision: 'escalate',
        },
      ]);
      expect(of('ToolTimeout')).toHaveLength(2);
      expect(of('ToolSucceeded')).toMatchObject([
        { tool_id: 'flight_search', retry_count: 1, message: 'Tool succeeded on retry 2' },
      ]);
      expect(of('ToolFailed')).toMatchObject([
        { tool_id: 'hotel_search' },
        { tool_id: 'activity_search', retry_count: 1 },
      ]);
      for (const { timestamp } of entries) expect(timestamp).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/);
    }),
  );
});
