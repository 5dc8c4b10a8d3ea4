import {
  EMPTY,
  catchError,
  concat,
  defer,
  filter,
  ignoreElements,
  map,
  merge,
  of,
  switchMap,
  take,
  tap,
  type Observable,
} from 'rxjs';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { JournalEntry } from '../contract/settle/journal.ts';
import type { AnyTool, ToolContext } from '../contract/tool.ts';
import type { CallContext, CallSite } from '../call/context.ts';
import { keyOf } from '../call/idempotency.ts';
import type { MadeCall } from '../call/pipe.ts';
import { readInput, type Call } from '../call/request.ts';
import type { CallOutcome } from '../call/result.ts';
import { UNDO_KEEP_MS, undoPolicy, type Undoing } from '../layer/settle/compensation.ts';
import type { GuardedTool } from '../layer/registry.ts';
import type { Layer } from '../layer/services.ts';
import { ask } from '../operators/dedupe/ask.ts';
import { lastValue } from '../operators/work/last-value.ts';
import { fromOutput } from '../operators/work/output.ts';
import { given } from '../policy/check.ts';
import { sha256 } from '../policy/key/sha256.ts';
import { findingOf } from '../policy/settle/finding.ts';
import type { UndoSite } from './undo.ts';

/** The longest key that a call can have. */
const KEY_MAX = 512;
const NAME_MAX = 256;

/** The key of an undoing: the same in every process. */
const undoKeyOf = ({ callKey }: JournalEntry): string =>
  callKey.length + 5 <= KEY_MAX ? `${callKey}/undo` : `${sha256(callKey)}/undo`;

/** The name of a tool's undoing, in events and in hooks. */
const undoNameOf = (name: string): string => (name.length + 5 <= NAME_MAX ? `${name}/undo` : name);

/** The tool that undoes one call by a function: made for it, since what is undone is that call's own. */
const undoTool = (site: UndoSite, entry: JournalEntry, guarded: GuardedTool, undoing: Undoing): AnyTool => {
  const { tool, timeoutMs } = guarded;
  const live = site.live(entry, tool.name);
  const input = live.input === undefined ? readInput(tool.input, entry.input).input : live.input.value;
  const output = live.output === undefined ? entry.output : live.output.value;
  const undoKey = undoKeyOf(entry);
  const { callKey } = entry;
  const { reason } = site;
  return {
    name: undoNameOf(tool.name),
    policy: undoPolicy(undoing, { timeoutMs, policy: tool.policy ?? {} }),
    execute: (_: unknown, { attempt, signal, fence }: ToolContext) =>
      undoing.run?.(output as never, {
        input: input as never,
        callKey,
        undoKey,
        reason,
        attempt,
        signal,
        ...given({ fence }),
      }),
    // What is no longer there is undone. What is there may be, too: many ledgers keep both.
    ...(tool.verify === undefined
      ? {}
      : {
          verify: (_: unknown, context) =>
            fromOutput(tool.verify?.(input as never, { ...context, callKey })).pipe(
              lastValue,
              map((answer) => (findingOf(answer).finding === 'not_done' ? ({ done: true } as const) : 'unknown')),
            ),
        }),
  };
};

/** What the undoing is asked with: for a function only what is the same in every process. */
const inputOf = (site: UndoSite, entry: JournalEntry, { call }: Undoing): unknown => {
  const { callKey, input, output } = entry;
  return call === undefined ? { callKey } : call.input({ output, input, callKey, reason: site.reason });
};

/** Another tool that undoes, as this call has it: what it did is remembered for as long as a journal can be. */
const lasting = (guarded: GuardedTool): GuardedTool => {
  const { dedupe } = guarded;
  return { ...guarded, dedupe: { ...dedupe, doneTtlMs: Math.max(dedupe.doneTtlMs, UNDO_KEEP_MS) } };
};

/** Undoing twice by another tool must not be, unless somebody says that it does no harm. */
const hintsOf = ({ policy }: Undoing, { enforcesKey }: GuardedTool): Pick<Call, 'hints'> => {
  if (policy.enforcesKey === true) return { hints: { expectedRetrySafe: true } };
  return enforcesKey && policy.enforcesKey === undefined ? {} : { hints: { safetyCritical: true } };
};

/** What the undoing of one call has to be known by: also where two calls have had the same key. */
const namespaceOf = ({ toolName, callId }: JournalEntry): string => `undo:${toolName}:${callId}`;

