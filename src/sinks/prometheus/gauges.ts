import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { MetricFamily } from './exposition.ts';
import { labelled, type SeriesTally } from './series.ts';
import { OTHER_TOOL } from '../sink.ts';
import { BREAKER_STATES, storeSizes, timesToLive, type LayerState, type MeteredTool } from './tool-meters.ts';
import { PACKAGE_VERSION } from '../version.ts';

/** What stands at the moment of a scrape. */
export interface GaugeState {
  readonly prefix: string;
  /** All that are known, for what the store tells of them. */
  readonly tools: ReadonlyMap<string, MeteredTool>;
  /** Those that have series. */
  readonly tallies: ReadonlyMap<string, SeriesTally>;
  readonly states: ReadonlyMap<string, BreakerStateName>;
  readonly initialState: (toolName: string) => BreakerStateName;
  readonly storeAvailable: boolean;
  readonly told: LayerState | undefined;
}

/** Writes one line of a gauge. */
type Line = (labels: string, value: number) => string;

/** The lines of a gauge, each as it is written. */
type Lines = (line: Line) => Iterable<string>;

const onceKnown = (value: number | undefined): Lines | undefined =>
  value === undefined || !Number.isFinite(value) ? undefined : (line) => [line('', value)];

/** What is told of one tool at a time, so that no list of all of them is made. */
function* each<T>(all: Iterable<T>, told: (one: T) => string): Generator<string> {
  for (const one of all) yield told(one);
}

const TTL_STATES = ['done', 'failed', 'inflight'] as const;

interface Gauge {
  readonly name: string;
  readonly kind?: MetricFamily['kind'];
  readonly unit?: 'seconds';
  readonly help: string;
  /** Not there where nobody told of it. */
  readonly lines: Lines | undefined;
}

/** What is of tools: nothing is told of one without series. */
function* ofTools({ tools, tallies, states, initialState }: GaugeState): Generator<Gauge> {
  const known = (told: (tool: MeteredTool, label: string) => string): Generator<string> =>
    each(tallies, ([name, { label }]) => {
      const tool = tools.get(name);
      return tool === undefined ? '' : told(tool, label);
    });
  yield {
    name: 'tool_info',
    kind: 'info',
    help: 'Always 1: what is known of a tool.',
    lines: (line) => known(({ policy }, label) => line(`${label},effects="${policy?.effects ?? 'read'}"`, 1)),
  };
  yield {
    name: 'tool_dedupe_ttl_seconds',
    unit: 'seconds',
    help: 'How long what the store knows of a call is kept, by its state.',
    lines: (line) =>
      known((tool, label) => {
        const seconds = timesToLive(tool);
        return TTL_STATES.map((state) => line(`${label},state="${state}"`, seconds[state])).join('');
      }),
  };
  // Of calls to unknown tools, too, though there has been none.
  const other: ReadonlyArray<readonly [string, string]> = [[OTHER_TOOL, labelled({ tool: OTHER_TOOL })]];
  const labels = function* labels(): Generator<readonly [string, string]> {
    for (const [name, { label }] of tallies) yield [name, label];
    if (!tallies.has(OTHER_TOOL)) yield* other;
  };
  yield {
    name: 'tool_circuit_breaker_state',
    help: 'Which state the circuit breaker is in: 1 for that one. Of several, for tenants, the worst.',
    lines: (line) =>
      each(labels(), ([tool, label]) => {
        const state = states.get(tool) ?? initialState(tool);
        return BREAKER_STATES.map((one) => line(`${label},state="${one}"`, one === state ? 1 : 0)).join('');
      }),
  };
  yield {
    name: 'tool_calls_in_flight',
    help: 'Calls that have begun and not ended.',
    lines: (line) => each(tallies.values(), ({ label, running }) => line(label, running)),
  };
}

/** What is of the whole layer, and of the store. */
function* ofLayer({ tools, storeAvailable, told }: GaugeState): Generator<Gauge> {
  yield {
    name: 'store_available',
    help: '0 while the store of idempotency keys does not answer.',
    lines: (line) => [line('', storeAvailable ? 1 : 0)],
  };
  const store = told?.store;
  yield {
    name: 'tool_dedupe_cache_size',
    help: 'Records in the store of idempotency keys.',
    lines:
      store === undefined
        ? undefined
        : (line) => each(storeSizes(store, tools), ({ labels, records }) => line(labelled(labels), records)),
  };
  yield {
    name: 'retry_budget_left',
    help: 'Retries that all calls together may make now.',
    lines: onceKnown(told?.retriesLeft),
  };
  yield {
    name: 'trace_events_dropped_total',
    kind: 'counter',
    help: 'Trace events that a subscriber lost, since it threw or was too slow.',
    lines: onceKnown(told?.droppedEvents),
  };
  yield {
    name: 'build_info',
    kind: 'info',
    help: 'Always 1: which version of spillway runs.',
    lines: (line) => [line(labelled({ version: PACKAGE_VERSION }), 1)],
  };
}

/** Everything that is not counted but stands: of tools, of the layer, of its store. What nobody told is left out. */
export function* gauges(standing: GaugeState): Generator<MetricFamily> {
  for (const gaugesOf of [ofTools, ofLayer]) {
    for (const { name: own, kind = 'gauge', lines, ...rest } of gaugesOf(standing)) {
      if (lines === undefined) continue;
      const name = `${standing.prefix}_${own}`;
      const line: Line = (labels, value) => `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`;
      yield { name, kind, ...rest, lines: lines(line) };
    }
  }
}
