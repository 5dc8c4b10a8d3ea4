import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { Breathing } from '../operators/breath.ts';
import { INSPECT_TIMEOUT_MS, stateOf } from './prometheus/asked.ts';
import { CONTENT_TYPES, exposition, formatFor, type Format, type MetricFamily } from './prometheus/exposition.ts';
import { gauges, type GaugeState } from './prometheus/gauges.ts';
import { measuresOf, type Measurement, type Measures } from './prometheus/measures.ts';
import { fromTraceparent } from './opentelemetry/api.ts';
import { Layouts, SeriesTally, labelled, type Exemplar, type Layout, type Wording } from './prometheus/series.ts';
import type { TraceSink } from './sink.ts';
import {
  TOOL_METERS,
  TURN_METERS,
  meteredTools,
  type Inspect,
  type ListedBreaker,
  type MeteredTool,
} from './prometheus/tool-meters.ts';

export type { Inspect, LayerState, ListedBreaker, MeteredTool, StoreFill } from './prometheus/tool-meters.ts';

/** Which tools have series of their own, and what else is given beside the counts. */
export interface PrometheusSinkOptions {
  /**
   * The tools that have series of their own: tools, or names. Breakers that tools share are listed by their names too.
   * Whatever else is called counts as `__other__`.
   */
  readonly tools: ReadonlyArray<string | MeteredTool>;
  /**
   * How many of `tools`, in their order, have their series from the start, so that a first failure is seen to rise from
   * 0. Each of the others gets its series when it is first called. A tool has about 200 lines. Default 200.
   */
  readonly toolsFromStart?: number;
  /** The beginning of each metric's name: 1 to 64 letters, digits and `_`. Default `spillway`. */
  readonly prefix?: string;
  /**
   * Gives the duration in milliseconds as well, as CLAW names it; Prometheus' own linter wants seconds. Default false.
   */
  readonly durationMs?: boolean;
  /**
   * Called with each scrape, for the size of the store, the states of breakers, the retries left and the events lost:
   * `() => spillway.inspect()`. Without it, or when it fails or does not answer, these are left out, and a breaker
   * whose cooldown passed without traffic still shows as open.
   */
  readonly inspect?: Inspect;
  /** How long `inspect` may take, in milliseconds. Default 1,000. */
  readonly inspectTimeoutMs?: number;
  /**
   * The W3C trace context of a call that begins, for the exemplars of OpenMetrics: `(callId) =>
   * openTelemetry.traceparent(callId)`, where that sink was subscribed first. By default the one that the caller gave.
   * Of traces that are not sampled there are no exemplars.
   */
  readonly traceparent?: (callId: string) => string | undefined;
  /** The timer for `inspectTimeoutMs`, and the wall clock of exemplars. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** An answer to a scrape. */
export interface Scrape {
  /** The `Content-Type` of the answer. */
  readonly contentType: string;
  /** The text, in pieces that are made as they are read: the event loop gets its turn after each. To be read once. */
  readonly chunks: AsyncIterable<string>;
}

/** A sink that counts, and gives what it has counted to scrapers. */
export interface PrometheusSink extends TraceSink {
  /** The `Content-Type` of an answer with `text()`. */
  readonly contentType: string;
  /** All series in Prometheus' text format, as one string; for many tools `scrape` is kinder. */
  text(): Promise<string>;
  /**
   * All series in the format that an `Accept` header asks for: OpenMetrics with exemplars, or Prometheus' text.
   * @param accept the header; without one it is Prometheus' text
   */
  scrape(accept?: string | null): Scrape;
}

const OPTION_KEYS = [
  'tools',
  'toolsFromStart',
  'prefix',
  'durationMs',
  'inspect',
  'inspectTimeoutMs',
  'traceparent',
  'runtime',
];
const MS = 1000;
const TOOLS_FROM_START = 200;

/** Every tool has the same meters: their places are worked out once for all sinks. */
const TOOL_LAYOUTS = /* @__PURE__ */ new Layouts(TOOL_METERS);
const TURN_LAYOUTS = /* @__PURE__ */ new Layouts(TURN_METERS);

/**
 * Counts the events of a trace and gives the counts as Prometheus text or OpenMetrics, with CLAW's names of metrics and
 * labels
 * . The number of series is bounded by `tools`, whatever names are called. Serve it under `/metrics`.
 *
 * @param options the tools, names and what else to give
 * @throws RangeError for an option out of range
 *
 * @example
 * const metrics = prometheusSink({ tools: [flights, hotels], inspect: () => spillway.inspect() });
 * spillway.trace$.subscribe(metrics);
 * const body = await metrics.text();
 */
export function prometheusSink(options: PrometheusSinkOptions): PrometheusSink {
  checkKeys('prometheusSink', options, OPTION_KEYS);
  const { prefix = 'spillway', inspectTimeoutMs = INSPECT_TIMEOUT_MS, toolsFromStart = TOOLS_FROM_START } = options;
  checkNumber('inspectTimeoutMs', inspectTimeoutMs, positiveDuration);
  checkNumber('toolsFromStart', toolsFromStart, integer(0, 1_000_000));
  if (typeof prefix !== 'string' || !/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/.test(prefix)) {
    throw new RangeError(
      `prefix must be 1 to 64 letters, digits and _, not first a digit, not ${JSON.stringify(prefix)}`,
    );
  }
  const counts = new Counts(options, prefix, toolsFromStart, inspectTimeoutMs);
  return {
    contentType: CONTENT_TYPES.text,
    next: (event) => counts.measures.next(event),
    text: async () => {
      let text = '';
      for await (const chunk of counts.chunks('text')) text += chunk;
      return text;
    },
    scrape: (accept) => {
      const format = formatFor(accept);
      return { contentType: CONTENT_TYPES[format], chunks: counts.chunks(format) };
    },
  };
}

/** What one sink has counted. */
class Counts {
  readonly measures: Measures;
  readonly #tools: Map<string, MeteredTool>;
  readonly #tallies = new Map<string, SeriesTally>();
  readonly #turns = new SeriesTally('', TURN_LAYOUTS.size);
  readonly #prefix: string;
  readonly #durationMs: boolean;
  readonly #runtime: Runtime;
  readonly #inspect: Inspect | undefined;
  readonly #inspectTimeoutMs: number;

