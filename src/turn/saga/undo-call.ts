import {
  EMPTY,
  catchError,
  concat,
  defer,
  filter,
  ignoreElements,
  last,
  map,
  of,
  switchMap,
  type Observable,
} from 'rxjs';
import type { JournalEntry } from '../../contract/settle/journal.ts';
import type { DedupeOutcome } from '../../contract/store.ts';
import type { AnyTool, ToolContext } from '../../contract/tool.ts';
import { CallContext, type CallSite } from '../../call/context.ts';
import { keyOf } from '../../call/idempotency.ts';
import { callOutcome } from '../../call/pipe.ts';
import { readInput, type Call } from '../../call/request.ts';
import type { CallOutcome } from '../../call/result.ts';
import { undoPolicy, type Undoing } from '../../layer/settle/compensation.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { Layer } from '../../layer/services.ts';
import { ask } from '../../operators/dedupe/ask.ts';
import { fromOutput } from '../../operators/work/output.ts';
import { given } from '../../policy/check.ts';
import { sha256 } from '../../policy/key/sha256.ts';
import { findingOf } from '../../policy/settle/finding.ts';
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
  const live = site.live(entry);
  const input = live?.input ?? readInput(tool.input, entry.input).input;
  const output = live?.output === undefined ? entry.output : live.output.value;
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
        ...(fence === undefined ? {} : { fence }),
      }),
    // What is no longer there is undone. What is there may be, too: many ledgers keep both.
    ...(tool.verify === undefined
      ? {}
      : {
          verify: (_: unknown, context) =>
            fromOutput(tool.verify?.(input as never, { ...context, callKey })).pipe(
              last(null, undefined),
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
    const { layer, journal, report } = site;
    const { session, actor, tenant, turnId } = journal;
    const made = undoing.run === undefined ? undefined : layer.registry.of(undoTool(site, entry, guarded, undoing));
    const call: Call = {
      callId: layer.runtime.id(),
      toolName: made?.tool.name ?? undoing.call?.tool ?? '',
      input: inputOf(site, entry, undoing),
      nodeId: entry.id,
      required: true,
      dedupeMode: 'enforced',
      deadlineMs: Infinity,
      // Two tools may have been called under one key.
      toolNamespace: `undo:${entry.toolName}`,
      idempotencyKey: undoKeyOf(entry),
      ...(given({ session, actor, tenant }) as Pick<Call, 'session' | 'actor' | 'tenant'>),
    };
    const callSite: CallSite = {
      runtime: layer.runtime.background ?? layer.runtime,
      turnId,
      deadlineMs: Infinity,
      ...(report === undefined ? {} : { report }),
    };
    const used = made ?? layer.registry.get(call.toolName);
    const once = (): CallContext => new CallContext(layer, callSite, { ...call, callId: layer.runtime.id() });
    const first = once();
    return callOutcome(first, made).pipe(
      switchMap((outcome) => {
        const key = used === undefined || !isLeftOver(first, used, outcome) ? undefined : keyOf(first, used)?.key;
        if (key === undefined) return of(outcome);
        return concat(forgotten(layer, key), callOutcome(once(), made));
      }),
    );
  });

/**
 * Whether another process was closed while it undid the same, and that may be done again: its resource checks the key.
 */
const isLeftOver = ({ attempts, layer }: CallContext, { enforcesKey }: GuardedTool, { error }: CallOutcome): boolean =>
  enforcesKey && error?.kind === 'canceled' && attempts === 0 && !layer.closed;

const forgotten = ({ dedupe, runtime }: Layer, key: string): Observable<never> =>
  ask(() => dedupe.store().delete(key), dedupe.storeTimeoutMs, runtime.background ?? runtime).pipe(
    catchError(() => EMPTY),
    ignoreElements(),
  );

const UNDONE = 'What was done under this idempotency key was undone; use a new key to do it again';
const IN_DOUBT =
  'What was done under this idempotency key is being undone, or could not be; look at its turn, and use a new key';

/**
 * Puts into a call's own record that it no longer stands, so that nobody gets its result again. Completes also where
 * that cannot be: the undoing goes on.
 */
export const revoked = (
  { layer, journal }: UndoSite,
  { recordKey, callId }: JournalEntry,
  isUndone: boolean,
): Observable<never> => {
  if (recordKey === undefined) return EMPTY;
  const { dedupe, runtime } = layer;
  const timer = runtime.background ?? runtime;
  const message = isUndone ? UNDONE : `${IN_DOUBT} (${journal.turnId})`;
  const failure = { code: 'conflict', message, terminal: true, shouldRetriable: false } as const;
  return ask(() => dedupe.store().get(recordKey), dedupe.storeTimeoutMs, timer).pipe(
    filter((reading) => reading !== undefined),
    filter(({ record }) => record.request.requestId === callId && record.state !== 'inflight'),
    switchMap(({ record }) => {
      const error = isUndone ? failure : { ...failure, uncertain: true as const };
      const outcome: DedupeOutcome = { state: 'failed', ttlMs: record.ttlMs, error };
      return ask(() => dedupe.store().compareAndSet(recordKey, record.version, outcome), dedupe.storeTimeoutMs, timer);
    }),
    catchError(() => EMPTY),
    ignoreElements(),
  );
};
