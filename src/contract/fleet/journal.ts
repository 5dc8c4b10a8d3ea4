import type { Observable } from 'rxjs';
import type { ToolErrorKind } from '../error-kind.ts';
import type { TraceEvent } from '../event.ts';
import type { NodeResult } from '../turn.ts';

/** How a node settled, as a journal keeps it: JSON. */
export interface JournalledNode {
  /** The node's result, with its output. */
  readonly result: NodeResult;
  /** The kind of its call's failure. */
  readonly failure?: ToolErrorKind;
  /** Its call's tool ran. */
  readonly executed?: boolean;
  /** Its call got the result of an earlier one. */
  readonly replayed?: boolean;
  /** It ran with its default. */
  readonly usedDefault?: boolean;
}

/**
 * What was decided after a failed attempt of a node's call (a retry, or an alternative), so that a turn that moves
 * decides nothing again: JSON.
 */
export interface JournalledDecision {
  /** The tool whose attempt failed. */
  readonly toolName: string;
  /** Attempts of the call at that tool so far; 0 where it was decided to go over to it, as to an alternative. */
  readonly attempt: number;
  /** Attempts of the call at the tools before that one. */
  readonly attemptsBefore?: number;
  /** How long the attempts at that tool had taken in all, in milliseconds. */
  readonly elapsedMs: number;
  /** The chosen delay before the next attempt, in milliseconds. */
  readonly delayMs: number;
  /** How much of that delay is left, in milliseconds; as read from a journal. Absent where it is written. */
  readonly delayLeftMs?: number;
  /** The kind of the failure. */
  readonly kind: ToolErrorKind;
  /** The text of the failure. */
  readonly message: string;
  /** One of the attempts may have taken effect. */
  readonly uncertain?: boolean;
  /** No attempt has reached the tool, so that no budget has counted the call. */
  readonly uncounted?: boolean;
}

/**
 * Whose a turn is, as far as a process that was given it knows. `held`: certainly its own. `silent`: it may be
 * another's by now, since the ledger has said nothing for a while. `taken`: another's.
 */
export type TurnStanding = 'held' | 'silent' | 'taken';

/** From where to where a turn moved, and how long nobody had it. */
export interface TurnMove {
  /** The worker that had it. */
  readonly from: string;
  /** The worker that has it now. */
  readonly to: string;
  /** Milliseconds from the last sign of life of the one to the start of the other, by the clock of their store. */
  readonly afterMs: number;
}

/**
 * Where a turn that outlives its process writes what it comes to, for whoever goes on with it. An engine of
 * `spillway/fleet` gives one to `spillway.turn(plan, { journal })`; nobody else needs it.
 */
export interface TurnJournal {
  /** The turn's id, as its events carry it. */
  readonly turnId: string;
  /**
   * The submission that the turn came with, by which a turn is told from a later one of the same id. Its calls have the
   * keys `turnId/nodeId/submission`.
   */
  readonly submission: string;
  /** Which owner of the turn this process is: it grows each time that the turn is given to one. */
  readonly epoch: number;
  /** How long the turn has left when it is given to this process, in milliseconds; below 0 when its time is over. */
  readonly remainingMs: number;
  /** Whether its `turn_started` has been told already. */
  readonly started: boolean;
  /** The worker that has the turn now, by its name in the trace. */
  readonly worker?: string;
  /** Present when another worker had it before. */
  readonly moved?: TurnMove;
  /** Takes each event of the turn, as others may see it, before whoever runs the turn gets it. */
  tell(event: TraceEvent): void;
  /** What a node came to before the turn moved; such a node is not run and not told again. */
  settled(nodeId: string): JournalledNode | undefined;
  /**
   * Keeps what a node came to; emits that as whoever goes on with the turn would read it, once it is durable, and never
   * where the turn is no longer this process's.
   */
  settle(nodeId: string, node: JournalledNode): Observable<JournalledNode>;
  /** The last decision about a node that was under way when the turn moved. */
  decided(nodeId: string): JournalledDecision | undefined;
  /** Keeps a decision before it is acted on; emits once that is durable. */
  decide(nodeId: string, decision: JournalledDecision): Observable<unknown>;
  /** Whether the turn certainly is this process's now: without that no attempt begins. */
  holds(): boolean;
  /** Asks whether the turn is still this process's; emits once that is certain. */
  owned(): Observable<boolean>;
  /**
   * Whether a claim counts no more, since it is of an earlier owner of this very turn, and the turn is still this
   * process's. Emits not before that owner has certainly been able to learn of it, and to stop.
   *
   * @param claimant the `turn` of the claim's request
   */
  givenUp(claimant: string): Observable<boolean>;
  /**
   * How the turn stands, from now on, also after it was left: with `taken` everything that runs of it is aborted, with
   * `silent` what another would run again.
   */
  readonly standing$: Observable<TurnStanding>;
  /** Gives the turn back to its engine, since something of it had to be stopped. */
  leave(): void;
  /**
   * Emits once the turn's end is kept, and never where another process has the turn. What undoing it needed is
   * forgotten then and not before: whoever goes on with a turn that has not ended must know what was undone.
   */
  readonly ended$: Observable<unknown>;
  /**
   * Emits when the turn is no longer this process's, or is handed over: nothing new starts, and what runs goes on
   * without it until another has the turn.
   */
  readonly left$: Observable<unknown>;
}