  constructor(options: PrometheusSinkOptions, prefix: string, toolsFromStart: number, inspectTimeoutMs: number) {
    this.#tools = meteredTools(options.tools);
    this.#prefix = prefix;
    this.#durationMs = options.durationMs ?? false;
    this.#runtime = options.runtime ?? liveRuntime;
    this.#inspect = options.inspect;
    this.#inspectTimeoutMs = inspectTimeoutMs;
    this.measures = measuresOf({
      tools: this.#tools,
      traceparent: options.traceparent,
      measure: (measurement) => this.#add(measurement),
      running: (tool, change) => void (this.#tallyOf(tool).running += change),
    });
    for (const tool of [...this.#tools.keys()].slice(0, toolsFromStart)) this.#tallyOf(tool);
  }

  async *chunks(format: Format): AsyncGenerator<string> {
    const { told, states } = await this.#standing();
    const { breakers, storeAvailable } = this.measures;
    yield* exposition(
      this.#families(format, {
        prefix: this.#prefix,
        tools: this.#tools,
        tallies: this.#tallies,
        states,
        initialState: (tool) => breakers.initial(tool),
        storeAvailable,
        told,
      }),
      format,
    );
  }

  /** The list of breakers is let go of before the text is made: it can have a hundred thousand of them. */
  async #standing(): Promise<Pick<GaugeState, 'told' | 'states'>> {
    const inspect = this.#inspect;
    const state = inspect === undefined ? {} : await stateOf(inspect, this.#inspectTimeoutMs, this.#runtime);
    const { breakers: listed, ...told } = state ?? {};
    await this.#called(listed);
    return { told, states: await this.measures.breakers.states(listed) };
  }

  #tallyOf(tool: string): SeriesTally {
    const found = this.#tallies.get(tool);
    if (found !== undefined) return found;
    const made = new SeriesTally(labelled({ tool }), TOOL_LAYOUTS.size);
    this.#tallies.set(tool, made);
    return made;
  }

  #add({ meter, tool, labels, value, traceparent }: Measurement): void {
    const [tally, layout] =
      tool === undefined ? [this.#turns, TURN_LAYOUTS.get(meter)] : [this.#tallyOf(tool), TOOL_LAYOUTS.get(meter)];
    layout?.add(tally, labels, value, traceparent === undefined ? undefined : this.#exemplar(traceparent, value));
  }

  #exemplar(traceparent: string, value: number): Exemplar | undefined {
    const span = fromTraceparent(traceparent);
    if (span === undefined || (span.traceFlags & 1) === 0) return undefined;
    return { traceId: span.traceId, spanId: span.spanId, value, wallMs: this.#runtime.wallNow() };
  }

  /** A tool that has a breaker was called, also before the sink listened. */
  async #called(listed: readonly ListedBreaker[] = []): Promise<void> {
    const breathing = new Breathing();
    for (const { toolName } of listed) {
      if (this.#tools.has(toolName)) this.#tallyOf(toolName);
      if (breathing.isDue) await breathing.breath();
    }
  }

  *#families(format: Format, standing: GaugeState): Generator<MetricFamily> {
    const wording = { exemplars: format === 'openmetrics' };
    for (const layout of TOOL_LAYOUTS.all) yield this.#family(layout, this.#tallies.values(), wording);
    const ms = this.#durationMs ? TOOL_LAYOUTS.get('tool_call_duration_seconds') : undefined;
    if (ms !== undefined) {
      const name = `${this.#prefix}_tool_call_duration_ms`;
      const lines = ms.lines(this.#tallies.values(), name, { ...wording, scale: MS });
      yield { name, kind: 'histogram', help: 'How long calls took, in milliseconds.', lines };
    }
    for (const layout of TURN_LAYOUTS.all) yield this.#family(layout, [this.#turns], wording);
    yield* gauges(standing);
  }

  #family(layout: Layout, tallies: Iterable<SeriesTally>, wording: Wording): MetricFamily {
    const { kind, help } = layout.meter;
    const name = `${this.#prefix}_${layout.name}`;
    const unit = /_(seconds|ratio)$/.exec(name)?.[1] as MetricFamily['unit'];
    return {
      name,
      kind,
      help,
      ...(unit === undefined ? {} : { unit }),
      lines: layout.lines(tallies, name, wording),
    };
  }
}
