import { NEVER, Subject, filter, map, merge, mergeMap, of, startWith, take, tap, type Observable } from 'rxjs';
import type { TraceEvent } from '../../contract/event.ts';
import type { JournalledDecision, JournalledNode, TurnJournal } from '../../contract/fleet/journal.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { Begun, TurnLedger } from '../ledger.ts';
import type { Recorder } from '../recorder.ts';
import { untilAnswered } from '../until-answered.ts';

/** What the journal of a turn is made of. */
export interface JournalSite {
  readonly ledger: TurnLedger;
  readonly runtime: Runtime;
  readonly turnId: string;
  readonly worker: string;
  readonly begun: Begun;
  readonly recorder: Recorder;
  /** The nodes whose attempts run now. */
  readonly busy: Set<string>;
  readonly left$: Observable<unknown>;
  readonly draining$: Observable<unknown>;
}

/** What a value is as JSON, also where it is none: whoever goes on with the turn reads it from there. */
const entryOf = (node: JournalledNode): string => {
  try {
    return JSON.stringify(node);
  } catch {
    const { id, toolName } = node.result;
    const reason = 'Its output is no JSON, which a turn of a fleet needs; have the tool give plain data';
    const failed: JournalledNode = { result: { id, toolName, state: 'failed', reason }, failure: 'execution_error' };
    return JSON.stringify(failed);
  }
};

const movedTo = (to: string, { before, nowMs }: Begun): Pick<TurnJournal, 'moved'> =>
  before === undefined ? {} : { moved: { from: before.worker, to, afterMs: Math.max(0, nowMs - before.aliveAtMs) } };

const nodeOf = (entry: string | undefined): JournalledNode | undefined =>
  entry === undefined ? undefined : (JSON.parse(entry) as JournalledNode);

/** A turn's journal in a ledger. While the worker drains, nothing follows from what is kept. */
export function journalOf(site: JournalSite): { readonly port: TurnJournal; readonly kept$: Observable<unknown> } {
  const { ledger, runtime, turnId, worker, begun, recorder, busy, left$ } = site;
  const kept$ = new Subject<unknown>();
  let isDraining = false;
  site.draining$.pipe(take(1)).subscribe(() => (isDraining = true));
  const beganMs = runtime.now();
  const keeping = (nodeId: string, written$: Observable<unknown>): Observable<unknown> =>
    written$.pipe(
      tap(() => {
        busy.delete(nodeId);
        kept$.next(nodeId);
      }),
      mergeMap((written) => (isDraining ? NEVER : of(written))),
    );
  const { decisions, nodes } = begun;
  const port: TurnJournal = {
    turnId,
    remainingMs: begun.deadlineAtMs - begun.nowMs,
    started: begun.seq > 0,
    ...movedTo(worker, begun),
    settled: (nodeId) => nodeOf(nodes.get(nodeId)),
    settle: (nodeId, node) => {
      const entry = entryOf(node);
      return keeping(nodeId, recorder.node(nodeId, entry)).pipe(map(() => JSON.parse(entry) as JournalledNode));
    },
    decided: (nodeId) => {
      const kept = decisions.get(nodeId);
      if (kept === undefined) return undefined;
      const decision = JSON.parse(kept.decision) as JournalledDecision;
      const passedMs = begun.nowMs + (runtime.now() - beganMs) - kept.atMs;
      return { ...decision, delayLeftMs: Math.max(0, decision.delayMs - passedMs) };
    },
    decide: (nodeId, decision) => keeping(nodeId, recorder.decision(nodeId, JSON.stringify(decision))),
    owned: () => untilAnswered(() => ledger.owns(turnId, begun.epoch), runtime),
    left$,
  };
  return { port, kept$ };
}

/** Emits once no attempt runs any more of a turn in which nothing new starts. */
export const drained = (
  busy: ReadonlySet<string>,
  trace$: Observable<TraceEvent>,
  kept$: Observable<unknown>,
): Observable<unknown> =>
  merge(trace$, kept$).pipe(
    startWith(0),
    filter(() => busy.size === 0),
    take(1),
  );
