import { NEVER, of, type Observable } from 'rxjs';
import type { DedupeStore } from 'spillway';
import type { JournalledDecision, JournalledNode, TurnJournal } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import type { VirtualRuntime } from 'spillway/testing';

/** What outlives a process: the records of keys, and the turn's journal. */
export interface Survivors {
  readonly nodes: Map<string, JournalledNode>;
  readonly decisions: Map<string, JournalledDecision & { readonly atMs: number }>;
  readonly store: DedupeStore;
  /** A worker has the turn from now on, and nobody else. */
  taken(worker: string, left$?: Observable<unknown>): TurnJournal;
}

export const survivors = (runtime: VirtualRuntime): Survivors => {
  const nodes: Survivors['nodes'] = new Map();
  const decisions: Survivors['decisions'] = new Map();
  const endMs = runtime.now() + 60_000;
  let owner = '';
  let epochs = 0;
  return {
    nodes,
    decisions,
    store: memoryStore({ runtime, sweepMs: Infinity }),
    taken: (worker: string, left$: Observable<unknown> = NEVER): TurnJournal => {
      const from = owner;
      owner = worker;
      const epoch = ++epochs;
      const kept = <T>(map: Map<string, T>, id: string, value: T): Observable<T> => {
        if (owner !== worker) return NEVER;
        map.set(id, value);
        return of(value);
      };
      return {
        turnId: 'trip-1',
        submission: 's-1',
        epoch,
        remainingMs: endMs - runtime.now(),
        started: from !== '',
        ...(from === '' ? {} : { moved: { from, to: worker, afterMs: 1 } }),
        tell: () => undefined,
        settled: (id) => nodes.get(id),
        settle: (id, node) => kept(nodes, id, node),
        decided: (id) => {
          const decision = decisions.get(id);
          if (decision === undefined) return undefined;
          return { ...decision, delayLeftMs: Math.max(0, decision.atMs + decision.delayMs - runtime.now()) };
        },
        decide: (id, decision) => kept(decisions, id, { ...decision, atMs: runtime.now() }),
        holds: () => true,
        owned: () => of(owner === worker),
        givenUp: (claimant) => of(owner === worker && Number(claimant.split('/')[1]) < epoch),
        standing$: NEVER,
        leave: () => undefined,
        ended$: of(true),
        left$,
      };
    },
  };
};
