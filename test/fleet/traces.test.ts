import * as api from '@opentelemetry/api';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type Spillway, type TraceEvent } from 'spillway';
import { openTelemetrySink } from 'spillway/sinks/opentelemetry';
import { prometheusSink, type PrometheusSink } from 'spillway/sinks/prometheus';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { workersOf } from '../layer/on-call-questions.ts';
import { named, parentOf, recorder, type SeenSpan } from '../sinks/otel-kit.ts';
import { handFleet, sharedStore, type HandFleet, type HandWorker } from './by-hand.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const traceContext = { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`, tracestate: 'vendor=1' };

/** A worker whose layer is watched, by a span exporter and counters of its own. */
interface Watched extends HandWorker {
  readonly layer: Spillway;
  readonly events: TraceEvent[];
  readonly metrics: PrometheusSink;
  spans(): SeenSpan[];
}

const world = (): { readonly hand: HandFleet; readonly runtime: VirtualRuntime; worker(name: string): Watched } => {
  const runtime = virtualRuntime();
  const store = sharedStore(runtime);
  const hand = handFleet(runtime, store);
  const step = (name: string, ms: number) =>
    tool({ name, policy: { effects: 'read' }, execute: () => firstValueFrom(runtime.after(ms)) });
  const tools = [step('search', 1_000), step('book', 2_000)];
  return {
    hand,
    runtime,
    worker: (name) => {
      const { processor, finished } = recorder();
      const tracing = new TracerProvider({ spanProcessors: [processor] });
      const otel = openTelemetrySink({
        api: {
          ...api,
          trace: {
            getTracer: (scope: string) => tracing.getTracer(scope),
            setSpan: api.trace.setSpan,
            setSpanContext: api.trace.setSpanContext,
          },
        },
      });
      const layer = createSpillway({ tools, store, runtime, traceContext: otel.carrier });
      const metrics = prometheusSink({ tools });
      const events: TraceEvent[] = [];
      layer.trace$.subscribe(otel);
      layer.trace$.subscribe(metrics);
      layer.trace$.subscribe((event) => events.push(event));
      return { ...hand.worker(name, [], { layer }), layer, events, metrics, spans: finished };
    },
  };
};

const trip = plan.from([
  { id: 's', tool: 'search', input: {} },
  { id: 'b', tool: 'book', input: {}, needs: ['s'] },
]);

describe('R-17.2 the seam of a turn that moves, in traces', () => {
  it('R-8.3 both parts are spans of the trace that the turn was given, with what was called under them', async () => {
    const { hand, runtime, worker } = world();
    const [one, two] = [worker('one'), worker('two')];
    await hand.fleet.submit('trip', trip, { traceContext });
    await one.give('trip');
    // The first node has ended, and the second one runs, when its worker dies.
    await runtime.advance(1_500);
    one.machine.kill();
    const ends = await two.give('trip');
    await runtime.advance(10_000);
    expect(ends).toEqual([{ act: 'done' }]);
    const spans = two.spans();
    const [part] = named(spans, 'invoke_workflow');
    expect(part?.parentSpanContext).toMatchObject({ traceId: TRACE_ID, spanId: 'b7ad6b7169203331' });
    expect(part?.attributes).toMatchObject({
      'spillway.turn.id': 'trip',
      'spillway.turn.moved_from': 'one',
      'spillway.turn.moved_to': 'two',
      'spillway.turn.status': 'completed',
    });
    expect(named(spans, 'execute_tool book').map((span) => parentOf(span, spans))).toEqual(['invoke_workflow']);
    // A killed worker's own span is lost. What it covered is told by who goes on, and its calls name their turn.
    expect(named(one.spans(), 'invoke_workflow')).toEqual([]);
    const { 'spillway.turn.moved_at_ms': ranMs, 'spillway.turn.moved_after_ms': silentMs } = part?.attributes ?? {};
    expect(Number(ranMs)).toBeGreaterThanOrEqual(1_500);
    expect(Number(ranMs)).toBeLessThan(2_000);
    expect(Number(silentMs)).toBeGreaterThan(0);
    expect(Number(silentMs)).toBeLessThan(Number(ranMs));
    const [before] = named(one.spans(), 'execute_tool search');
    expect(before?.attributes['spillway.turn.id']).toBe('trip');
    for (const span of [before, ...spans]) expect(span?.spanContext().traceId).toBe(TRACE_ID);
  });

  it('R-17.6 a worker that hands a turn over ends its part, in its trace and in its spans', async () => {
    const { hand, runtime, worker } = world();
    const [one, two] = [worker('one'), worker('two')];
    await hand.fleet.submit('trip', trip, { traceContext });
    await one.give('trip');
    await runtime.advance(500);
    one.lost$.next(0);
    await runtime.advance(1);
    const left = one.events.findLast(({ source }) => source === 'turn');
    expect(left).toMatchObject({ type: 'turn_left', turnId: 'trip' });
    const [part] = named(one.spans(), 'invoke_workflow');
    expect(part?.attributes).toMatchObject({ 'spillway.turn.status': 'left' });
    expect(part?.status.code).toBe(0);
    await two.give('trip');
    await runtime.advance(20_000);
    // Whoever follows the turn hears of the seam alone.
    const told = hand.ledger.turns.get('trip')?.events.map((event) => (JSON.parse(event) as TraceEvent).type);
    expect(told).not.toContain('turn_left');
    expect(told?.filter((type) => type === 'turn_moved')).toHaveLength(1);
    const events = hand.ledger.turns.get('trip')?.events.map((event) => JSON.parse(event) as TraceEvent) ?? [];
    expect(workersOf(events, 'trip').workers).toEqual(['one', 'two']);
    expect(workersOf(two.events, 'trip').workers).toEqual(['one', 'two']);
  });

  it('R-7.5 a turn that moved took as long as it took, wherever', async () => {
    const { hand, runtime, worker } = world();
    const [one, two] = [worker('one'), worker('two')];
    await hand.fleet.submit('trip', trip);
    await one.give('trip');
    await runtime.advance(1_500);
    one.lost$.next(0);
    one.machine.kill();
    await runtime.advance(8_000);
    await two.give('trip');
    await runtime.advance(20_000);
    const moved = two.events.find((event) => event.source === 'turn' && event.type === 'turn_moved');
    expect(moved?.type === 'turn_moved' ? (moved.ranMs ?? 0) : 0).toBeGreaterThan(9_500);
    const sum = /^spillway_turn_duration_seconds_sum\{status="completed"\} ([\d.]+)$/m;
    expect(Number(sum.exec(await two.metrics.text())?.[1])).toBeGreaterThan(9.5);
    expect(Number(sum.exec(await one.metrics.text())?.[1])).toBe(0);
  });

  it('R-17.1 who submits it again, from another span, submits the same plan', async () => {
    const { hand } = world();
    await hand.fleet.submit('trip', trip, { traceContext });
    const other = { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` };
    expect(await hand.fleet.submit('trip', trip, { traceContext: other })).toMatchObject({ state: 'known' });
    expect(await hand.fleet.submit('trip', trip)).toMatchObject({ state: 'known' });
  });
});
