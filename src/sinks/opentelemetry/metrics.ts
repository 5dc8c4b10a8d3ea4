import type { ToolEvent, TraceEvent, TurnOwnEvent } from '../../contract/event.ts';
import { liveRuntime } from '../../runtime.ts';
import { INSPECT_TIMEOUT_MS, stateOf } from '../prometheus/asked.ts';
import { measuresOf, type Measures } from '../prometheus/measures.ts';
import {
  SCOPE,
  type OtelApi,
  type OtelAttributes,
  type OtelHistogram,
  type OtelMeter,
  type OtelObserver,
} from './api.ts';
import type { ToolFacts } from './tools.ts';
import { RecentMap, OTHER_TOOL, type TraceSink } from '../sink.ts';
import {
  BREAKER_STATES,
  TOOL_METERS,
  TURN_METERS,
  storeSizes,
  timesToLive,
  type Inspect,
  type LayerState,
  type Meter,
  type MeteredTool,
  type MeterName,
} from '../prometheus/tool-meters.ts';

/** Seconds, as the GenAI conventions advise for `gen_ai.execute_tool.duration`. */
const TOOL_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/** Seconds, as they advise for `gen_ai.invoke_agent.duration`. */
const AGENT_BUCKETS = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
/** As they advise for `gen_ai.invoke_agent.tool_calls`. */
const CALLS_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128];
/**
 * Tools whose gauges are told before they are called, as in the Prometheus sink. The SDK keeps 2,000 series of a metric
 * by default.
 */
const TOOLS_FROM_START = 200;

const METERS: Readonly<Record<MeterName, Meter>> = { ...TOOL_METERS, ...TURN_METERS };

export interface OtelMetricsOptions {
  readonly api: OtelApi;
  readonly prefix: string;
  readonly tools: Map<string, MeteredTool>;
  readonly facts: ToolFacts;
  readonly inspect: Inspect | undefined;
  /** What runs the turns. */
  readonly agentName: string | undefined;
}

/** OpenTelemetry writes neither unit nor `total` in a name: exporters to Prometheus add them. */
const instrumentName = (prefix: string, meter: string): string =>
  `${prefix}.${meter.replace(/_(?:total|seconds|ratio)$/, '')}`;

type Recorder = (value: number, attributes: OtelAttributes) => void;

const instruments = (otel: OtelMeter, prefix: string): ReadonlyMap<string, Recorder> =>
  new Map(
    Object.entries(METERS).map(([name, { kind, help: description, unit, buckets = [] }]): [string, Recorder] => {
      const own = instrumentName(prefix, name);
      if (kind === 'counter') {
        const counter = otel.createCounter(own, { description, unit });
        return [name, (value, attributes) => counter.add(value, attributes)];
      }
      const advice = { explicitBucketBoundaries: [...buckets] };
      const histogram = otel.createHistogram(own, { description, unit, advice });
      return [name, (value, attributes) => histogram.record(value, attributes)];
    }),
  );

/** The metrics of the Prometheus sink as OpenTelemetry instruments, and those that the GenAI conventions name. */
export function otelMetrics(options: OtelMetricsOptions): TraceSink {
  const otel = options.api.metrics.getMeter(...SCOPE);
  const byName = instruments(otel, options.prefix);
  const standing = new Standing(options);
  const measures = measuresOf({
    tools: options.tools,
    running: (tool, change) => standing.run(tool, change),
    measure: ({ meter, tool, labels, value }) => {
      const own = Object.keys(METERS[meter].labels).map((label, place) => [label, labels[place] ?? ''] as const);
      byName.get(meter)?.(value, { ...(tool === undefined ? {} : { tool }), ...Object.fromEntries(own) });
    },
  });
  standing.observe(otel, measures);
  const genAi = new GenAiMetrics(otel, options);
  return {
    next: (event: TraceEvent) => {
      measures.next(event);
      if (event.source === 'call') genAi.ofCall(event);
      else if (event.source === 'turn') genAi.ofTurn(event);
    },
  };
}

/** What stands at the moment of a collection. */
class Standing {
  readonly #options: OtelMetricsOptions;
  readonly #running = new Map<string, number>();
  #asked: Promise<LayerState | undefined> | undefined;

  constructor(options: OtelMetricsOptions) {
    this.#options = options;
    for (const tool of [...options.tools.keys()].slice(0, TOOLS_FROM_START)) this.#running.set(tool, 0);
  }

  run(tool: string, change: number): void {
    this.#running.set(tool, (this.#running.get(tool) ?? 0) + change);
  }

