import { AsyncSubject, concat, defer, map, of, type Observable } from 'rxjs';
import type { CompensationReason } from '../../contract/settle/compensate.ts';
import type { JournalEntry } from '../../contract/settle/journal.ts';
import type { Compensation, NodeResult, NodeState, TurnResult } from '../../contract/turn.ts';
import type { TurnContext } from '../context.ts';
import { undoingOf, type Saga } from './saga.ts';
import { undone, type UndoSite } from './undo.ts';

/** Why what a turn did is to be undone; `undefined` where it is to stay. */
export const reasonOf = (
  { status }: Pick<TurnResult, 'status'>,
  ending: Extract<NodeState, 'timed_out' | 'canceled'> | undefined,
): CompensationReason | undefined => {
  if (ending !== undefined) return ending === 'timed_out' ? 'deadline' : 'canceled';
  return status === 'escalated' || status === 'failed' ? status : undefined;
};

const siteOf = (turn: TurnContext, saga: Saga, reason: CompensationReason): UndoSite => ({
  layer: turn.layer,
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
  live: (entry) => saga.live(entry),
  emit: (event) => turn.emitAlways(event),
  report: turn.report,
});

/**
 * Undoes what a turn did, once its calls are over. It goes on when nobody waits for it any more: what is half undone is
 * worse than either.
 */
export const compensation = (turn: TurnContext, saga: Saga, reason: CompensationReason): Observable<Compensation> => {
  const undone$ = new AsyncSubject<Compensation>();
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
  ({ state, message }: JournalEntry, reason: CompensationReason) =>
  (node: NodeResult): NodeResult => {
    if (state === 'compensated') return { ...node, state, reason: `It was done, and undone since ${WHY[reason]}` };
    if (state === 'compensation_failed') return { ...node, state, reason: message ?? 'It could not be undone' };
    if (state === 'done' || state === 'begun')
      return { ...node, state: 'compensation_failed', reason: 'It is not undone yet; resume() goes on with it' };
    return node;
  };

/** Undoes the effects of a turn that failed, and keeps that there is nothing to undo of one that did not. */
export const settledSaga = (
  turn: TurnContext,
  saga: Saga,
  reason: CompensationReason | undefined,
): Observable<SettledSaga> => {
  if (!saga.hasBegun) return of({});
  const { record } = saga;
  if (reason === undefined)
    return saga
      .completed()
      .pipe(map((isKept) => (isKept ? {} : { recorded: record.isLost ? 'superseded' : 'unrecorded' })));
  return compensation(turn, saga, reason).pipe(
    map((done): SettledSaga => {
      if (done.compensated.length + done.stays.length === 0) return {};
      const { entries } = record.journal;
      return {
        compensation: done,
        nodes: new Map(entries.map((entry) => [entry.id, renewed(entry, reason)])),
        ...(record.isLost ? { recorded: 'superseded' } : {}),
      };
    }),
  );
};
