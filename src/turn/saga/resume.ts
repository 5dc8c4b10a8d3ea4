import {
  EMPTY,
  catchError,
  defer,
  firstValueFrom,
  from,
  map,
  mergeMap,
  of,
  switchMap,
  tap,
  throwError,
  toArray,
  type Observable,
} from 'rxjs';
import type { Journal, JournalEntry } from '../../contract/settle/journal.ts';
import type { DedupeRecord } from '../../contract/store.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import type { Compensation, PlanNode } from '../../contract/turn.ts';
import { listed } from '../../layer/listing.ts';
import type { Layer } from '../../layer/services.ts';
import { checkKeys } from '../../policy/check.ts';
import { DEDUPE_DEFAULTS } from '../../policy/profile.ts';
import { compensationOf } from '../../policy/settle/undo-order.ts';
import type { Plan } from '../plan.ts';
import { JOURNAL_TOOL, JournalRecord, journalIn } from './record.ts';
import { undoingOf } from './saga.ts';
import { ownerOf, undone, type UndoSite } from './undo.ts';

/** What `resume()` needs to know beside the layer's tools. */
export interface ResumeOptions {
  /**
   * Plans, found again by their `name`: those whose nodes have a `compensate` or a tool of their own. Default: none;
   * what needs one stays then, and is escalated.
   */
  readonly plans?: readonly Plan[];
}

/** A turn of a process that died, and what became of what it did. */
export interface ResumedTurn {
  /** The turn's id, as its own events had it. */
  readonly turnId: string;
  /** The plan's name, where it has one. */
  readonly plan?: string;
  /**
   * `undone`: what it did was undone, as far as that could be. `completed`: it had ended well, and nobody had heard.
   */
  readonly outcome: 'undone' | 'completed';
  /** With `completed`: the ids of the nodes whose effects stay, as they should. */
  readonly done?: readonly string[];
  /** With `undone`: what was, and what stays. */
  readonly compensation?: Compensation;
}

/** Turns that are undone at a time. */
const AT_ONCE = 8;

/** The tool of an entry, and how it is undone, as far as this process knows them. */
const toolOf =
  ({ registry }: Layer, journal: Journal, plans: readonly Plan[]): UndoSite['toolOf'] =>
  ({ id, toolName, own }: JournalEntry) => {
    const plan = plans.find(({ options }) => options.name !== undefined && options.name === journal.plan);
    const node: PlanNode | undefined = plan?.nodes.find((other) => other.id === id);
    if (own === true && node === undefined)
      return `its node has an undoing of its own, and its plan${journal.plan === undefined ? ', which has no name,' : ` ${journal.plan}`} was not given to resume({ plans })`;
    const guarded =
      typeof node?.tool === 'object' && node.tool.name === toolName ? registry.of(node.tool) : registry.get(toolName);
    if (guarded === undefined) return `no tool is named ${toolName} here; give resume({ plans }) its plan`;
    return { guarded, undoing: plan === undefined ? guarded.compensate : undoingOf(plan, id, guarded) };
  };

const siteOf = (layer: Layer, record: JournalRecord, plans: readonly Plan[]): UndoSite => {
  const { journal } = record;
  const { turnId } = journal;
  return {
    layer,
    journal,
    record,
    reason: journal.reason ?? 'crashed',
    toolOf: toolOf(layer, journal, plans),
    live: () => undefined,
    emit: (event) => {
      if (layer.trace.observed) layer.trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId, ...event });
    },
  };
};

/** What is left to do of a turn, and to tell. */
const finished = (site: UndoSite): Observable<ResumedTurn> => {
  const { journal, record } = site;
  const { turnId, plan, state, entries } = journal;
  const turn = { turnId, ...(plan === undefined ? {} : { plan }) };
  const left$: Observable<ResumedTurn> =
    state === 'completed'
      ? of({
          ...turn,
          outcome: 'completed',
          done: entries.filter((entry) => entry.state === 'done').map(({ id }) => id),
        })
      : (state === 'over' ? of(compensationOf(journal, (entry) => ownerOf(site, entry))) : undone(site)).pipe(
          map((compensation): ResumedTurn => ({ ...turn, outcome: 'undone', compensation })),
        );
  return left$.pipe(tap(() => record.told()));
};

/** Undoes one turn, unless its process lives, another process is at it, or it has settled meanwhile. */
const resumed = (layer: Layer, found: Journal, plans: readonly Plan[]): Observable<ResumedTurn> =>
  defer(() => {
    const record = new JournalRecord(layer, found, DEDUPE_DEFAULTS.leaseMs);
    return record.held().pipe(
      switchMap(() => record.adopted()),
      switchMap((isThere) => {
        if (isThere) return finished(siteOf(layer, record, plans));
        record.release();
        return EMPTY;
      }),
      // It is somebody else's, or the store is lost: the next who asks finds it.
      catchError((error: unknown) => (isToolExecutionError(error) ? EMPTY : throwError(() => error))),
    );
  });

/** Nothing is undone on the word of a damaged record, and nothing that may stay goes untold. */
const unreadable = ({ idempotencyKey }: DedupeRecord): ResumedTurn => {
  const why = 'the journal of the turn cannot be read';
  const left = { id: '', toolName: '', callKey: '', why, owner: 'a person' };
  return {
    turnId: idempotencyKey,
    outcome: 'undone',
    compensation: { reason: 'crashed', compensated: [], stays: [left] },
  };
};

/**
 * Finishes the turns of processes that died.
 * @throws ToolExecutionError `store_unavailable` where the store cannot list them
 */
export const resumeTurns = async (layer: Layer, options: ResumeOptions): Promise<readonly ResumedTurn[]> => {
  checkKeys('resume', options, ['plans']);
  const { dedupe, runtime } = layer;
  if (dedupe.made === undefined || layer.closed) return [];
  const records = listed((store) => store.byTool(JOURNAL_TOOL), dedupe, runtime);
  return firstValueFrom(
    from(records).pipe(
      mergeMap((record): Observable<ResumedTurn> => {
        const journal = journalIn(record);
        if (journal !== undefined) return resumed(layer, journal, options.plans ?? []);
        // One that was claimed and not written yet: nothing had begun.
        return record.payload === undefined ? EMPTY : of(unreadable(record));
      }, AT_ONCE),
      toArray(),
    ),
  );
};
