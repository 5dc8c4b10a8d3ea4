import {
  AsyncSubject,
  Observable,
  catchError,
  concat,
  connectable,
  defaultIfEmpty,
  defer,
  ignoreElements,
  map,
  of,
  switchMap,
} from 'rxjs';
import type { ToolEvent } from '../../contract/event.ts';
import type { CompensationReason } from '../../contract/settle/compensate.ts';
import type { Journal, JournalEntry } from '../../contract/settle/journal.ts';
import type { Compensation } from '../../contract/turn.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import type { Undoing } from '../../layer/settle/compensation.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { Layer } from '../../layer/services.ts';
import { forkJoinAll } from '../../operators/work/join-tree.ts';
import type { StopWatch } from '../../operators/work/stop-watch.ts';
import {
  compensationOf,
  isOpen,
  leftBehindSentence,
  undoSteps,
  type UndoStep,
} from '../../policy/settle/undo-order.ts';
import type { TurnBody } from '../context.ts';
import { settledDoubt } from './doubt.ts';
import type { JournalRecord } from './record.ts';
import { revoked, undoCall } from './undo-call.ts';

/** Whose turn is undone, and why. */
export interface UndoSite {
  readonly layer: Layer;
  readonly journal: Journal;
  readonly record: JournalRecord;
  readonly reason: CompensationReason;
  /** The tool of an entry and how it is undone, or why that is not known. */
  toolOf(
    entry: JournalEntry,
  ): { readonly guarded: GuardedTool; readonly undoing: Undoing | false | undefined } | string;
  /** What the process that ran it knows beside the journal. */
  live(
    entry: JournalEntry,
  ):
    | { readonly input: unknown; readonly output?: { readonly value: unknown }; readonly work?: StopWatch | undefined }
    | undefined;
  emit(event: TurnBody): void;
  /** Called with the events of the calls that undo, beside the trace. */
  readonly report?: (event: ToolEvent) => void;
}

/** Why an entry was left where it is: another process goes on with it. */
const LEFT = Symbol('left for another process');
type Problem = string | typeof LEFT | undefined;

/**
 * Undoes what a turn did, each call after those that build on it, and emits what became of that. One that cannot be
 * undone is told, and the others go on.
 *
 * ```
 * book (needs flight)   --u|           undone first
 * flight                    --u|
 * hotel                 ----#          cannot be undone: it stays, and a person is asked
 * undone                -------(c|)
 * ```
 */
export const undone = (site: UndoSite): Observable<Compensation> =>
  defer(() => {
    const { journal, record } = site;
    const open = journal.entries.filter(isOpen);
    if (open.length === 0) return ended(site).pipe(map(() => compensationOf(journal, () => '')));
    journal.state = 'undoing';
    journal.reason ??= site.reason;
    site.emit({ type: 'compensation_started', reason: site.reason, nodes: open.map(({ id }) => id) });
    return concat(
      record.written().pipe(quietly),
      defer(() => (record.isLost ? of() : allUndone(site))),
      defer(() => ended(site)),
    ).pipe(
      ignoreElements(),
      defaultIfEmpty(undefined),
      map(() => {
        const compensation = compensationOf(journal, (entry) => ownerOf(site, entry));
        site.emit({ type: 'compensation_settled', compensation });
        return compensation;
      }),
    );
  });

/** What the store does not get is found out by whoever comes next. */
const quietly = <T>(source: Observable<T>): Observable<T> => source.pipe(catchError(() => of()));

/** Each step is behind those that come before it; connected in that order, none waits for one that has not begun. */
const allUndone = (site: UndoSite): Observable<unknown> =>
  new Observable((subscriber) => {
    const undone$ = new Map<JournalEntry, Observable<unknown>>();
    for (const step of undoSteps(site.journal.entries)) {
      const before = step.first.map((entry) => undone$.get(entry) ?? of(undefined));
      const ready$: Observable<unknown> =
        before.length === 0 ? of(undefined) : forkJoinAll(before).pipe(switchMap(() => site.layer.runtime.after(0)));
      const own$ = connectable(
        ready$.pipe(
          switchMap(() => stepUndone(site, step)),
          defaultIfEmpty(undefined),
        ),
        { connector: () => new AsyncSubject<unknown>(), resetOnDisconnect: false },
      );
      undone$.set(step.entry, own$);
      own$.connect();
    }
    forkJoinAll([...undone$.values()])
      .pipe(defaultIfEmpty([]))
      .subscribe(subscriber);
  });

