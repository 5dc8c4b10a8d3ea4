import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { Lines, MetricFamily } from './exposition.ts';
import { labelled, type Tally } from './series.ts';
import { OTHER_TOOL } from './sink.ts';
import { BREAKER_STATES, storeSizes, timesToLive, type LayerState, type MeteredTool } from './tool-meters.ts';
import { PACKAGE_VERSION } from './version.ts';

/** What stands at the moment of a scrape. */
export interface Standing {
  readonly prefix: string;
  /** All that are known, for what the store tells of them. */
  readonly tools: ReadonlyMap<string, MeteredTool>;
  /** Those that have series. */
  readonly tallies: ReadonlyMap<string, Tally>;
  readonly states: ReadonlyMap<string, BreakerStateName>;
  readonly initialState: (toolName: string) => BreakerStateName;
  readonly storeAvailable: boolean;
  readonly told: LayerState | undefined;
}

type Told = readonly [labels: Readonly<Record<string, string>>, value: number];

function* linesOf(name: string, told: Iterable<readonly Told[]>): Generator<Lines> {
  for (const some of told) {
    const text = some.map(([labels, value]) => {
      const own = labelled(labels);
      return `${name}${own === '' ? '' : `{${own}}`} ${value}\n`;
    });
    yield { text: text.join(''), count: some.length };
  }
}

/** Asks for each tool when its turn comes, so that no list of all of them is made. */
function* each<T>(all: Iterable<T>, told: (one: T) => readonly Told[]): Generator<readonly Told[]> {
  for (const one of all) yield told(one);
}

const single = (value: number | undefined): ReadonlyArray<readonly Told[]> =>
  value === undefined || !Number.isFinite(value) ? [] : [[[{}, value]]];

/** What is of tools: nothing is told of one without series. */
function* ofTools({ prefix, tools, tallies, states, initialState }: Standing): Generator<MetricFamily> {
  const family = (
    name: string,
    kind: 'gauge' | 'info',
    help: string,
    told: Iterable<readonly Told[]>,
  ): MetricFamily => ({
    name: `${prefix}_${name}`,
    kind,
    help,
    lines: linesOf(`${prefix}_${name}`, told),
  });
  const known = function* known(): Generator<MeteredTool> {
    for (const name of tallies.keys()) {
      const tool = tools.get(name);
      if (tool !== undefined) yield tool;
    }
  };
  const info = each(known(), ({ name, policy }) => [[{ tool: name, effects: policy?.effects ?? 'read' }, 1]]);
  yield family('tool_info', 'info', 'Always 1: what is known of a tool.', info);
  const lives = each(known(), (tool) =>
    Object.entries(timesToLive(tool)).map(([state, seconds]): Told => [{ tool: tool.name, state }, seconds]),
  );
  yield {
    ...family(
      'tool_dedupe_ttl_seconds',
      'gauge',
      'How long what the store knows of a call is kept, by its state.',
      lives,
    ),
    unit: 'seconds',
  };
  const named = new Set([...tallies.keys(), OTHER_TOOL]);
  const now = each(named, (tool) => {
    const state = states.get(tool) ?? initialState(tool);
    return BREAKER_STATES.map((one): Told => [{ tool, state: one }, one === state ? 1 : 0]);
  });
  const states$ = 'Which state the circuit breaker is in: 1 for that one. Of several, for tenants, the worst.';
  yield family('tool_circuit_breaker_state', 'gauge', states$, now);
  const running = each(tallies, ([tool, tally]) => [[{ tool }, tally.running]]);
  yield family('tool_calls_in_flight', 'gauge', 'Calls that have begun and not ended.', running);
}

/** What is of the whole layer, and of the store. What nobody told is left out. */
function* ofLayer({ prefix, tools, storeAvailable, told }: Standing): Generator<MetricFamily> {
  const family = (
    name: string,
    kind: MetricFamily['kind'],
    help: string,
    lines: Iterable<readonly Told[]>,
  ): MetricFamily => ({
    name: `${prefix}_${name}`,
    kind,
    help,
    lines: linesOf(`${prefix}_${name}`, lines),
  });
  yield family(
    'store_available',
    'gauge',
    '0 while the store of idempotency keys does not answer.',
    single(storeAvailable ? 1 : 0),
  );
  const sizes = storeSizes(told?.store, tools).map(({ labels, records }): readonly Told[] => [[labels, records]]);
  if (sizes.length > 0)
    yield family('tool_dedupe_cache_size', 'gauge', 'Records in the store of idempotency keys.', sizes);
  const left = single(told?.retriesLeft);
  if (left.length > 0)
    yield family('retry_budget_left', 'gauge', 'Retries that all calls together may make now.', left);
  const dropped = single(told?.droppedEvents);
  const lost = 'Trace events that a subscriber lost, since it threw or was too slow.';
  if (dropped.length > 0) yield family('trace_events_dropped_total', 'counter', lost, dropped);
  yield family('build_info', 'info', 'Always 1: which version of spillway runs.', [
    [[{ version: PACKAGE_VERSION }, 1]],
  ]);
}

/** Everything that is not counted but stands: of tools, of the layer, of its store. */
export function* gauges(standing: Standing): Generator<MetricFamily> {
  yield* ofTools(standing);
  yield* ofLayer(standing);
}