/** The tool that undoes a call: made for it, or another one; `undefined` where there is no such tool. */
const toolFor = (
  site: UndoSite,
  entry: JournalEntry,
  guarded: GuardedTool,
  undoing: Undoing,
): GuardedTool | undefined => {
  const { registry } = site.layer;
  if (undoing.run !== undefined) return registry.of(undoTool(site, entry, guarded, undoing));
  const other = registry.get(undoing.call?.tool ?? '');
  return other === undefined ? undefined : lasting(other);
};

const callOf = (site: UndoSite, entry: JournalEntry, undoing: Undoing, used: GuardedTool | undefined): Call => {
  const { session, actor, tenant } = site.journal;
  return {
    callId: site.layer.runtime.id(),
    toolName: used?.tool.name ?? undoing.call?.tool ?? '',
    input: inputOf(site, entry, undoing),
    nodeId: entry.id,
    undoes: entry.callId,
    required: true,
    unlimited: true,
    dedupeMode: 'enforced',
    deadlineMs: Infinity,
    toolNamespace: namespaceOf(entry),
    idempotencyKey: undoKeyOf(entry),
    ...(undoing.run === undefined && used !== undefined ? hintsOf(undoing, used) : {}),
    ...given({ session, actor, tenant }),
    ...site.trace,
  };
};

/**
 * Undoes one call, as a guarded call of its own under the key `callKey/undo`: once, however many processes try.
 * @throws what a template of its input throws, for an output that lacks a part
 */
export const undoCall = (
  site: UndoSite,
  entry: JournalEntry,
  guarded: GuardedTool,
  undoing: Undoing,
): Observable<CallOutcome> =>
  defer(() => {
    const { layer, journal, report, engine } = site;
    const used = toolFor(site, entry, guarded, undoing);
    const call = callOf(site, entry, undoing, used);
    const callSite: CallSite = {
      runtime: layer.runtime.background ?? layer.runtime,
      turnId: journal.turnId,
      deadlineMs: Infinity,
      unbudgeted: true,
      ...given({ report, journal: engine && ofUndoings(engine) }),
    };
    const once = (): MadeCall => layer.makeCall(callSite, { ...call, callId: layer.runtime.id() }, used);
    const ended = ({ context, outcome$ }: MadeCall): Observable<CallOutcome> =>
      outcome$.pipe(stoppedBy(engine, context));
    const first = once();
    return ended(first).pipe(
      switchMap((outcome) => {
        const { context } = first;
        const key = used === undefined || !isLeftOver(context, used, outcome) ? undefined : keyOf(context, used)?.key;
        if (key === undefined) return of(outcome);
        return concat(forgotten(layer, key), ended(once()));
      }),
    );
  });

/** An engine's hold of a turn, for its undoings: what is decided of one is not what was decided of its node. */
const ofUndoings = (engine: TurnJournal): TurnJournal => ({
  ...engine,
  decided: (nodeId) => engine.decided(`${nodeId}/undo`),
  decide: (nodeId, decision) => engine.decide(`${nodeId}/undo`, decision),
});

/** Stops an undoing once another process has the turn: that one undoes it. */
const stoppedBy =
  (engine: TurnJournal | undefined, context: CallContext) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    if (engine === undefined) return source;
    const taken$ = engine.standing$.pipe(
      filter((standing) => standing === 'taken'),
      tap(() => context.cancel()),
      ignoreElements(),
    );
    return merge(source, taken$).pipe(take(1));
  };

/**
 * Whether another process was closed while it undid the same, and that may be done again: its resource checks the key.
 */
const isLeftOver = ({ attempts, layer }: CallContext, { enforcesKey }: GuardedTool, { error }: CallOutcome): boolean =>
  enforcesKey && error?.kind === 'canceled' && attempts === 0 && !layer.closed;

const forgotten = ({ dedupe, runtime }: Layer, key: string): Observable<never> =>
  ask(() => dedupe.store().get(key), dedupe.storeTimeoutMs, runtime.background ?? runtime).pipe(
    filter((reading) => reading?.record.state === 'cancelled'),
    switchMap((reading) =>
      ask(
        () => dedupe.store().delete(key, reading?.record.version),
        dedupe.storeTimeoutMs,
        runtime.background ?? runtime,
      ),
    ),
    catchError(() => EMPTY),
    ignoreElements(),
  );
