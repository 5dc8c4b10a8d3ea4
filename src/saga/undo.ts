import {
  AsyncSubject,
  Observable,
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  filter,
  map,
  of,
  retry,
  switchMap,
  toArray,
} from 'rxjs';
import type { ToolEvent } from '../contract/event.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { CompensationReason } from '../contract/settle/compensate.ts';
import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import type { Compensation, LeftBehind } from '../contract/turn.ts';
import type { CallOutcome } from '../call/result.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { Undoing } from '../layer/settle/compensation.ts';
import { HOOK_FAILED } from '../layer/hooks.ts';
import type { GuardedTool } from '../layer/registry.ts';
import type { CallingLayer } from '../call/pipe.ts';
import { forkJoinAll } from '../operators/work/join-tree.ts';
import type { StopWatch } from '../operators/work/stop-watch.ts';
import { given } from '../policy/check.ts';
import { compensationIn, isOpen, leftBehindSentence, undoSteps, type UndoStep } from '../policy/settle/undo-order.ts';
import type { TurnBody } from '../layer/trace.ts';
import type { TracePart } from '../policy/trace-part.ts';
import { settledDoubt } from './doubt.ts';
import type { JournalRecord } from './record.ts';
import { letGo, revoked } from './standing.ts';
import { undoCall } from './undo-call.ts';

/** What this process alone knows of a call, as far as it is about one of the tools that the call used. */
export interface LiveCall {
  readonly input?: { readonly value: unknown };
  readonly output?: { readonly value: unknown };
  readonly work?: StopWatch | undefined;
  /** Others waited for its key when it ended. */
  readonly wasAwaited?: boolean;
}

/** Whose turn is undone, and why. */
export interface UndoSite {
  readonly layer: CallingLayer;
  /** The trace that the turn is part of; not known in a process that only finishes it. */
  readonly trace?: TracePart;
  readonly journal: Journal;
  readonly record: JournalRecord;
  readonly reason: CompensationReason;
  /** The tool of an entry and how it is undone, or why that is not known. */
  toolOf(
    entry: JournalEntry,
  ): { readonly guarded: GuardedTool; readonly undoing: Undoing | false | undefined } | string;
  /** What the process that ran it knows beside the journal, of one of the tools that it may have called. */
  live(entry: JournalEntry, toolName: string): LiveCall;
  /** What went straight through to its tools, and stays. */
  readonly passed: readonly LeftBehind[];
  /** What this process does not know a tool for is left for one that does. Default: a person is told. */
  readonly leavesUnknown?: boolean;
  emit(event: TurnBody): void;
  /** Called with the events of the calls that undo, beside the trace. */
  readonly report?: (event: ToolEvent) => void;
  /** The engine that has the turn: the calls that undo are claimed for it, and stop where another process has it. */
  readonly engine?: TurnJournal;
  /** Whether the turn has gone elsewhere: nothing more of it is begun here. */
  readonly isLeft?: () => boolean;
}

/** Whether what is not undone yet is another process's to undo. */
const isOver = ({ layer, record, isLeft }: UndoSite): boolean => layer.closed || record.isLost || isLeft?.() === true;

/** Why an entry was left where it is: another process goes on with it. */
const LEFT = Symbol('left');
/** What went wrong. With `uncertain` the undoing itself may have taken effect. */
type Problem = { readonly why: string; readonly uncertain?: boolean } | typeof LEFT | undefined;

