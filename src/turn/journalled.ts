import { defer, map, mergeMap, of, type Observable } from 'rxjs';
import type { JournalledNode } from '../contract/fleet/journal.ts';
import type { TurnContext } from './context.ts';
import type { SettledNode } from './harvest.ts';
import { nodeOutcome, type ReadyNode } from './node.ts';
import { nodeAt } from './plan-node.ts';

/**
 * A node of a turn that outlives its process: as its journal has it, or run and then journalled, before anything
 * follows from it.
 *
 * ```
 * node, in the first process    ---(s|)
 * journal                          --k      kept: only now do its dependents start
 * dependents                         -----
 * node, in the next process     (s|)        nothing is run, and nothing told again
 * ```
 */
export const journalledOutcome = (turn: TurnContext, ready: ReadyNode): Observable<SettledNode> =>
  defer(() => {
    const { journal, plan } = turn;
    if (journal === undefined) return nodeOutcome(turn, ready);
    const { index } = ready;
    const { id } = nodeAt(plan, index);
    const known = journal.settled(id);
    if (known !== undefined) return of(restored(turn, index, known));
    return nodeOutcome(turn, ready).pipe(
      mergeMap((settled) => {
        turn.unjournalled.set(index, settled);
        return journal.settle(id, entryOf(turn, settled)).pipe(
          map((kept) => {
            turn.unjournalled.delete(index);
            return restored(turn, index, kept);
          }),
        );
      }),
    );
  });

const entryOf = (
  { usedDefault }: TurnContext,
  { index, result, failure, executed, replayed }: SettledNode,
): JournalledNode => ({
  result,
  ...(failure === undefined ? {} : { failure }),
  ...(executed === true ? { executed } : {}),
  ...(replayed === true ? { replayed } : {}),
  ...(usedDefault[index] === true ? { usedDefault: true } : {}),
});

const restored = (
  turn: TurnContext,
  index: number,
  { result, failure, executed = false, replayed = false, usedDefault = false }: JournalledNode,
): SettledNode => {
  turn.usedDefault[index] = usedDefault;
  return { index, result, failure, executed, replayed };
};
