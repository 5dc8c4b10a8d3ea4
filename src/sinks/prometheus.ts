import { catchError, defer, firstValueFrom, map, merge, of, take, type Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { OTHER_TOOL, type TraceSink } from './sink.ts';
import { BREAKER_STATES, METERS, meteredTools, storeSizes, timesToLive, toolMeasures, type Meter, type MeteredTool, type MeterName, type Inspect, type LayerState } from './tool-meters.ts';

export type { Inspect, LayerState, MeteredTool, StoreFill } from './tool-meters.ts';

export interface PrometheusSinkOptions {
  /**
   * The tools that have series of their own, from the start: tools, or names. Breakers that tools share are listed by their names too. Whatever
   * else is called counts as `__other__`.
   */
  readonly tools: ReadonlyArray<string | MeteredTool>;
  /** What names begin with. Default `spillway`. */
  readonly prefix?: string;
  /** Gives the duration in milliseconds as well, as CLAW names it; Prometheus' own linter wants seconds. Default false. */
  readonly durationMs?: boolean;
  /**
   * Asked with each scrape, for the size of the store and the states of breakers: `() => spillway.inspect()`. Without it, or when it fails or does
   * not answer, there is no size, and a breaker whose cooldown passed without traffic still shows as open.
   */
  readonly inspect?: Inspect;
  /** How long that may take. Default 1,000. */
  readonly inspectTimeoutMs?: number;
  readonly runtime?: Runtime;
}

export interface PrometheusSink extends TraceSink {
  /** Of an HTTP answer with the text. */
  readonly contentType: string;
  /** All series in Prometheus' text format. */
  text(): Promise<string>;
}

/** Seconds. 2.5 is CLAW's alert threshold: a quantile is only exact on a bucket's edge. */
const BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const MS = 1000;

const escaped = (text: string): string => text.replaceAll('\\', String.raw`\\`).replaceAll('"', String.raw`\"`).replaceAll('\n', String.raw`\n`);
const escapedHelp = (text: string): string => text.replaceAll('\\', String.raw`\\`).replaceAll('\n', String.raw`\n`);
const labelled = (labels: Readonly<Record<string, string>>): string => Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`).join(',');

/** All combinations of values, of a breaker's states only those that are a change. */
const combinations = (labels: Meter['labels']): string[][] =>
  Object.values(labels)
    .reduce<string[][]>((rows, values) => rows.flatMap((row) => values.map((value) => [...row, value])), [[]])
    .filter((row) => !('from_state' in labels) || row[0] !== row[1]);

class Series {
  readonly #labels: string;
  readonly #counts: number[] | undefined;
  #sum = 0;

  constructor(labels: string, kind: Meter['kind']) {
    this.#labels = labels;
    if (kind === 'histogram') this.#counts = Array.from({ length: BUCKETS.length + 1 }, () => 0);
  }

  add(value: number): void {
    this.#sum += value;
    if (this.#counts === undefined) return;
    const found = BUCKETS.findIndex((bound) => value <= bound);
    const place = found === -1 ? BUCKETS.length : found;
    this.#counts[place] = (this.#counts[place] ?? 0) + 1;
  }

  /** @param scale of the values, and of the edges of the buckets */
  lines(name: string, scale = 1): string[] {
    if (this.#counts === undefined) return [`${name}{${this.#labels}} ${this.#sum}`];
    let below = 0;
    const buckets = this.#counts.map((count, place) => {
      below += count;
      const bound = BUCKETS[place];
      return `${name}_bucket{${this.#labels},le="${bound === undefined ? '+Inf' : bound * scale}"} ${below}`;
    });
    return [...buckets, `${name}_sum{${this.#labels}} ${this.#sum * scale}`, `${name}_count{${this.#labels}} ${below}`];
  }
}

/** The series of one meter, those of its tools there from the start. */
class Family {
  readonly meter: Meter;
  readonly #series = new Map<string, Series>();

  constructor(meter: Meter, tools: Iterable<string>) {
    this.meter = meter;
    for (const tool of tools) for (const values of combinations(meter.labels)) this.#at(tool, values);
  }

  add(tool: string, values: readonly string[], value: number): void {
    this.#at(tool, values).add(value);
  }

  lines(name: string, scale?: number): string[] {
    return [...this.#series.values()].flatMap((series) => series.lines(name, scale));
  }

  #at(tool: string, values: readonly string[]): Series {
    const key = `${values.join(' ')} ${tool}`;
    const found = this.#series.get(key);
    if (found !== undefined) return found;
    const labels = Object.fromEntries(Object.keys(this.meter.labels).map((label, place) => [label, values[place] ?? '']));
    const made = new Series(labelled({ tool, ...labels }), this.meter.kind);
    this.#series.set(key, made);
    return made;
  }
}

