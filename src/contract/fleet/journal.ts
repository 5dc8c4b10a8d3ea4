import type { Observable } from 'rxjs';
import type { ToolErrorKind } from '../error-kind.ts';
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

/** What was decided after a failed attempt of a node's call, so that a turn that moves decides nothing again: JSON. */
export interface JournalledDecision {
  /** The tool whose attempt failed. */
  readonly toolName: string;
  /** Attempts of the call at that tool so far. */
  readonly attempt: number;
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
}

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
  /** The turn's id, as its events carry it. Its calls have the keys `turnId/nodeId`. */
  readonly turnId: string;
  /** How long the turn has left when it is given to this process, in milliseconds; below 0 when its time is over. */
  readonly remainingMs: number;
  /** Whether its `turn_started` has been told already. */
  readonly started: boolean;
  /** Present when another worker had it before. */
  readonly moved?: TurnMove;
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
  /** Asks whether the turn is still this process's: then the claims of those that had it before are given up. */
  owned(): Observable<boolean>;
  /**
   * Emits when the turn is no longer this process's, or is handed over: nothing new starts, and what runs goes on
   * without it while its lease holds.
   */
  readonly left$: Observable<unknown>;
}
