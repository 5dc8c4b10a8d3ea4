import { firstValueFrom } from 'rxjs';
import type { Mode } from '../contract/policy.ts';
import type { Awaitable, DedupeReading, StoreReport } from '../contract/store.ts';
import { ask } from '../operators/dedupe/ask.ts';
import { mapped } from '../operators/breath.ts';
import type { BreakerState } from '../operators/breaker/breaker.ts';
import type { BreakerEntry } from '../layer/breakers.ts';
import type { Layer } from '../layer/services.ts';
import { listed } from '../layer/listing.ts';
import { isOwnRecord } from '../saga/own-records.ts';

/** A breaker as it stands. */
export interface BreakerReport {
  /** The name it is known by: its tool's, or what `breakerKey` made of it. */
  readonly toolName: string;
  /** The tenant; empty without one. */
  readonly scope: string;
  /** How it stands now. */
  readonly state: BreakerState;
}

/** A registered tool as its calls run now. */
export interface ToolReport {
  /** The tool's name. */
  readonly name: string;
  /** The mode its calls run in: the more cautious of the layer's and its own. */
  readonly mode: Mode;
  /** The name of its breaker; absent when it has none. */
  readonly breaker?: string;
}

/** How a layer stands, for a person or a dashboard. */
export interface LayerReport {
  /** As the switches stand now. */
  readonly mode: Mode;
  /** `true`: breakers count and refuse nothing, as `TOOL_RELIABILITY_OPEN_MODE` says. */
  readonly breakersObserve: boolean;
  /** The registered tools, in the order of registration. */
  readonly tools: readonly ToolReport[];
  /** The breakers that were asked for so far. */
  readonly breakers: readonly BreakerReport[];
  /** Absent without a store, or when it would not answer. */
  readonly store?: StoreReport;
  /** Retries that may be made now; absent when there is no limit. */
  readonly retriesLeft?: number;
  /** Trace events that a subscriber lost by throwing. */
  readonly droppedEvents: number;
}

/** Which remembered results are forgotten. */
export type Flush =
  | {
      /** The name of a registered tool: what is remembered of its calls. */
      readonly tool: string;
    }
  | {
      /** A session: what is remembered of all its calls. */
      readonly session: string;
    }
  | {
      /** What is remembered of all registered tools. */
      readonly all: true;
    };

export const breakerReport = ({ toolName, scope, breaker }: BreakerEntry): BreakerReport => ({
  toolName,
  scope,
  state: breaker.state,
});

const toolReport = ({ registry, switches }: Layer, name: string): readonly ToolReport[] => {
  const guarded = registry.get(name);
  if (guarded === undefined) return [];
  return [
    {
      name,
      mode: switches.modeOf(guarded.mode),
      ...(guarded.breaker === undefined ? {} : { breaker: guarded.breakerName }),
    },
  ];
};

export function toolReports(layer: Layer): ToolReport[] {
  const { names } = layer.registry;
  return names.flatMap((name) => toolReport(layer, name));
}

export async function inspectLayer(layer: Layer): Promise<LayerReport> {
  const { breakers, registry, retryBudget, runtime, sharedBreakers, switches, trace } = layer;
  const { names } = registry;
  const [store] = await Promise.all([report(layer), sharedBreakers?.refresh()]);
  return {
    mode: switches.modeOf(undefined),
    breakersObserve: switches.breakersObserve,
    // There may be ten thousand tools, and a breaker for each of them and each tenant.
    tools: (await mapped(names, (name) => toolReport(layer, name))).flat(),
    breakers: await mapped(breakers.all(), breakerReport),
    ...(store === undefined ? {} : { store }),
    ...(retryBudget === undefined ? {} : { retriesLeft: retryBudget.left(runtime.now()) }),
    droppedEvents: trace.dropped,
  };
}

const report = async ({ dedupe, runtime, trace }: Layer): Promise<StoreReport | undefined> => {
  const store = dedupe.made;
  try {
    const found = await firstValueFrom(ask(() => store?.report?.(), dedupe.storeTimeoutMs, runtime));
    return found && { ...found, warnings: found.warnings.map(trace.redactor.text) };
  } catch {
    // A store that is lost says so in the trace.
    return undefined;
  }
};

const hasLapsed = (reading: DedupeReading | undefined): boolean =>
  reading !== undefined && (reading.record.lockUntilMs ?? 0) <= reading.atMs;

/**
 * Forgets results, so that their keys run again, and claims whose lease has passed. Claims that run are left alone:
 * their calls would run twice. So are the journals of turns.
 * @returns how many were forgotten
 * @throws ToolExecutionError `store_unavailable`; what was forgotten until then stays so
 */
export async function flushLayer({ dedupe, registry, runtime }: Layer, what: Flush): Promise<number> {
  const store = dedupe.made;
  if (store === undefined) return 0;
  const lists =
    'session' in what
      ? [() => store.bySession(what.session)]
      : ('tool' in what ? [what.tool] : registry.names).map((tool) => () => store.byTool(tool));
  let flushed = 0;
  for (const list of lists) {
    for await (const { key, version, state, tool } of listed(list, dedupe, runtime)) {
      // What a turn did is not forgotten before it is settled.
      if (isOwnRecord(tool)) continue;
      const answerTo = <T>(question: () => Awaitable<T>): Promise<T> =>
        firstValueFrom(ask(question, dedupe.storeTimeoutMs, runtime));
      // Only the store's clock says whether a claim still holds.
      const runs = state === 'inflight' && !hasLapsed(await answerTo(() => store.get(key)));
      if (!runs && (await answerTo(() => store.delete(key, version)))) flushed++;
    }
  }
  return flushed;
}