const headed = (name: string, kind: string, help: string, lines: readonly string[]): string[] => [`# HELP ${name} ${escapedHelp(help)}`, `# TYPE ${name} ${kind}`, ...lines];

/**
 * Counts what a trace tells and gives it as Prometheus text, with CLAW's names of metrics and labels. The number of series is fixed by
 * `tools`, whatever names are called. Serve `text()` under `/metrics`.
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
  checkKeys('prometheusSink', options, ['tools', 'prefix', 'durationMs', 'inspect', 'inspectTimeoutMs', 'runtime']);
  const { prefix = 'spillway', durationMs = false, inspect, inspectTimeoutMs = 1_000, runtime = liveRuntime } = options;
  checkNumber('inspectTimeoutMs', inspectTimeoutMs, positiveDuration);
  if (typeof prefix !== 'string' || !/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/.test(prefix)) throw new RangeError(`prefix must be 1 to 64 letters, digits and _, not first a digit, not ${JSON.stringify(prefix)}`);
  const tools = meteredTools(options.tools);
  const families = new Map(Object.entries(METERS).map(([name, meter]) => [name, new Family(meter, tools.keys())]));
  const measures = toolMeasures(tools, (meter: MeterName, tool, values, value) => families.get(meter)?.add(tool, values, value));

  const gauges = (told: LayerState | undefined): string[] => {
    const listed = [...tools.values()];
    const info = listed.map(({ name, policy }) => `${prefix}_tool_info{${labelled({ tool: name, effects: policy?.effects ?? 'read' })}} 1`);
    const lives = listed.flatMap((tool) => Object.entries(timesToLive(tool)).map(([state, seconds]) => `${prefix}_tool_dedupe_ttl_seconds{${labelled({ tool: tool.name, state })}} ${seconds}`));
    const states = [...tools.keys(), OTHER_TOOL].flatMap((tool) => {
      const now = measures.breakers.stateOf(tool, told?.breakers);
      return BREAKER_STATES.map((state) => `${prefix}_tool_circuit_breaker_state{${labelled({ tool, state })}} ${state === now ? 1 : 0}`);
    });
    return [
      ...headed(`${prefix}_tool_info`, 'gauge', 'Always 1: what is known of a tool.', info),
      ...headed(`${prefix}_tool_dedupe_ttl_seconds`, 'gauge', 'How long what the store knows of a call is kept, by its state.', lives),
      ...headed(`${prefix}_tool_circuit_breaker_state`, 'gauge', 'Which state the circuit breaker is in: 1 for that one. Of several, for tenants, the worst.', states),
      ...headed(`${prefix}_store_available`, 'gauge', '0 while the store of idempotency keys does not answer.', [`${prefix}_store_available ${measures.storeAvailable ? 1 : 0}`]),
    ];
  };
  const asked$: Observable<LayerState | undefined> = defer(async () => inspect?.()).pipe(catchError(() => of(undefined)));
  const ask = async (): Promise<LayerState | undefined> =>
    inspect === undefined ? undefined : firstValueFrom(merge(asked$, runtime.after(inspectTimeoutMs).pipe(map(() => undefined))).pipe(take(1)));
  const sizes = (told: LayerState | undefined): string[] => {
    const lines = storeSizes(told?.store, tools).map(({ labels, records }) => `${prefix}_tool_dedupe_cache_size{${labelled(labels)}} ${records}`);
    return lines.length === 0 ? [] : headed(`${prefix}_tool_dedupe_cache_size`, 'gauge', 'Records in the store of idempotency keys.', lines);
  };
  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    next: (event) => measures.next(event),
    text: async () => {
      const told = await ask();
      const counted = [...families].flatMap(([name, family]) => headed(`${prefix}_${name}`, family.meter.kind, family.meter.help, family.lines(`${prefix}_${name}`)));
      const ms = durationMs ? families.get('tool_call_duration_seconds') : undefined;
      const inMs = ms === undefined ? [] : headed(`${prefix}_tool_call_duration_ms`, 'histogram', 'How long calls took, in milliseconds.', ms.lines(`${prefix}_tool_call_duration_ms`, MS));
      return `${[...counted, ...inMs, ...gauges(told), ...sizes(told)].join('\n')}\n`;
    },
  };
}
