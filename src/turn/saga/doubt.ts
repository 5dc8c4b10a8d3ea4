import { catchError, concatMap, defer, from, map, of, switchMap, toArray, type Observable } from 'rxjs';
import type { JournalEntry } from '../../contract/settle/journal.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { verification, type Inquirer } from '../../call/attempt/verification.ts';
import { replayOf } from '../../call/replay.ts';
import { readInput } from '../../call/request.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import { ask } from '../../operators/dedupe/ask.ts';
import { given } from '../../policy/check.ts';
import { foundOf, unknownSince, type Found } from '../../policy/settle/finding.ts';
import type { UndoSite } from './undo.ts';

const doubtful = (): ToolExecutionError =>
  new ToolExecutionError('canceled', 'The turn ended while it was not known whether the call took effect', {
    executed: true,
    uncertain: true,
  });

/** What was found, and of which tool. */
interface FoundAt {
  readonly found: Found;
  readonly toolName: string;
}

/** What the call's own record says, where it has one that it has written itself. */
const recorded = ({ layer }: UndoSite, { recordKey, callId }: JournalEntry): Observable<FoundAt | undefined> => {
  if (recordKey === undefined) return of(undefined);
  const { dedupe, runtime } = layer;
  return ask(() => dedupe.store().get(recordKey), dedupe.storeTimeoutMs, runtime.background ?? runtime).pipe(
    map((reading): FoundAt | undefined => {
      if (reading?.record.state !== 'done' || reading.record.request.requestId !== callId) return undefined;
      const history = { requestId: callId, toolName: reading.record.tool, durationMs: 0, attempts: 0, retriedBy: [] };
      const { result } = replayOf(reading, 'completed', '', { ...history, verified: undefined });
      return { found: { finding: 'done', output: { value: result.output?.content } }, toolName: result.toolName };
    }),
    catchError(() => of(undefined)),
  );
};

const inquirerOf = (site: UndoSite, { id, callKey }: JournalEntry, toolName: string): Inquirer => {
  const { layer, journal } = site;
  const { session, actor, tenant } = journal;
  return {
    layer,
    runtime: layer.runtime.background ?? layer.runtime,
    callKey,
    caller: given({ session, actor, tenant }) as Inquirer['caller'],
    isOver: () => false,
    tell: ({ finding, durationMs, message }) =>
      site.emit({
        type: 'node_verified',
        nodeId: id,
        toolName,
        finding,
        durationMs,
        ...(message === undefined ? {} : { message }),
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
  const { input, error } = readInput(guarded.tool.input, entry.input);
  if (error !== undefined) return of({ toolName, found: unknownSince(error.message) });
  const work = site.live(entry)?.work;
  const doubt = { guarded, input: site.live(entry)?.input ?? input, error: doubtful(), attempt: 0, work };
  return verification(inquirerOf(site, entry, toolName), doubt, guarded.verify).pipe(
    map((found) => ({ found, toolName })),
  );
};

/**
 * Settles whether a call that the end of its turn, or of its process, left in doubt took effect: by its record, else by
 * asking the tools that it may have called. Changes the entry, and emits why it is still not known.
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
    );
  });
