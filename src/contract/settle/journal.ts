import type { CompensationReason } from './compensate.ts';

/**
 * Where a call of a turn stands that may have to be undone. `begun`: it runs, or ended with it unknown whether it took
 * effect. `done`: it took effect. `not_done`: it did not. `shared`: it took effect, and others rely on it: it is not
 * this turn's to undo. `compensated`, `compensation_failed`: as a node's state.
 */
export type JournalState = 'begun' | 'done' | 'not_done' | 'shared' | 'compensated' | 'compensation_failed';

/** A call that may have to be undone, as the store keeps it. */
export interface JournalEntry {
  /** The node's id in its plan. */
  id: string;
  /** The tool that answered, or else the one that was asked for. */
  toolName: string;
  /** The id of the call that made the effect: another turn's, where this one got its result. */
  callId: string;
  /** What the tool had as `callKey`. */
  callKey: string;
  /** What the store was asked with for the call's own record, where it has one. */
  recordKey?: string;
  /** The tool's input, before its schema. */
  input?: unknown;
  /** The ids of the calls before it that it builds on: it is undone before them. */
  after: string[];
  /** Its node has an undoing of its own, which only its plan knows. */
  own?: true;
  /** Where it stands. */
  state: JournalState;
  /** What the call gave, where that is JSON and not too long. */
  output?: unknown;
  /** Why it could not be undone, or what else there is to say. */
  message?: string;
  /** With `compensation_failed`: it was certainly done, and the undoing itself may have taken effect. */
  halfUndone?: true;
}

/** What a turn with `onFailure: 'compensate'` did, so that another process can undo it. JSON. */
export interface Journal {
  /** Of this shape. */
  version: 2;
  /** Which process wrote it last, so that it knows its own writing when an answer of the store was lost. */
  writer: string;
  /** By which the records of calls name this turn as one that relies on them; no other turn has it. */
  owner: string;
  /** The turn. */
  turnId: string;
  /** The plan's name, where it has one. */
  plan?: string;
  /** Whose turn it is. */
  session?: string;
  /** The user or service. */
  actor?: string;
  /** The tenant. */
  tenant?: string;
  /**
   * `running`: not settled. `undoing`: it failed, and is being undone. `over`: there is nothing more to undo.
   * `completed`: it did not fail. The last two are there until somebody has been told.
   */
  state: 'running' | 'undoing' | 'over' | 'completed';
  /** Why it is undone. */
  reason?: CompensationReason;
  /**
   * The submission of a turn that an engine has, by which it is told from a later one of the same id. The engine gives
   * it to the next process: that one goes on with it, and `resume()` leaves it.
   */
  submission?: string;
  /** How many further records hold its entries after the first ones, which are in its own. */
  pages: number;
  /** Its calls that may have to be undone, in the order in which they began. */
  entries: JournalEntry[];
}

/** A further record of a journal. */
export interface JournalPage {
  /** Which process wrote it last. */
  writer: string;
  /** The entries that follow on those of the record before it. */
  entries: JournalEntry[];
}
