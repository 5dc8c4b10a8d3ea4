import { NEVER, Subject, filter, map, mergeMap, of, startWith, take, takeUntil, tap, type Observable } from 'rxjs';
import type { JournalledDecision, JournalledNode, TurnJournal } from '../../contract/fleet/journal.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { Begun } from '../ledger.ts';
import type { Recorder } from '../recorder.ts';
import { FREE_MS, type Hold } from './hold.ts';

/** What the journal of a turn is made of. */
export interface JournalSite {
  readonly hold: Hold;
  /** Gives the turn back. */
  readonly leave: () => void;
  readonly tell: TurnJournal['tell'];
  readonly runtime: Runtime;
  readonly turnId: string;
  readonly worker: string;
  readonly begun: Begun;
  readonly recorder: Recorder;
  /** The nodes whose attempts run now. */
  readonly busy: Set<string>;
  readonly left$: Observable<unknown>;
  readonly ended$: Observable<unknown>;
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

/** The earlier owners of a turn: what each does of it has stopped so long after it was told that it has it. */
const givenUpBy = (
  { hold, runtime, begun: { submission, epoch, nowMs, lastWords } }: JournalSite,
  beganMs: number,
): TurnJournal['givenUp'] => {
  return (claimant) => {
    const at = claimant.lastIndexOf('/');
    const claimed = Number(claimant.slice(at + 1));
    if (claimant.slice(0, at) !== submission || claimed >= epoch) return of(false);
    const freeAtMs = beganMs + Math.max(0, (lastWords.get(claimed) ?? nowMs) + FREE_MS - nowMs);
    return runtime.after(Math.max(0, freeAtMs - runtime.now())).pipe(mergeMap(() => hold.owned()));
  };
};

const decidedIn =
  ({ runtime, begun: { decisions, nowMs } }: JournalSite, beganMs: number): TurnJournal['decided'] =>
  (nodeId) => {
    const kept = decisions.get(nodeId);
    if (kept === undefined) return undefined;
    const decision = JSON.parse(kept.decision) as JournalledDecision;
    const passedMs = nowMs + (runtime.now() - beganMs) - kept.atMs;
    return { ...decision, delayLeftMs: Math.max(0, decision.delayMs - passedMs) };
  };

const nodeOf = (entry: string | undefined): JournalledNode | undefined =>
  entry === undefined ? undefined : (JSON.parse(entry) as JournalledNode);

/** A turn's journal in a ledger. While the worker drains, nothing follows from what is kept. */
export function journalOf(site: JournalSite): { readonly port: TurnJournal; readonly kept$: Observable<unknown> } {
  const { hold, runtime, turnId, worker, begun, recorder, busy, left$, ended$ } = site;
  const kept$ = new Subject<unknown>();
  let isDraining = false;
  // Not beyond the turn: a worker has millions of them before it is told to end.
  site.draining$.pipe(take(1), takeUntil(left$)).subscribe(() => (isDraining = true));
  const beganMs = runtime.now();
  const keeping = (nodeId: string, written$: Observable<unknown>): Observable<unknown> =>
    written$.pipe(
      tap(() => {
        busy.delete(nodeId);
        kept$.next(nodeId);
      }),
      mergeMap((written) => (isDraining ? NEVER : of(written))),
    );
  const port: TurnJournal = {
    turnId,
    submission: begun.submission,
    epoch: begun.epoch,
    remainingMs: begun.deadlineAtMs - begun.nowMs,
    started: begun.seq > 0,
    worker,
    ...movedTo(worker, begun),
    tell: site.tell,
    settled: (nodeId) => nodeOf(begun.nodes.get(nodeId)),
    settle: (nodeId, node) => {
      const entry = entryOf(node);
      return keeping(nodeId, recorder.node(nodeId, entry)).pipe(map(() => JSON.parse(entry) as JournalledNode));
    },
    decided: decidedIn(site, beganMs),
    decide: (nodeId, decision) => keeping(nodeId, recorder.decision(nodeId, JSON.stringify(decision))),
    holds: () => hold.standing === 'held',
    owned: () => hold.owned(),
    givenUp: givenUpBy(site, beganMs),
    standing$: hold.standing$,
    leave: site.leave,
    left$,
    ended$,
  };
  return { port, kept$ };
}

/** Emits once no attempt runs any more of a turn in which nothing new starts. @param happened$ whatever may end one */
export const drained = (busy: ReadonlySet<string>, happened$: Observable<unknown>): Observable<unknown> =>
  happened$.pipe(
    startWith(0),
    filter(() => busy.size === 0),
    take(1),
  );
