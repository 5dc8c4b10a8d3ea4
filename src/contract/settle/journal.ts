import * as z from 'zod';
import type { CompensationReason } from './compensate.ts';

/**
 * Where a call of a turn stands that may have to be undone. `begun`: it runs, or ended with it unknown whether it took
 * effect. `done`: it took effect. `not_done`: it did not. `compensated`, `compensation_failed`: as a node's state.
 */
export type JournalState = 'begun' | 'done' | 'not_done' | 'compensated' | 'compensation_failed';

/** A call that may have to be undone, as the store keeps it. */
export interface JournalEntry {
  /** The node's id in its plan. */
  id: string;
  /** The tool that answered, or else the one that was asked for. */
  toolName: string;
  /** The call's id. */
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
}

/** What a turn with `onFailure: 'compensate'` did, so that another process can undo it. JSON. */
export interface Journal {
  /** Of this shape. */
  version: 1;
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
  /** Its calls that may have to be undone, in the order in which they began. */
  entries: JournalEntry[];
}

const text = (): z.ZodString => z.string().max(4_096);

/** What is read back from a store is checked: nothing is undone on the word of a damaged record. */
export const journalSchema: z.ZodType<Journal> = z.strictObject({
  version: z.literal(1),
  turnId: text(),
  plan: text().exactOptional(),
  session: text().exactOptional(),
  actor: text().exactOptional(),
  tenant: text().exactOptional(),
  state: z.enum(['running', 'undoing', 'over', 'completed']),
  reason: z.enum(['escalated', 'failed', 'canceled', 'deadline', 'crashed']).exactOptional(),
  entries: z.array(
    z.strictObject({
      id: z.string(),
      toolName: text(),
      callId: text(),
      callKey: text(),
      recordKey: text().exactOptional(),
      input: z.unknown().optional(),
      after: z.array(z.string()),
      own: z.literal(true).exactOptional(),
      state: z.enum(['begun', 'done', 'not_done', 'compensated', 'compensation_failed']),
      output: z.unknown().optional(),
      message: text().exactOptional(),
    }),
  ),
});
