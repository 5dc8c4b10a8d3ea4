import { NEVER, Observable, of } from 'rxjs';
import type { TurnJournal } from '../../contract/fleet/journal.ts';
import type { SimulatedTime } from '../time.ts';
import type { RecordedTurn } from './trace/recording.ts';

/**
 * How long the journal of a fleet took to keep what each node came to, as far as anything waited for it: the nodes that
 * need it, or the end of the turn.
 */
const delaysIn = ({ started, own }: RecordedTurn): Map<string, number> => {
  const begunMs = new Map<string, number>();
  const settledMs = new Map<string, number>();
  let endMs = Infinity;
  for (const event of own) {
    if (event.type === 'node_started') begunMs.set(event.nodeId, event.atMs);
    if (event.type === 'node_settled') settledMs.set(event.nodeId, event.atMs);
    if (event.type === 'settled') endMs = event.atMs;
  }
  const followers = Map.groupBy(
    started.nodes.flatMap(({ id, needs }) => needs.map((need) => ({ need, id }))),
    ({ need }) => need,
  );
  return new Map(
    [...settledMs].map(([id, atMs]) => {
      const waited = (followers.get(id) ?? []).map(
        (follower) => begunMs.get(follower.id) ?? settledMs.get(follower.id),
      );
      return [id, Math.max(0, Math.min(endMs, ...waited.map((time) => time ?? Infinity)) - atMs)];
    }),
  );
};

/** The journal of a turn of a fleet, as slow as the recorded one. What it kept is in no trace; nothing asks for it. */
export const recordedJournal = (turn: RecordedTurn, time: SimulatedTime): TurnJournal => {
  const delays = delaysIn(turn);
  const { turnId, timeoutMs, remainingMs = timeoutMs, worker = '' } = turn.started;
  return {
    turnId,
    submission: turnId,
    epoch: 1,
    remainingMs,
    started: false,
    worker,
    tell: () => undefined,
    settled: () => undefined,
    settle: (nodeId, node) =>
      new Observable((subscriber) => {
        const task = time.at(time.now() + (delays.get(nodeId) ?? 0), 0, () => {
          subscriber.next(node);
          subscriber.complete();
        });
        return () => task.cancel();
      }),
    decided: () => undefined,
    decide: () => of(true),
    holds: () => true,
    owned: () => of(true),
    givenUp: () => of(false),
    standing$: NEVER,
    leave: () => undefined,
    ended$: of(true),
    left$: NEVER,
  };
};