/**
 * Undoes what a turn did, each call after those that build on it, and emits what became of that. One that cannot be
 * undone is told, and the others go on. Of a turn that goes elsewhere meanwhile nothing is emitted: it is told there.
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
    if (open.length === 0) return ended(site).pipe(map(() => toldEnd(site, false)));
    journal.state = 'undoing';
    journal.reason ??= site.reason;
    site.emit({ type: 'compensation_started', reason: site.reason, nodes: open.map(({ id }) => id) });
    return concat(
      record.written().pipe(quietly),
      defer(() => allUndone(site)),
      defer(() => ended(site)),
    ).pipe(
      toArray(),
      filter(() => {
        const isLeft = site.isLeft?.() === true;
        // Whoever has it now need not wait for this process's lease.
        if (isLeft) record.release();
        return !isLeft;
      }),
      map(() => toldEnd(site, true)),
    );
  });

/** Tells what became of it: also where nothing `hasStarted` here, since an earlier process had undone it. */
export const toldEnd = (site: UndoSite, hasStarted: boolean): Compensation => {
  const compensation = compensationIn(site.journal, (entry) => ownerOf(site, entry), site.passed);
  const { compensated, stays, shared = [] } = compensation;
  if (hasStarted || compensated.length + stays.length + shared.length > 0)
    site.emit({ type: 'compensation_settled', compensation });
  return compensation;
};

/** Emits once, at the end: what the store does not get is found out by whoever comes next. */
const quietly = (source: Observable<unknown>): Observable<unknown> =>
  source.pipe(
    catchError(() => of()),
    toArray(),
  );

/** Each step is behind those that come before it; begun in that order, none waits for one that has not begun. */
const allUndone = (site: UndoSite): Observable<unknown> =>
  new Observable((subscriber) => {
    const undone$ = new Map<JournalEntry, Observable<unknown>>();
    for (const step of undoSteps(site.journal.entries)) {
      const before = step.first.map((entry) => undone$.get(entry) ?? of(undefined));
      const ready$: Observable<unknown> =
        before.length === 0 ? of(undefined) : forkJoinAll(before).pipe(switchMap(() => site.layer.runtime.after(0)));
      const own$ = new AsyncSubject<unknown>();
      undone$.set(step.entry, own$);
      ready$
        .pipe(
          switchMap(() => stepUndone(site, step)),
          defaultIfEmpty(undefined),
        )
        .subscribe(own$);
    }
    forkJoinAll([...undone$.values()]).subscribe(subscriber);
  });

const stepUndone = (site: UndoSite, { entry }: UndoStep): Observable<unknown> => {
  if (!isOpen(entry)) return of(undefined);
  return problemOf(site, entry).pipe(
    patiently(site),
    catchError((error: unknown) => of({ why: toToolExecutionError(error).message })),
    switchMap((problem: Problem) => {
      site.record.touch(entry);
      if (problem === LEFT || entry.state === 'not_done') return of(undefined);
      if (entry.state === 'shared') return site.record.written(entry).pipe(quietly);
      settle(entry, problem, site);
      return concat(revoked(site, entry, problem === undefined), site.record.written(entry).pipe(quietly)).pipe(
        toArray(),
      );
    }),
  );
};

/** Puts into an entry what became of undoing it, and tells it. */
const settle = (entry: JournalEntry, problem: Exclude<Problem, typeof LEFT>, site: UndoSite): void => {
  const isDone = entry.state === 'done';
  entry.state = problem === undefined ? 'compensated' : 'compensation_failed';
  if (problem === undefined) delete entry.message;
  else entry.message = problem.why;
  if (isDone && problem?.uncertain === true) entry.halfUndone = true;
  tell(site, entry, isDone);
};

/** Between two tries of what the store or a hook did not allow: at first; each is twice as long as the one before. */
const RETRY_MS = 500;
/** Within half a minute. */
const TRIES = 6;

const PASSING: ReadonlySet<string> = new Set(['store_unavailable', 'duplicate_in_flight', 'circuit_open']);

/** Nothing was run, and it may be run later. */
const isPassing = (error: unknown): boolean =>
  isToolExecutionError(error) &&
  !error.uncertain &&
  (error.code === HOOK_FAILED || (PASSING.has(error.kind) && error.classification !== 'permanent'));

