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
  throwError,
  toArray,
  type Observable,
} from 'rxjs';
import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import type { Compensation, Plan, PlanNode } from '../contract/turn.ts';
import { listed } from '../layer/listing.ts';
import type { CallingLayer } from '../call/pipe.ts';
import type { Layer } from '../layer/services.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import { DEDUPE_DEFAULTS } from '../policy/profile.ts';
import { compensationIn, isOpen } from '../policy/settle/undo-order.ts';
import { KEEP_MS, journalIn } from './journal-text.ts';
import { JOURNAL_TOOL } from './own-records.ts';
import { JournalRecord } from './record.ts';
import { undoingOf } from './saga.ts';
import { unreadable, withoutKeys } from './shown.ts';
import { ownerOf, toldEnd, undone, type UndoSite } from './undo.ts';

/** What `resume()` needs to know beside the layer's tools. */
export interface ResumeOptions {
  /**
   * Plans, found again by their `name`: those whose nodes have a `compensate` or a tool of their own. Default: none;
   * what needs one stays then, and is escalated.
   */
  readonly plans?: readonly Plan[];
  /**
   * How long this process may be silent while it finishes a turn, in milliseconds; then another may go on with that.
   * Default 120,000.
   */
  readonly leaseMs?: number;
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

/** So long before a journal is forgotten a person is told also of what another process could know. */
const LAST_MS = 86_400_000;
/** Turns that are undone at a time. */
const AT_ONCE = 8;

/** The tool of an entry, and how it is undone, as far as this process knows them. */
const toolOf =
  ({ registry }: Layer, journal: Journal, plans: readonly Plan[]): UndoSite['toolOf'] =>
  ({ id, toolName, own }: JournalEntry) => {
    const plan = plans.find(({ options }) => options.name !== undefined && options.name === journal.plan);
    const node: PlanNode | undefined = plan?.nodes.find((other) => other.id === id);
    if (own === true && node === undefined)
      return (
        'its node has an undoing of its own, and its ' +
        `plan${journal.plan === undefined ? ', which has no name,' : ` ${journal.plan}`} was not given to ` +
        'resume({ plans })'
      );
    const guarded =
      typeof node?.tool === 'object' && node.tool.name === toolName ? registry.of(node.tool) : registry.get(toolName);
    if (guarded === undefined) return `no tool is named ${toolName} here; give resume({ plans }) its plan`;
    return { guarded, undoing: plan === undefined ? guarded.compensate : undoingOf(plan, id, guarded) };
  };

const siteOf = (layer: CallingLayer, record: JournalRecord, plans: readonly Plan[], isLast: boolean): UndoSite => {
  const { journal } = record;
  const { turnId } = journal;
  return {
    layer,
    journal,
    record,
    reason: journal.reason ?? 'crashed',
    toolOf: toolOf(layer, journal, plans),
    live: () => ({}),
    emit: (event) => {
      if (!layer.trace.observed) return;
      const shown = withoutKeys(event, journal.entries);
      layer.trace.publish({ seq: 0, atMs: 0, source: 'turn', turnId, ...shown });
    },
    passed: [],
    leavesUnknown: !isLast,
  };
};

/** A turn as it is told, and what is to be done once it has been. */
interface Finished {
  readonly turn: ResumedTurn;
  readonly told?: () => void;
}

const headOf = ({ turnId, plan }: Journal): Pick<ResumedTurn, 'turnId' | 'plan'> => ({
  turnId,
  ...(plan === undefined ? {} : { plan }),
});

/** What is left to do of a turn, and to tell. */
const finished = (site: UndoSite): Observable<Finished> => {
  const { journal, record } = site;
  const { state, entries } = journal;
  const told = (): void => record.told();
  const done = entries.filter((entry) => entry.state === 'done').map(({ id }) => id);
  if (state === 'completed') return of({ turn: { ...headOf(journal), outcome: 'completed', done }, told });
  const left$ = state === 'over' ? of(toldEnd(site, false)) : undone(site);
  return left$.pipe(
    map((compensation): Finished => ({ turn: { ...headOf(journal), outcome: 'undone', compensation }, told })),
  );
};

/** A turn of which this process knows no tool: whoever knows them finishes it, and here it is only told. */
const strange = (site: UndoSite): Observable<Finished> => {
  const { journal } = site;
  if (journal.state === 'completed' || journal.state === 'over') return EMPTY;
  for (const entry of journal.entries.filter(isOpen)) {
    const known = site.toolOf(entry);
    if (typeof known === 'string') entry.message = known;
  }
  const compensation = compensationIn(journal, (entry) => ownerOf(site, entry));
  return of({ turn: { ...headOf(journal), outcome: 'undone', compensation } });
};

const strangeOnce = (site: UndoSite): Observable<Finished> =>
  site.record.isHeld().pipe(switchMap((isHeld) => (isHeld ? EMPTY : strange(site))));

const untold = (turnId: string): Finished => ({
  turn: {
    turnId,
    outcome: 'undone',
    compensation: { reason: 'crashed', compensated: [], stays: [unreadable(turnId)] },
  },
});

/** Undoes one turn, unless its process lives, another process is at it, or it has settled meanwhile. */
const resumed = (
  layer: CallingLayer,
  found: Journal,
  { plans = [], leaseMs = DEDUPE_DEFAULTS.leaseMs }: ResumeOptions,
  createdAtMs: number,
): Observable<Finished> =>
  defer(() => {
    const isLast = layer.runtime.wallNow() - createdAtMs > KEEP_MS - LAST_MS;
    // Undone here, it would go on elsewhere as if it were not; what its engine has lost is told at the last.
    if (found.submission !== undefined && !isLast) return EMPTY;
    const record = new JournalRecord(layer, found, leaseMs);
    const site = siteOf(layer, record, plans, isLast);
    const isStrange =
      found.pages === 0 &&
      found.entries.length > 0 &&
      found.entries.every((entry) => typeof site.toolOf(entry) === 'string');
    const left$ =
      isStrange && !isLast
        ? strangeOnce(site)
        : record.held().pipe(
            switchMap(() => record.adopted()),
            switchMap((isThere) => {
              if (isThere === 'there') return finished(siteOf(layer, record, plans, isLast));
              record.release();
              return isThere === 'damaged' ? of(untold(found.turnId)) : EMPTY;
            }),
          );
    return left$.pipe(
      // It is somebody else's, or the store is lost: the next who asks finds it.
      catchError((error: unknown) => {
        record.release();
        return isToolExecutionError(error) ? EMPTY : throwError(() => error);
      }),
    );
  });

/**
 * Finishes the turns of processes that died.
 * @throws ToolExecutionError `store_unavailable` where the store cannot list them
 * @throws RangeError for a plan with a tool that cannot be registered, and for an option out of its range
 */
export const resumeTurns = async (layer: CallingLayer, options: ResumeOptions): Promise<readonly ResumedTurn[]> => {
  checkKeys('resume', options, ['plans', 'leaseMs']);
  const { plans = [], leaseMs } = options;
  if (leaseMs !== undefined) checkNumber('leaseMs', leaseMs, positiveDuration);
  for (const { nodes } of plans) for (const { tool } of nodes) if (typeof tool === 'object') layer.registry.of(tool);
  const { dedupe, runtime } = layer;
  if (dedupe.made === undefined || layer.closed) return [];
  const records = listed((store) => store.byTool(JOURNAL_TOOL), dedupe, runtime);
  const all = await firstValueFrom(
    from(records).pipe(
      mergeMap((record): Observable<Finished> => {
        const journal = journalIn(record);
        if (journal !== undefined) return resumed(layer, journal, options, record.createdAtMs);
        // One that was claimed and not written yet: nothing had begun.
        return record.payload === undefined ? EMPTY : of(untold(record.idempotencyKey));
      }, AT_ONCE),
      toArray(),
    ),
  );
  // Whoever asked has it first: what is forgotten before that may be lost with this process.
  const over = dedupe.writing();
  runtime.after(0).subscribe(() => {
    for (const { told } of all) told?.();
    over();
  });
  return all.map(({ turn }) => turn);
};
