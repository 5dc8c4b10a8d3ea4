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
      /** Its place among the turns of all tenants, who take turns: lower ones come first. */
      readonly place: number;
      /** The submission that it came with first. */
      readonly submission: string;
    }
  | { readonly state: 'conflict' }
  | { readonly state: 'full'; readonly open: number };

/** A turn that a worker has from now on, and what it came to before. */
export interface Begun {
  readonly state: 'begun';
  /** Grows each time that the turn is begun: what an earlier owner writes is refused. */
  readonly epoch: number;
  /** How many owners it has had since it last came further, this one included, which did not give it back. */
  readonly tries: number;
  /** Of the turn's submission, as it was entered. */
  readonly submission: string;
  readonly nowMs: number;
  readonly deadlineAtMs: number;
  readonly record: string;
  /** Events that were told so far. */
  readonly seq: number;
  readonly isCancelled: boolean;
  /** Who had it before, and when that one was told for the last time that it has it. */
  readonly before?: { readonly worker: string; readonly aliveAtMs: number };
  /** By epoch: when an earlier owner was told for the last time that it has the turn. */
  readonly lastWords: ReadonlyMap<number, number>;
  /** By node: its journal entry, as JSON text. */
  readonly nodes: ReadonlyMap<string, string>;
  /** By node: the last decision about it, as JSON text, and when it was kept. */
  readonly decisions: ReadonlyMap<string, { readonly decision: string; readonly atMs: number }>;
  /** What was told of the turn's end, as it was written. */
  readonly told: ReadonlyMap<string, string>;
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
  /** What its events tell of the turn's end, and how: kept, so that whoever goes on tells it no more. */
  readonly told: ReadonlyArray<readonly [what: string, how: string]>;
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

/** A turn that a worker takes for its own. */
export interface HeldTurn {
  readonly turnId: string;
  readonly epoch: number;
  /** It undoes what it did, which may go on behind its deadline: it is overdue only once its owner is silent. */
  readonly undoes: boolean;
}

/** Whether it is its own: `cancelled` is, too, and is to be cancelled. */
export type HeldState = 'held' | 'cancelled' | 'taken';

/**
 * What outlives the processes of a fleet: plans, journals, events, and who has which turn. Each operation is atomic;
 * a failure to answer rejects with `store_unavailable`, and asking again is harmless.
 */
export interface TurnLedger {
  /** Takes a turn, unless there are `maxOpen` that have not settled. */
  enter(entry: LedgerEntry, maxOpen: number): Promise<Entered>;
  /**
   * Gives a turn to a worker.
   * @param evenSo though tools of another version began it
   * @param once asked for again with the same, it is the same beginning: no other owner, and no other try
   */
  begin(turnId: string, worker: string, version: string, evenSo: boolean, once: string): Promise<Taking>;
  /** Writes for the owner of this epoch; `false` when another has the turn by now. */
  write(turnId: string, epoch: number, batch: LedgerBatch): Promise<boolean>;
  /** Whether the turn is still of this epoch; if so, that is a sign of life of its owner. */
  owns(turnId: string, epoch: number): Promise<boolean>;
  /** The owner of this epoch gives the turn back of its own accord. */
  yields(turnId: string, epoch: number): Promise<void>;
  /** Events after a place, at most `count`. */
  read(turnId: string, afterSeq: number, count: number): Promise<LedgerPage>;
  /** Emits when there may be something new of a turn. Never errors. */
  changes(turnId: string): Observable<unknown>;
  /** Notes that a turn is to be cancelled; `false` when it has settled, or is not there. */
  cancel(turnId: string): Promise<boolean>;
  /** Emits when a turn may have been cancelled. Never errors. */
  readonly orders$: Observable<unknown>;
  /** A worker's sign of life, of all turns that it has; gives how each of these stands. */
  beat(worker: string, version: string, turns: number, held: readonly HeldTurn[]): Promise<readonly HeldState[]>;
  /** A worker has ended. */
  leave(worker: string): Promise<void>;
  report(): Promise<LedgerReport>;
  close(): void;
}
