import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { Lines, MetricFamily } from './exposition.ts';
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

/** Labels as they are written, and a value. */
type Told = readonly [labels: string, value: number];

/** What is told of one tool at a time, so that no list of all of them is made. */
function* each<T>(all: Iterable<T>, told: (one: T) => readonly Told[]): Generator<readonly Told[]> {
  for (const one of all) yield told(one);
}

const once = (value: number, labels = ''): ReadonlyArray<readonly Told[]> => [[[labels, value]]];
const onceKnown = (value: number | undefined): ReadonlyArray<readonly Told[]> =>
  value === undefined || !Number.isFinite(value) ? [] : once(value);

function* linesOf(name: string, told: Iterable<readonly Told[]>): Generator<Lines> {
  for (const some of told) {
    let text = '';
    for (const [labels, value] of some) text += `${name}${labels === '' ? '' : `{${labels}}`} ${value}\n`;
    yield { text, count: some.length };
  }
}

interface Gauge {
  readonly name: string;
  readonly kind?: MetricFamily['kind'];
  readonly unit?: 'seconds';
  readonly help: string;
  readonly told: Iterable<readonly Told[]>;
}

/** What is of tools: nothing is told of one without series. */
function* ofTools({ tools, tallies, states, initialState }: GaugeState): Generator<Gauge> {
  const known = (told: (tool: MeteredTool, label: string) => readonly Told[]): Generator<readonly Told[]> =>
    each(tallies, ([name, { label }]) => {
      const tool = tools.get(name);
      return tool === undefined ? [] : told(tool, label);
    });
  yield {
    name: 'tool_info',
    kind: 'info',
    help: 'Always 1: what is known of a tool.',
    told: known(({ policy }, label) => [[`${label},effects="${policy?.effects ?? 'read'}"`, 1]]),
  };
  yield {
    name: 'tool_dedupe_ttl_seconds',
    unit: 'seconds',
    help: 'How long what the store knows of a call is kept, by its state.',
    told: known((tool, label) => {
      const { done, failed, inflight } = timesToLive(tool);
      return [
        [`${label},state="done"`, done],
        [`${label},state="failed"`, failed],
        [`${label},state="inflight"`, inflight],
      ];
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
    told: each(labels(), ([tool, label]) => {
      const state = states.get(tool) ?? initialState(tool);
      return BREAKER_STATES.map((one): Told => [`${label},state="${one}"`, one === state ? 1 : 0]);
    }),
  };
  yield {
    name: 'tool_calls_in_flight',
    help: 'Calls that have begun and not ended.',
    told: each(tallies.values(), ({ label, running }) => [[label, running]]),
  };
}

/** What is of the whole layer, and of the store. */
function* ofLayer({ tools, storeAvailable, told }: GaugeState): Generator<Gauge> {
  yield {
    name: 'store_available',
    help: '0 while the store of idempotency keys does not answer.',
    told: once(storeAvailable ? 1 : 0),
  };
  yield {
    name: 'tool_dedupe_cache_size',
    help: 'Records in the store of idempotency keys.',
    told:
      told?.store === undefined
        ? []
        : each(storeSizes(told.store, tools), ({ labels, records }) => [[labelled(labels), records]]),
  };
  yield {
    name: 'retry_budget_left',
    help: 'Retries that all calls together may make now.',
    told: onceKnown(told?.retriesLeft),
  };
  yield {
    name: 'trace_events_dropped_total',
    kind: 'counter',
    help: 'Trace events that a subscriber lost, since it threw or was too slow.',
    told: onceKnown(told?.droppedEvents),
  };
  yield {
    name: 'build_info',
    kind: 'info',
    help: 'Always 1: which version of spillway runs.',
    told: once(1, labelled({ version: PACKAGE_VERSION })),
  };
}

/** Everything that is not counted but stands: of tools, of the layer, of its store. What nobody told is left out. */
export function* gauges(standing: GaugeState): Generator<MetricFamily> {
  for (const gaugesOf of [ofTools, ofLayer]) {
    for (const { name: own, kind = 'gauge', told, ...rest } of gaugesOf(standing)) {
      if (Array.isArray(told) && told.length === 0) continue;
      const name = `${standing.prefix}_${own}`;
      yield { name, kind, ...rest, lines: linesOf(name, told) };
    }
  }
}
