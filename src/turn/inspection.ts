import type { StoreReport } from '../contract/store.ts';
import type { Mode } from '../contract/policy.ts';
import type { BreakerState } from '../operators/breaker.ts';
import type { Layer } from './layer.ts';

/** How a layer stands, for a person or a dashboard. */
export interface LayerReport {
  /** As the switches stand now. */
  readonly mode: Mode;
  readonly breakers: ReadonlyArray<{ readonly toolName: string; readonly scope: string; readonly state: BreakerState }>;
  /** Absent without a store, or when it would not answer. */
  readonly store?: StoreReport;
  /** Retries that may be made now; absent when there is no limit. */
  readonly retriesLeft?: number;
}

/** Which remembered results are forgotten. */
export type Flush = { readonly tool: string } | { readonly session: string } | { readonly all: true };

export async function inspectLayer({ breakers, dedupe, retryBudget, runtime, switches }: Layer): Promise<LayerReport> {
  const store = await report(dedupe.made);
  return {
    mode: switches.modeOf(undefined),
    breakers: breakers.list().map(({ toolName, scope, breaker }) => ({ toolName, scope, state: breaker.state })),
    ...(store === undefined ? {} : { store }),
    ...(retryBudget === undefined ? {} : { retriesLeft: retryBudget.left(runtime.now()) }),
  };
}

const report = async (store: Layer['dedupe']['made']): Promise<StoreReport | undefined> => {
  try {
    return await store?.report?.();
  } catch {
    // A store that is lost says so in the trace.
    return undefined;
  }
};

/**
 * Forgets results, so that their keys run again. Claims that run are left alone: their calls would run twice.
 * @returns how many were forgotten
 * @throws what the store throws
 */
export async function flushLayer({ dedupe, registry }: Layer, what: Flush): Promise<number> {
  const store = dedupe.made;
  if (store === undefined) return 0;
  const lists = 'session' in what ? [store.bySession(what.session)] : ('tool' in what ? [what.tool] : registry.names).map((tool) => store.byTool(tool));
  let flushed = 0;
  for (const list of lists) {
    for await (const { key, version, state } of list) {
      if (state !== 'inflight' && (await store.delete(key, version))) flushed++;
    }
  }
  return flushed;
}
