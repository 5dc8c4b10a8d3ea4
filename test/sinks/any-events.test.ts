import * as api from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TraceEvent } from 'spillway';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { pinoSink } from 'spillway/sinks/pino';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { toolMetrics } from 'spillway/sinks/tool-metrics';
import { toTurnTrace } from 'spillway/sinks/turn-trace';
import { createRedactor } from '../../src/policy/redact/values.ts';
import { eventLine } from '../../src/cli/show/event-line.ts';
import { recorder } from './otel-kit.ts';

const error = { kind: 'timeout', message: 'late', code: 'ETIMEDOUT' };
const failed = { error, classification: 'transient', rule: 'kind', breakerState: 'open' };
const result = {
  requestId: 'a',
  status: 'success',
  fromCache: true,
  cache: { matchedOn: 'inflight', ageMs: 1, keyFingerprint: 'f' },
  toolName: 't',
  durationMs: 5,
  attempts: 1,
};
const turned = {
  status: 'escalated',
  nodes: [],
  values: {},
  executedTools: 0,
  hadToolFailure: true,
  toolFailureKinds: [],
  summary: 's',
};
/** One of each event, without its header. */
const BODIES: readonly object[] = [
  { type: 'call_started', session: 's', traceparent: 'nonsense' },
  { type: 'attempt_started', attempt: 1 },
  { type: 'attempt_started', attempt: 2 },
  { type: 'attempt_succeeded', attempt: 1, durationMs: 1 },
  { type: 'attempt_failed', attempt: 1, durationMs: 1, ...failed },
  { type: 'attempt_canceled', attempt: 1, durationMs: 1 },
  { type: 'rejected', ...failed },
  { type: 'decision', strategy: 'retry', code: 'transient', reason: 'r', attempt: 1, delayMs: 5, ...failed },
  { type: 'decision', strategy: 'fail', code: 'permanent', reason: 'r', attempt: 0, ...failed },
  { type: 'dedupe', step: 'waiting', keyFingerprint: 'f', leaderCallId: 'b' },
  { type: 'dedupe', step: 'replayed', keyFingerprint: 'f', leaderCallId: 'a', ageMs: 1 },
  { type: 'hook', hook: 'prepareCall', outcome: 'blocked', attempt: 0 },
  { type: 'shadow', would: 'wait', reason: 'r', message: 'm' },
  { type: 'progress', attempt: 1, report: {} },
  { type: 'escalated', message: 'm', choices: [], attempt: 1, ...failed },
  { type: 'alternative_used', from: 'x', message: 'm' },
  { type: 'abandoned' },
  { type: 'settled', result },
].map((body) => ({ source: 'call', ...body }));
const OTHERS: readonly object[] = [
  { source: 'turn', type: 'turn_started', timeoutMs: 1, nodes: [{ id: 'n', toolName: 't', needs: ['m'] }] },
  { source: 'turn', type: 'node_started', nodeId: 'n', toolName: 't' },
  { source: 'turn', type: 'node_settled', nodeId: 'n', toolName: 't', state: 'skipped' },
  { source: 'turn', type: 'deadline', unfinished: ['n'], onDeadline: 'abort' },
  { source: 'turn', type: 'escalated', nodeId: 'n', toolName: 't', message: 'm', lacking: [], choices: [] },
  { source: 'turn', type: 'abandoned' },
  { source: 'turn', type: 'settled', result: turned },
  { source: 'layer', type: 'breaker_changed', from: 'closed', to: 'open', scope: 's', message: 'm' },
  { source: 'layer', type: 'breaker_evicted', scope: 's' },
  { source: 'layer', type: 'store_changed', state: 'full', message: 'm' },
];
const anyEvent = fc.record({
  body: fc.constantFrom(...BODIES, ...OTHERS),
  callId: fc.constantFrom('a', 'b'),
  turnId: fc.constantFrom('t1', 't2', undefined),
  nodeId: fc.constantFrom('n', 'm', undefined),
  toolName: fc.constantFrom('t', 'u'),
});
const events = fc.array(anyEvent, { maxLength: 60 }).map((list) =>
  list.map(({ body, callId, turnId, nodeId, toolName }, seq) => {
    const turn = turnId === undefined && (body as TraceEvent).source !== 'turn' ? {} : { turnId: turnId ?? 't1' };
    return {
      toolName,
      callId,
      ...turn,
      ...(nodeId === undefined ? {} : { nodeId }),
      seq,
      atMs: seq,
      ...body,
    } as TraceEvent;
  }),
);

it('R-7.1 no order of events makes a sink throw, open more than it ends, or add a series', async () => {
  const { processor, finished, started } = recorder();
  const provider = new TracerProvider({ spanProcessors: [processor] });
  const tracing = {
    getTracer: (name: string) => provider.getTracer(name),
    setSpan: api.trace.setSpan,
    setSpanContext: api.trace.setSpanContext,
  };
  const prometheus = prometheusSink({ tools: ['t', 'u'] });
  const series = async (): Promise<number> => (await prometheus.text()).split('\n').length;
  const before = await series();
  const redact = createRedactor();
  const say = (): void => undefined;
  await fc.assert(
    fc.asyncProperty(events, fc.boolean(), async (list, claw) => {
      const otel = openTelemetrySink({
        api: { ...api, trace: tracing },
        claw,
        attemptSpans: claw ? 'onRetry' : 'always',
      });
      const sinks = [otel, prometheus, toolMetrics(), pinoSink({ info: say, warn: say, error: say })];
      for (const event of list.map(redact)) {
        for (const sink of sinks) sink.next(event);
        toTurnTrace(event);
        if (event.source !== 'layer') eventLine(event);
      }
      // Whatever was left open ends with its call and its turn.
      for (const callId of ['a', 'b']) {
        otel.next({
          source: 'call',
          type: 'attempt_canceled',
          seq: 100,
          atMs: 100,
          callId,
          toolName: 't',
          attempt: 1,
          durationMs: 1,
        });
        otel.next({ source: 'call', type: 'abandoned', seq: 100, atMs: 100, callId, toolName: 't' });
      }
      for (const turnId of ['t1', 't2']) otel.next({ source: 'turn', type: 'abandoned', seq: 100, atMs: 100, turnId });
      expect(finished().length).toBe(started());
    }),
    { numRuns: 500 },
  );
  expect(await series()).toBe(before);
});
