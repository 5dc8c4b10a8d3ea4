import type { Observable } from 'rxjs';
import type { WorkerReport } from '../contract/fleet/port.ts';

/** A turn as it is handed over. */
export interface LedgerEntry {
  readonly turnId: string;
  /** Its plan, and whose it is, as JSON text. */
  readonly record: string;
  /** By which it is known whether two plans are one. */
  readonly digest: string;
  readonly tenant: string;
  readonly timeoutMs: number;
  /** Of this very submission, so that one that is sent again is known. */
  readonly submission: string;
}

/** What became of a submission. */
export type Entered =
  | {
      readonly state: 'accepted' | 'known';
      readonly isSettled: boolean;
      readonly deadlineAtMs: number;
      /** How many unsettled turns its tenant has, this one included. */
      readonly backlog: number;
    }
  | { readonly state: 'conflict' }
  | { readonly state: 'full'; readonly open: number };

/** A turn that a worker has from now on, and what it came to before. */
export interface Begun {
  readonly state: 'begun';
  /** Grows each time that the turn is begun: what an earlier owner writes is refused. */
  readonly epoch: number;
  readonly nowMs: number;
  readonly deadlineAtMs: number;
  readonly record: string;
  /** Events that were told so far. */
  readonly seq: number;
  readonly isCancelled: boolean;
  /** Who had it before, and when there was a last sign of life of it. */
  readonly before?: { readonly worker: string; readonly aliveAtMs: number };
  /** By node: its journal entry, as JSON text. */
  readonly nodes: ReadonlyMap<string, string>;
  /** By node: the last decision about it, as JSON text, and when it was kept. */
  readonly decisions: ReadonlyMap<string, { readonly decision: string; readonly atMs: number }>;
}

/** What a worker gets when it asks for a turn. */
export type Taking =
  | Begun
  | { readonly state: 'settled' | 'unknown' }
  | {
      /** Tools of another version began it. */
      readonly state: 'other_version';
      readonly version: string;
      /** Milliseconds since a worker of that version was heard of. */
      readonly silentMs: number;
      readonly deadlineAtMs: number;
      readonly nowMs: number;
    };

/** What is written of a turn at once, all of it or nothing. */
export interface LedgerBatch {
  /** Events as JSON text, in order. */
  readonly events: readonly string[];
  /** The place of the first of them among all events of the turn, from 1. */
  readonly firstSeq: number;
  readonly nodes: ReadonlyArray<readonly [nodeId: string, entry: string]>;
  readonly decisions: ReadonlyArray<readonly [nodeId: string, decision: string]>;
  /** The turn ends with this batch. */
  readonly settles: boolean;
  readonly tenant: string;
}

/** Events as they are read. */
export interface LedgerPage {
  readonly isKnown: boolean;
  readonly isSettled: boolean;
  readonly events: ReadonlyArray<{ readonly seq: number; readonly event: string }>;
}

/** How the turns stand. */
export interface LedgerReport {
  readonly waiting: number;
  readonly running: number;
  readonly lagMs: number;
  readonly overdue: ReadonlyArray<{ readonly turnId: string; readonly overdueMs: number }>;
  readonly workers: readonly WorkerReport[];
}

/**
 * What outlives the processes of a fleet: plans, journals, events, and who has which turn. Each operation is atomic;
 * a failure to answer rejects with `store_unavailable`, and asking again is harmless.
 */
export interface TurnLedger {
  /** Takes a turn, unless there are `maxOpen` that have not settled. */
  enter(entry: LedgerEntry, maxOpen: number): Promise<Entered>;
  /** Gives a turn to a worker. `evenSo`: though tools of another version began it. */
  begin(turnId: string, worker: string, version: string, evenSo: boolean): Promise<Taking>;
  /** Writes for the owner of this epoch; `false` when another has the turn by now. */
  write(turnId: string, epoch: number, batch: LedgerBatch): Promise<boolean>;
  /** Whether the turn is still of this epoch. */
  owns(turnId: string, epoch: number): Promise<boolean>;
  /** Events after a place, at most `count`. */
  read(turnId: string, afterSeq: number, count: number): Promise<LedgerPage>;
  /** Emits when there may be something new of a turn. Never errors. */
  changes(turnId: string): Observable<unknown>;
  /** Notes that a turn is to be cancelled; `false` when it has settled, or is not there. */
  cancel(turnId: string): Promise<boolean>;
  /** Emits when a turn may have been cancelled. Never errors. */
  readonly orders$: Observable<unknown>;
  /** A worker's sign of life; gives the turns that are to be cancelled and have not settled. */
  beat(worker: string, version: string, turns: number): Promise<readonly string[]>;
  /** A worker has ended. */
  leave(worker: string): Promise<void>;
  report(): Promise<LedgerReport>;
  close(): void;
}
