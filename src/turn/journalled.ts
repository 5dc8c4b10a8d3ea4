import { defer, map, mergeMap, of, type Observable } from 'rxjs';
import type { JournalledNode } from '../contract/fleet/journal.ts';
import type { NodeResult } from '../contract/turn.ts';
import { given } from '../policy/check.ts';
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
        const entry = entryOf(turn, settled);
        turn.unjournalled.set(index, restored(turn, index, entry));
        return journal.settle(id, entry).pipe(
          map((kept) => {
            turn.unjournalled.delete(index);
            return restored(turn, index, kept);
          }),
        );
      }),
    );
  });

/** What the journal has of the nodes that are not among those found: the turn's end came before they were asked for. */
export const journalledBefore = (turn: TurnContext, found: ReadonlyArray<NodeResult | undefined>): SettledNode[] =>
  turn.plan.nodes.flatMap(({ id }, index) => {
    const known = found[index] === undefined ? turn.journal?.settled(id) : undefined;
    return known === undefined ? [] : [restored(turn, index, known)];
  });

/** How a node stands that does not run here: an earlier worker may have begun it, once what it needs was journalled. */
export const unbegun = ({ journal, plan }: TurnContext, index: number): string =>
  journal?.moved !== undefined && plan.needs[index]?.every((need) => journal.settled(nodeAt(plan, need).id))
    ? 'It may have been running elsewhere'
    : 'It had not started';

/** A result whose words tell no secret: everybody who attaches to the turn reads them. */
const shown = ({ layer }: TurnContext, node: NodeResult): NodeResult => {
  const { text } = layer.trace.redactor;
  const { reason, result } = node;
  const error = result?.error;
  return given({
    ...node,
    reason: reason === undefined ? undefined : text(reason),
    result: error === undefined ? result : { ...result, error: { ...error, message: text(error.message) } },
  }) as NodeResult;
};

const entryOf = (turn: TurnContext, { index, result, failure, executed, replayed }: SettledNode): JournalledNode =>
  given({
    result: shown(turn, result),
    failure,
    executed: executed === true ? true : undefined,
    replayed: replayed === true ? true : undefined,
    usedDefault: turn.usedDefault[index] === true ? true : undefined,
  });

const restored = (
  turn: TurnContext,
  index: number,
  { result, failure, executed = false, replayed = false, usedDefault = false }: JournalledNode,
): SettledNode => {
  turn.usedDefault[index] = usedDefault;
  return { index, result, failure, executed, replayed };
};
