import { filter, map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, plan, tool } from '../../src/index.ts';
import { toolMetrics } from '../../src/sinks/tool-metrics.ts';
import { toTurnTrace, type TurnTraceEntry } from '../../src/sinks/turn-trace.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';

describe('R-7.2 the turn trace', () => {
  it(
    'R-7.2 tells each error with class, breaker state, retries and decision, and each timeout with its limit',
    marbles((m) => {
      let attempts = 0;
      const slow = tool({
        name: 'flight_search',
        policy: { timeoutMs: 50, retry: { maxAttempts: 2, initialDelayMs: 10, jitterPercent: 0 } },
        execute: () => (++attempts === 1 ? new Promise(() => undefined) : 'found'),
      });
      const spillway = createSpillway({ tools: [slow], runtime: runtimeOn(m.scheduler) });
      const entries: TurnTraceEntry[] = [];
      spillway.trace$
        .pipe(
          map(toTurnTrace),
          filter((entry) => entry !== undefined),
        )
        .subscribe((entry) => entries.push(entry));
      spillway.call({ toolName: 'flight_search' }).subscribe();
      m.flush();
      const failure = {
        tool_id: 'flight_search',
        error: 'Tool timeout after 50ms',
        classification: 'transient',
        circuit_breaker_state: 'closed',
        retry_count: 0,
      };
      expect(entries).toEqual([
        { event_type: 'ToolTimeout', ...failure, timeout_ms: 50, timestamp: '1970-01-01T00:00:00.05Z' },
        {
          event_type: 'ToolError',
          ...failure,
          decision: 'retry',
          message: 'timeout is temporary, and attempts and time are left',
          timestamp: '1970-01-01T00:00:00.05Z',
        },
        {
          event_type: 'ToolSucceeded',
          tool_id: 'flight_search',
          retry_count: 1,
          message: 'Tool succeeded on retry 2',
          timestamp: '1970-01-01T00:00:00.06Z',
        },
      ]);
    }),
  );

  it(
    'R-7.2 has the phrases: breaker opened, alternative used, default used, required skipped',
    marbles((m) => {
      const execute = (): never => {
        throw new ToolExecutionError('transport_error', 'reset');
      };
      const down = tool({
        name: 'down',
        policy: { breaker: { failureThreshold: 1 }, alternatives: ['spare'] },
        execute,
      });
      const spare = tool({ name: 'spare', execute: () => 1 });
      const bad = tool({ name: 'bad', policy: { breaker: false, retry: { maxAttempts: 1 } }, execute });
      const spillway = createSpillway({ tools: [down, spare, bad], runtime: runtimeOn(m.scheduler) });
      const messages: string[] = [];
      spillway.trace$.subscribe((event) => messages.push(toTurnTrace(event)?.message ?? ''));
      const nodes = plan()
        .call('a', down, undefined)
        .call('b', bad, undefined)
        .call('c', spare, undefined, { needs: ['b'], default: undefined as never })
        .call('d', spare, undefined, { needs: ['b'] });
      spillway
        .turn(plan.from(nodes.nodes.map((node) => (node.id === 'c' ? { ...node, default: 0 } : node))))
        .subscribe();
      m.flush();
      for (const phrase of [
        'Circuit breaker opened for down',
        'Used alternative tool',
        'Used default value for c',
        'Required tool skipped due to dependency failure',
      ]) {
        expect(messages).toContain(phrase);
      }
    }),
  );
});

describe('R-7.3 metrics per tool', () => {
  it(
    'R-7.3 counts errors by class, retries and how they ended, timeouts and openings',
    marbles((m) => {
      const outcomes: Array<() => unknown> = [
        () => new Promise(() => undefined),
        () => 'ok',
        () => {
          throw new ToolExecutionError('transport_error', 'reset');
        },
        () => {
          throw new ToolExecutionError('transport_error', 'reset');
        },
        () => {
          throw new ToolExecutionError('execution_error', 'no', { status: 404 });
        },
      ];
      const unsteady = tool({
        name: 'unsteady',
        policy: { timeoutMs: 5, breaker: { failureThreshold: 2 }, retry: { maxAttempts: 2, initialDelayMs: 1 } },
        execute: () => outcomes.shift()?.(),
      });
      const spillway = createSpillway({ tools: [unsteady], runtime: runtimeOn(m.scheduler) });
      const metrics = toolMetrics();
      spillway.trace$.subscribe(metrics);
      [0, 100, 60_000].forEach((atMs) =>
        m.scheduler.schedule(() => spillway.call({ toolName: 'unsteady' }).subscribe(), atMs),
      );
      m.flush();
      expect(metrics.get('unsteady')).toEqual({
        error_count: 4,
        transient_error_count: 3,
        permanent_error_count: 1,
        retry_count: 2,
        retry_success_rate: 0.5,
        circuit_breaker_opens: 1,
        timeout_count: 1,
      });
      expect(metrics.get('unknown').error_count).toBe(0);
      expect(Object.keys(metrics.all())).toEqual(['unsteady']);
    }),
  );
});