const stepUndone = (site: UndoSite, { entry }: UndoStep): Observable<unknown> => {
  if (!isOpen(entry)) return of(undefined);
  return problemOf(site, entry).pipe(
    catchError((error: unknown) => of(toToolExecutionError(error).message)),
    switchMap((problem: Problem) => {
      if (problem === LEFT || entry.state === 'not_done') return of(undefined);
      const isDone = entry.state === 'done';
      entry.state = problem === undefined ? 'compensated' : 'compensation_failed';
      if (problem !== undefined) entry.message = problem;
      tell(site, entry, isDone);
      return concat(revoked(site, entry, problem === undefined), site.record.written().pipe(quietly)).pipe(
        ignoreElements(),
        defaultIfEmpty(undefined),
      );
    }),
  );
};

/** Undoes one call, and emits why that failed. */
const problemOf = (site: UndoSite, entry: JournalEntry): Observable<Problem> => {
  const known = site.toolOf(entry);
  if (typeof known === 'string') return of(known);
  return settledDoubt(site, entry, known.guarded).pipe(
    switchMap((unknown): Observable<Problem> => {
      if (site.layer.closed) return of(LEFT);
      if (unknown !== undefined) return of(unknown);
      if (entry.state !== 'done') return of(undefined);
      // An alternative may have answered.
      const answered = site.toolOf(entry);
      return typeof answered === 'string' ? of(answered) : undoneBy(site, entry, answered);
    }),
  );
};

const undoneBy = (
  site: UndoSite,
  entry: JournalEntry,
  { guarded, undoing }: Exclude<ReturnType<UndoSite['toolOf']>, string>,
): Observable<Problem> => {
  if (undoing === undefined || undoing === false) return of(`${guarded.tool.name} has no compensate`);
  return concat(
    // What is known is kept first: the call's own record no longer says it once it is revoked.
    site.record.written().pipe(quietly, ignoreElements()),
    revoked(site, entry, false),
    defer(() => {
      // Another process may have the turn by now.
      if (site.record.isLost) return of(LEFT);
      return undoCall(site, entry, guarded, undoing).pipe(
        map(({ result }): Problem => {
          if (result.error === undefined) return undefined;
          return site.layer.closed ? LEFT : result.error.message;
        }),
      );
    }),
  );
};

/** Who must act about what stays. */
export const ownerOf = (site: UndoSite, entry: JournalEntry): string => {
  const known = site.toolOf(entry);
  const undoing = typeof known === 'string' ? undefined : known.undoing;
  return undoing === undefined || undoing === false ? 'a person' : undoing.owner;
};

const tell = (site: UndoSite, entry: JournalEntry, isDone: boolean): void => {
  const { id, toolName, state, message, callKey } = entry;
  if (state !== 'compensated' && state !== 'compensation_failed') return;
  const why = message === undefined ? {} : { message };
  site.emit({ type: 'node_compensated', nodeId: id, toolName, state, ...why });
  if (state === 'compensated') return;
  const left = { id, toolName, callKey, why: message ?? '', owner: ownerOf(site, entry) };
  site.emit({
    type: 'escalated',
    nodeId: id,
    toolName,
    message: leftBehindSentence(left, isDone, site.layer.trace.redactor.text),
    lacking: [],
    choices: ['undo_by_hand', 'leave_it'],
  });
};

/** What became of it stays in the store until somebody has been told. */
const ended = ({ journal, record }: UndoSite): Observable<unknown> => {
  if (record.isLost || journal.entries.some(isOpen)) return of(undefined);
  journal.state = 'over';
  return record.written().pipe(quietly, defaultIfEmpty(undefined));
};
