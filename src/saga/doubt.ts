import {
  concatMap,
  defaultIfEmpty,
  defer,
  filter,
  from,
  map,
  of,
  switchMap,
  tap,
  toArray,
  type Observable,
} from 'rxjs';
import type { JournalEntry } from '../contract/settle/journal.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { verification, type Inquirer } from '../call/attempt/verification.ts';
import { replayOf } from '../call/replay.ts';
import { readInput } from '../call/request.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { given } from '../policy/check.ts';
import { foundOf, unknownSince, type VerifyReport } from '../policy/settle/finding.ts';
import { settledRecord } from './standing.ts';
import type { UndoSite } from './undo.ts';

const doubtful = (): ToolExecutionError =>
  new ToolExecutionError('canceled', 'The turn ended while it was not known whether the call took effect', {
    executed: true,
    uncertain: true,
  });

/** What was found, and of which tool. */
interface FoundAt {
  readonly found: VerifyReport;
  readonly toolName: string;
}

/** Another call has the effect: it is not this turn's. */
const SHARED = Symbol('shared');

/** What the call's own record says, once it says anything; another's success under its key is that one's own. */
const recorded = (site: UndoSite, entry: JournalEntry): Observable<FoundAt | typeof SHARED | undefined> => {
  const { id, recordKey, callId, toolName } = entry;
  if (recordKey === undefined) return of(undefined);
  return settledRecord(site, recordKey).pipe(
    map((reading): FoundAt | typeof SHARED | undefined => {
      if (reading === undefined) return undefined;
      const {
        state,
        request: { requestId },
        tool,
      } = reading.record;
      if (requestId !== callId) {
        // A turn that moved makes another call of the same node: what there is of an effect is that one's, but where
        // it has done nothing. Then it had no more than the key.
        const later = site.journal.entries.find((other) => other.id === id && other.callId === requestId);
        if (later !== undefined)
          return later.state === 'not_done' ? undefined : { toolName, found: { finding: 'not_done' } };
        if (state === 'inflight')
          return { toolName, found: unknownSince('another call under its key may have taken effect') };
        return state === 'done' ? SHARED : undefined;
      }
      if (state !== 'done') return undefined;
      const history = { requestId: callId, toolName: tool, durationMs: 0, attempts: 0, retriedBy: [] };
      const { result } = replayOf(reading, 'completed', '', { ...history, verified: undefined });
      return { found: { finding: 'done', output: { value: result.output?.content } }, toolName: result.toolName };
    }),
  );
};

const inquirerOf = (site: UndoSite, { id, callId, callKey }: JournalEntry, toolName: string): Inquirer => {
  const { layer, journal } = site;
  const { session, actor, tenant } = journal;
  return {
    layer,
    runtime: layer.runtime.background ?? layer.runtime,
    callKey,
    caller: { ...given({ session, actor, tenant }), ...site.trace, verifies: callId },
    isOver: () => false,
    tell: ({ finding, durationMs, message }) =>
      site.emit({
        type: 'node_verified',
        nodeId: id,
        toolName,
        finding,
        durationMs,
        ...given({ message }),
      }),
  };
};

const verifiedBy = (site: UndoSite, entry: JournalEntry, guarded: GuardedTool): Observable<FoundAt> => {
  const toolName = guarded.tool.name;
  if (guarded.verify === undefined)
    return of({
      toolName,
      found: unknownSince(`${toolName} has no verify, so it is not known whether it took effect`),
    });
  const { input: own, work } = site.live(entry, toolName);
  const { input, error } = readInput(guarded.tool.input, entry.input);
  if (error !== undefined) return of({ toolName, found: unknownSince(error.message) });
  const doubt = { guarded, input: own === undefined ? input : own.value, error: doubtful(), attempt: 0, work };
  return verification(inquirerOf(site, entry, toolName), doubt, guarded.verify).pipe(
    map((found) => ({ found, toolName })),
  );
};

/**
 * Settles whether a call that the end of its turn, or of its process, left in doubt took effect: by its record, else by
 * asking the tools that it may have called. Changes the entry, and emits why it is still not known.
 * @throws ToolExecutionError `store_unavailable` (as the stream's error)
 */
export const settledDoubt = (
  site: UndoSite,
  entry: JournalEntry,
  guarded: GuardedTool,
): Observable<string | undefined> =>
  defer(() => {
    if (entry.state !== 'begun') return of(undefined);
    const { registry } = site.layer;
    const others = guarded.alternatives.map((name) => registry.get(name)).filter((other) => other !== undefined);
    const tools = [guarded, ...others].filter(({ effects }) => effects !== 'read');
    return recorded(site, entry).pipe(
      tap((kept) => {
        if (kept === SHARED) entry.state = 'shared';
      }),
      filter((kept): kept is FoundAt | undefined => kept !== SHARED && !site.layer.closed),
      switchMap((kept) =>
        kept === undefined
          ? from(tools).pipe(
              concatMap((tool) => verifiedBy(site, entry, tool)),
              toArray(),
            )
          : of([kept]),
      ),
      map((all) => {
        const { finding, output, message } = foundOf(all.map(({ found }) => found));
        if (finding === 'unknown') return message;
        entry.state = finding;
        if (finding !== 'done') return undefined;
        entry.toolName = all.find(({ found }) => found.finding === 'done')?.toolName ?? entry.toolName;
        entry.output = output?.value;
        return undefined;
      }),
      defaultIfEmpty(undefined),
    );
  });