/** What cannot be asked or run now is tried again, and then left for whoever comes next: nothing is given up. */
const patiently =
  (site: UndoSite) =>
  (source: Observable<Problem>): Observable<Problem> =>
    source.pipe(
      retry({
        delay: (error: unknown, count) => {
          const { layer } = site;
          if (isOver(site) || count > TRIES || !isPassing(error)) throw error;
          return (layer.runtime.background ?? layer.runtime).after(RETRY_MS * 2 ** (count - 1));
        },
      }),
      catchError((error: unknown) => {
        if (isOver(site) || isPassing(error)) return of(LEFT);
        throw error;
      }),
    );

/** A tool that is not here: a person is told, or it is left for a process that has it. */
const unknownTool = ({ leavesUnknown }: UndoSite, entry: JournalEntry, why: string): Problem => {
  if (leavesUnknown !== true) return { why };
  entry.message = why;
  return LEFT;
};

/** Undoes one call, and emits why that failed. */
const problemOf = (site: UndoSite, entry: JournalEntry): Observable<Problem> =>
  defer(() => {
    if (isOver(site)) return of(LEFT);
    const known = site.toolOf(entry);
    if (typeof known === 'string') return of(unknownTool(site, entry, known));
    return settledDoubt(site, entry, known.guarded).pipe(
      switchMap((unknown): Observable<Problem> => {
        if (isOver(site)) return of(LEFT);
        if (unknown !== undefined) return of({ why: unknown });
        if (entry.state !== 'done') return of(undefined);
        // An alternative may have answered.
        const answered = site.toolOf(entry);
        return typeof answered === 'string' ? of(unknownTool(site, entry, answered)) : undoneBy(site, entry, answered);
      }),
    );
  });

const undoneBy = (
  site: UndoSite,
  entry: JournalEntry,
  { guarded, undoing }: Exclude<ReturnType<UndoSite['toolOf']>, string>,
): Observable<Problem> =>
  // What is known is kept first: the call's own record no longer says it once it is revoked.
  site.record.written(entry).pipe(
    toArray(),
    switchMap(() => letGo(site, entry, undoing !== undefined && undoing !== false)),
    switchMap((standing): Observable<Problem> => {
      // Another process may have the turn by now.
      if (isOver(site)) return of(LEFT);
      if (standing === 'held') return of({ why: 'another call under its key may rely on it' });
      if (standing === 'shared') {
        entry.state = 'shared';
        return of(undefined);
      }
      if (undoing === undefined || undoing === false) return of({ why: `${guarded.tool.name} has no compensate` });
      return undoCall(site, entry, guarded, undoing).pipe(map((outcome) => problemIn(outcome, site)));
    }),
  );

/** @throws ToolExecutionError where nothing was run, and it may be run later */
const problemIn = ({ result, error }: CallOutcome, site: UndoSite): Problem => {
  if (result.error === undefined) return undefined;
  if (isOver(site)) return LEFT;
  if (error !== undefined && result.attempts === 0 && !result.fromCache && isPassing(error)) throw error;
  return { why: result.error.message, uncertain: result.error.uncertain === true };
};

/** Who must act about what stays. */
export const ownerOf = (site: UndoSite, entry: JournalEntry): string => {
  const known = site.toolOf(entry);
  const undoing = typeof known === 'string' ? undefined : known.undoing;
  return undoing === undefined || undoing === false ? 'a person' : undoing.owner;
};

const tell = (site: UndoSite, entry: JournalEntry, isDone: boolean): void => {
  const { id, toolName, state, message, callKey, halfUndone } = entry;
  if (state !== 'compensated' && state !== 'compensation_failed') return;
  site.emit({ type: 'node_compensated', nodeId: id, toolName, state, ...given({ message }) });
  if (state === 'compensated') return;
  const left = { id, toolName, callKey, why: message ?? '', owner: ownerOf(site, entry), ...given({ halfUndone }) };
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
  if (journal.entries.some(isOpen)) return of(undefined);
  journal.state = 'over';
  return record.written().pipe(quietly);
};
