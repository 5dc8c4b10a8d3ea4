import type { TraceEvent } from '../contract/event.ts';
import type { OtelApi, OtelAttributes, OtelMeter } from './opentelemetry-api.ts';
import { OTHER_TOOL, type TraceSink } from './sink.ts';
import { BREAKER_STATES, METERS, storeSizes, timesToLive, toolMeasures, type MeteredTool, type MeterName, type Inspect } from './tool-meters.ts';

/** Seconds, as the GenAI conventions advise for `gen_ai.execute_tool.duration`. */
const GEN_AI_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/** As in the Prometheus sink. */
const BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** OpenTelemetry writes neither unit nor `total` in a name: exporters to Prometheus add them. */
const instrumentName = (prefix: string, meter: string): string => `${prefix}.${meter.replace(/_(?:total|seconds)$/, '')}`;

const instruments = (meter: OtelMeter, prefix: string): Map<MeterName, (value: number, attributes: OtelAttributes) => void> =>
  new Map(
    (Object.keys(METERS) as MeterName[]).map((name) => {
      const { kind, help: description } = METERS[name];
      if (kind === 'counter') {
        const counter = meter.createCounter(instrumentName(prefix, name), { description });
        return [name, (value, attributes) => counter.add(value, attributes)];
      }
      const histogram = meter.createHistogram(instrumentName(prefix, name), { description, unit: 's', advice: { explicitBucketBoundaries: BUCKETS } });
      return [name, (value, attributes) => histogram.record(value, attributes)];
    }),
  );

/** The metrics of the Prometheus sink as OpenTelemetry instruments, and the one that the GenAI conventions name. */
export function otelMetrics({ metrics }: OtelApi, prefix: string, tools: ReadonlyMap<string, MeteredTool>, inspect?: Inspect): TraceSink {
  const meter = metrics.getMeter('spillway');
  const byName = instruments(meter, prefix);
  const genAi = meter.createHistogram('gen_ai.execute_tool.duration', { description: 'Duration of tool calls.', unit: 's', advice: { explicitBucketBoundaries: GEN_AI_BUCKETS } });
  const measures = toolMeasures(tools, (name, tool, values, value) => {
    const labels = Object.keys(METERS[name].labels).map((label, place) => [label, values[place] ?? ''] as const);
    byName.get(name)?.(value, { tool, ...Object.fromEntries(labels) });
  });

  meter.createObservableGauge(`${prefix}.tool_circuit_breaker_state`, { description: '1 for the state that the circuit breaker is in.' }).addCallback(async (observer) => {
    const breakers = (await inspect?.())?.breakers;
    for (const tool of [...tools.keys(), OTHER_TOOL]) {
      const now = measures.breakers.stateOf(tool, breakers);
      for (const state of BREAKER_STATES) observer.observe(state === now ? 1 : 0, { tool, state });
    }
  });
  meter.createObservableGauge(`${prefix}.tool_dedupe_ttl`, { description: 'How long what the store knows of a call is kept, by its state.', unit: 's' }).addCallback((observer) => {
    for (const tool of tools.values()) for (const [state, seconds] of Object.entries(timesToLive(tool))) observer.observe(seconds, { tool: tool.name, state });
  });
  meter.createObservableGauge(`${prefix}.store_available`, { description: '0 while the store of idempotency keys does not answer.' }).addCallback((observer) => observer.observe(measures.storeAvailable ? 1 : 0));

  if (inspect !== undefined) {
    meter.createObservableGauge(`${prefix}.tool_dedupe_cache_size`, { description: 'Records in the store of idempotency keys.' }).addCallback(async (observer) => {
      for (const { labels, records } of storeSizes((await inspect())?.store, tools)) observer.observe(records, labels);
    });
  }

  return {
    next: (event: TraceEvent) => {
      measures.next(event);
      if (event.source !== 'call' || event.type !== 'settled') return;
      const { durationMs, error } = event.result;
      const tool = tools.has(event.toolName) ? event.toolName : OTHER_TOOL;
      genAi.record(durationMs / 1000, { 'gen_ai.tool.name': tool, ...(error === undefined ? {} : { 'error.type': error.code }) });
    },
  };
}
