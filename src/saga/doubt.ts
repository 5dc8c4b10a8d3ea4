import { concatMap, defaultIfEmpty, defer, filter, from, map, of, switchMap, toArray, type Observable } from 'rxjs';
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

/** What was found, and of which tool, where that took effect. */
interface FoundAt {
  readonly found: VerifyReport;
  readonly toolName?: string;
}

/**
 * What the call's own record says, once it says anything; another's success under its key is that one's own, and the
 * entry `shared` then.
 */
const recorded = (site: UndoSite, entry: JournalEntry): Observable<FoundAt | undefined> => {
  const { id, recordKey, callId } = entry;
  if (recordKey === undefined) return of(undefined);
  return settledRecord(site, recordKey).pipe(
    map((reading): FoundAt | undefined => {
      if (reading === undefined) return undefined;
      const {
        state,
        request: { requestId, turn },
        tool,
      } = reading.record;
      if (requestId !== callId) {
        // A turn that moved makes another call of the same node: what there is of an effect is that one's, but where
        // it has done nothing. Then it had no more than the key.
        const later = site.journal.entries.find((other) => other.id === id && other.callId === requestId);
        if (later !== undefined) return later.state === 'not_done' ? undefined : { found: { finding: 'not_done' } };
        // An earlier owner of this very turn has only claimed it, as in `letGo`.
        if (state === 'inflight' && !turn?.startsWith(`${site.journal.submission}/`))
          return { found: unknownSince('another call under its key may have taken effect') };
        if (state === 'done') entry.state = 'shared';
        return undefined;
      }
      if (state !== 'done') return undefined;
      const { result } = replayOf(reading, 'completed', '', {
        requestId: callId,
        toolName: tool,
        durationMs: 0,
        attempts: 0,
        retriedBy: [],
        verified: undefined,
      });
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
    const tools = [guarded, ...guarded.alternatives.map((name) => registry.get(name))].filter(
      (tool): tool is GuardedTool => tool !== undefined && tool.effects !== 'read',
    );
    return recorded(site, entry).pipe(
      filter(() => entry.state !== 'shared' && !site.layer.closed),
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
        if (finding === 'done') {
          entry.toolName = all.find(({ found }) => found.finding === 'done')?.toolName ?? entry.toolName;
          entry.output = output?.value;
        }
        return undefined;
      }),
      defaultIfEmpty(undefined),
    );
  });
