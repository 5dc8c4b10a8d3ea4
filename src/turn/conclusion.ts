import { AsyncSubject, NEVER, catchError, concat, defer, map, of, switchMap, type Observable } from 'rxjs';
import type { CompensationReason } from '../contract/settle/compensate.ts';
import type { JournalEntry } from '../contract/settle/journal.ts';
import type { Compensation, NodeResult, NodeState, TurnStatus } from '../contract/turn.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { given } from '../policy/check.ts';
import type { TurnContext } from './context.ts';
import { undoingOf, type Saga } from '../saga/saga.ts';
import { undone, type UndoSite } from '../saga/undo.ts';

/** How a turn ended, as far as that bears on what it did. */
interface Ended {
  readonly status: TurnStatus;
  /** What cut it short. */
  readonly ending: Extract<NodeState, 'timed_out' | 'canceled'> | undefined;
  /** A call that it cannot do without was canceled, by whomever. */
  readonly lacksCanceled: boolean;
}

/** Why what a turn did is to be undone; `undefined` where it is to stay. */
export const reasonOf = ({ status, ending, lacksCanceled }: Ended): CompensationReason | undefined => {
  if (ending !== undefined) return ending === 'timed_out' ? 'deadline' : 'canceled';
  if (status === 'escalated' || status === 'failed') return status;
  return lacksCanceled ? 'canceled' : undefined;
};

const siteOf = (turn: TurnContext, saga: Saga, reason: CompensationReason): UndoSite => ({
  layer: turn.layer,
  trace: turn.trace,
  journal: saga.record.journal,
  record: saga.record,
  reason,
  toolOf: ({ id, toolName }) => {
    const { registry } = turn.layer;
    const tool = turn.plan.nodes.find((node) => node.id === id)?.tool;
    const guarded = typeof tool === 'object' && tool.name === toolName ? registry.of(tool) : registry.get(toolName);
    return guarded === undefined
      ? `no tool is named ${toolName} any more`
      : { guarded, undoing: undoingOf(turn.plan, id, guarded) };
  },
  live: (entry, toolName) => saga.live(entry, toolName),
  passed: saga.passed,
  emit: (event) => turn.emitAlways(event),
  report: turn.report,
  ...given({ engine: turn.journal }),
  isLeft: () => turn.isLeft,
});

/**
 * Undoes what a turn did, once its calls are over: once, whoever asks. It goes on when nobody waits for it any more:
 * what is half undone is worse than either.
 */
export const compensation = (turn: TurnContext, saga: Saga, reason: CompensationReason): Observable<Compensation> => {
  if (saga.compensation$ !== undefined) return saga.compensation$;
  const undone$ = new AsyncSubject<Compensation>();
  saga.compensation$ = undone$;
  concat(
    saga.ended(),
    defer(() => undone(siteOf(turn, saga, reason))),
  ).subscribe(undone$);
  return undone$;
};

/** What settling its effects adds to a turn's result. */
interface SettledSaga {
  readonly compensation?: Compensation;
  readonly recorded?: 'superseded' | 'unrecorded';
  /** By id: what became of a node. */
  readonly nodes?: ReadonlyMap<string, (node: NodeResult) => NodeResult>;
}

const WHY: Readonly<Record<CompensationReason, string>> = {
  escalated: 'something required is missing',
  failed: 'the turn failed',
  canceled: 'the turn was canceled',
  deadline: 'the turn’s time was over',
  crashed: 'the process of the turn died',
};

/** A node as what became of its effect leaves it. */
const renewed =
  ({ state, message, halfUndone }: JournalEntry, reason: CompensationReason) =>
  (node: NodeResult): NodeResult => {
    if (state === 'compensated') return { ...node, state, reason: `It was done, and undone since ${WHY[reason]}` };
    if (state === 'compensation_failed' && halfUndone === true)
      return { ...node, state, reason: `It was done, and may have been undone: ${message ?? ''}` };
    if (state === 'compensation_failed') return { ...node, state, reason: message ?? 'It could not be undone' };
    if (state === 'done' || state === 'begun')
      return { ...node, state: 'compensation_failed', reason: 'It is not undone yet; resume() goes on with it' };
    return node;
  };

/**
 * What earlier processes of a turn that has moved did is this one's to undo, also where it began nothing itself. Until
 * the store tells, the turn does not end: its engine gives it again.
 */
const adopted = ({ journal }: TurnContext, saga: Saga): Observable<unknown> => {
  if (journal?.moved === undefined) return of(undefined);
  return saga.adopted().pipe(
    catchError((error: unknown) => {
      const { kind, classification } = toToolExecutionError(error);
      if (kind !== 'store_unavailable' || classification === 'permanent') return of(saga.lacks());
      journal.leave();
      return NEVER;
    }),
  );
};

/** Undoes the effects of a turn that failed, and keeps that there is nothing to undo of one that did not. */
export const settledSaga = (
  turn: TurnContext,
  saga: Saga,
  reason: CompensationReason | undefined,
): Observable<SettledSaga> => adopted(turn, saga).pipe(switchMap(() => settledHere(turn, saga, reason)));

const settledHere = (
  turn: TurnContext,
  saga: Saga,
  reason: CompensationReason | undefined,
): Observable<SettledSaga> => {
  const { record, passed } = saga;
  if (!saga.hasBegun)
    return of(
      reason === undefined || passed.length === 0 ? {} : { compensation: { reason, compensated: [], stays: passed } },
    );
  if (reason === undefined)
    return saga
      .completed()
      .pipe(map((isKept) => (isKept ? {} : { recorded: record.isLost ? 'superseded' : 'unrecorded' })));
  return compensation(turn, saga, reason).pipe(
    map((done): SettledSaga => {
      if (done.compensated.length + done.stays.length + (done.shared ?? []).length === 0) return {};
      const entries = record.journal.entries.filter(({ state }) => state !== 'not_done');
      return {
        compensation: done,
        nodes: new Map(entries.map((entry) => [entry.id, renewed(entry, reason)])),
        ...given({ recorded: record.isLost ? ('superseded' as const) : undefined }),
      };
    }),
  );
};