  observe(otel: OtelMeter, measures: Measures): void {
    const gauge = (
      name: string,
      description: string,
      unit: string | undefined,
      told: (observer: OtelObserver) => void | Promise<void>,
    ): void =>
      otel
        .createObservableGauge(`${this.#options.prefix}.${name}`, {
          description,
          ...(unit === undefined ? {} : { unit }),
        })
        .addCallback(told);
    gauge(
      'tool_circuit_breaker_state',
      '1 for the state that the circuit breaker is in.',
      undefined,
      async (observer) => {
        const states = await measures.breakers.states((await this.#ask())?.breakers);
        for (const tool of new Set([...this.#running.keys(), OTHER_TOOL])) {
          const now = states.get(tool) ?? measures.breakers.initial(tool);
          for (const state of BREAKER_STATES) observer.observe(state === now ? 1 : 0, { tool, state });
        }
      },
    );
    gauge('tool_dedupe_ttl', 'How long what the store knows of a call is kept, by its state.', 's', (observer) => {
      for (const name of this.#running.keys()) {
        const tool = this.#options.tools.get(name);
        const lives = tool === undefined ? [] : Object.entries(timesToLive(tool));
        for (const [state, seconds] of lives) observer.observe(seconds, { tool: name, state });
      }
    });
    gauge('tool_calls_in_flight', 'Calls that have begun and not ended.', '{call}', (observer) => {
      for (const [tool, count] of this.#running) observer.observe(count, { tool });
    });
    gauge('store_available', '0 while the store of idempotency keys does not answer.', undefined, (observer) =>
      observer.observe(measures.storeAvailable ? 1 : 0),
    );
    if (this.#options.inspect !== undefined) this.#observeInspected(otel);
  }

  #observeInspected(otel: OtelMeter): void {
    const { prefix, tools } = this.#options;
    const size = { description: 'Records in the store of idempotency keys.', unit: '{record}' };
    otel.createObservableGauge(`${prefix}.tool_dedupe_cache_size`, size).addCallback(async (observer) => {
      for (const { labels, records } of storeSizes((await this.#ask())?.store, tools))
        observer.observe(records, labels);
    });
    const left = { description: 'Retries that all calls together may make now.', unit: '{retry}' };
    otel.createObservableGauge(`${prefix}.retry_budget_left`, left).addCallback(async (observer) => {
      const retriesLeft = (await this.#ask())?.retriesLeft;
      if (retriesLeft !== undefined) observer.observe(retriesLeft);
    });
    const dropped = {
      description: 'Trace events that a subscriber lost, since it threw or was too slow.',
      unit: '{event}',
    };
    otel.createObservableCounter(`${prefix}.trace_events_dropped`, dropped).addCallback(async (observer) => {
      const droppedEvents = (await this.#ask())?.droppedEvents;
      if (droppedEvents !== undefined) observer.observe(droppedEvents);
    });
  }

  /** One question for all that are asked in one collection. */
  async #ask(): Promise<LayerState | undefined> {
    const { inspect } = this.#options;
    if (inspect === undefined) return undefined;
    // Forgotten only once it is kept: an answer may be there at once, and would be that of all times.
    this.#asked ??= stateOf(inspect, INSPECT_TIMEOUT_MS, liveRuntime).finally(() => (this.#asked = undefined));
    return this.#asked;
  }
}

/** The metrics that the GenAI conventions v0.1.0 name. */
class GenAiMetrics {
  readonly #options: OtelMetricsOptions;
  readonly #tools: OtelHistogram;
  readonly #turns: OtelHistogram;
  readonly #calls: OtelHistogram;
  readonly #startedAtMs = new RecentMap<number>();
  /** Calls that run, and the tools that they asked for. */
  readonly #asked = new RecentMap<string>();
  readonly #agent: OtelAttributes;

  constructor(otel: OtelMeter, options: OtelMetricsOptions) {
    this.#options = options;
    const { agentName } = options;
    this.#agent = agentName === undefined ? {} : { 'gen_ai.agent.name': agentName };
    const made = (name: string, description: string, unit: string, explicitBucketBoundaries: number[]): OtelHistogram =>
      otel.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries } });
    this.#tools = made('gen_ai.execute_tool.duration', 'Duration of tool calls.', 's', TOOL_BUCKETS);
    this.#turns = made('gen_ai.invoke_agent.duration', 'Duration of turns.', 's', AGENT_BUCKETS);
    this.#calls = made('gen_ai.invoke_agent.tool_calls', 'Tool calls of a turn.', '{tool_call}', CALLS_BUCKETS);
  }

  ofCall(event: ToolEvent): void {
    const { callId, toolName } = event;
    if (event.type === 'call_started') return this.#asked.set(callId, toolName);
    if (event.type === 'abandoned') return void this.#asked.take(callId);
    if (event.type !== 'settled') return undefined;
    const { durationMs, error } = event.result;
    // As its span has it: the tool that was asked for, whichever answered.
    const asked = this.#asked.take(callId) ?? toolName;
    const tool = this.#options.tools.has(asked) ? asked : OTHER_TOOL;
    return this.#tools.record(durationMs / 1000, {
      'gen_ai.tool.name': tool,
      'gen_ai.tool.type': this.#options.facts.typeOf(tool),
      ...(event.turnId === undefined ? {} : this.#agent),
      ...(error === undefined ? {} : { 'error.type': error.code }),
    });
  }

  ofTurn(event: TurnOwnEvent): void {
    if (event.type === 'turn_started') return this.#startedAtMs.set(event.turnId, event.atMs);
    if (event.type !== 'settled' && event.type !== 'abandoned' && event.type !== 'turn_left') return undefined;
    const startedAtMs = this.#startedAtMs.take(event.turnId);
    if (event.type !== 'settled' || startedAtMs === undefined) return undefined;
    const { status, nodes } = event.result;
    const attributes = { 'gen_ai.operation.name': 'invoke_workflow', ...this.#agent };
    const failed = status === 'failed' || status === 'escalated' ? { 'error.type': status } : {};
    this.#turns.record((event.atMs - startedAtMs) / 1000, { ...attributes, ...failed });
    return this.#calls.record(nodes.filter(({ result }) => result !== undefined).length, this.#agent);
  }
}
