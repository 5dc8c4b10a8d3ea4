import { Subject, filter, type Observable } from 'rxjs';
import type {
  Begun,
  HeldState,
  HeldTurn,
  LedgerBatch,
  LedgerEntry,
  LedgerReport,
  Taking,
  TurnLedger,
} from '../../../src/fleet/ledger.ts';

const OVERDUE_MS = 10_000;

interface Turn {
  readonly entry: LedgerEntry;
  readonly deadlineAtMs: number;
  /** From when on it counts as overdue. */
  dueMs: number;
  epoch: number;
  tries: number;
  version: string | undefined;
  worker: string | undefined;
  atMs: number;
  /** Which beginning its epoch is, and who had it before that. */
  once: string | undefined;
  before: Begun['before'];
  isSettled: boolean;
  isCancelled: boolean;
  readonly events: string[];
  readonly lastWords: Map<number, number>;
  readonly nodes: Map<string, string>;
  readonly decisions: Map<string, { readonly decision: string; readonly atMs: number }>;
  readonly told: Map<string, string>;
}

/** What a ledger is, written down once more without Redis: each operation at one instant. */
export class LedgerModel implements TurnLedger {
  readonly turns: Map<string, Turn> = new Map();
  readonly #changes$ = new Subject<string>();
  readonly #orders$ = new Subject<string>();
  readonly #now: () => number;
  readonly orders$: Observable<unknown> = this.#orders$.asObservable();
  /** Operations so far, by name. */
  readonly asked: Map<string, number> = new Map();

  constructor(now: () => number) {
    this.#now = now;
  }

  #count(name: string): void {
    this.asked.set(name, (this.asked.get(name) ?? 0) + 1);
  }

  async enter(entry: LedgerEntry, maxOpen: number): ReturnType<TurnLedger['enter']> {
    this.#count('enter');
    const known = this.turns.get(entry.turnId);
    if (known !== undefined) {
      if (known.entry.digest !== entry.digest) return { state: 'conflict' };
      const state = known.entry.submission === entry.submission ? 'accepted' : 'known';
      const { submission } = known.entry;
      return { state, isSettled: known.isSettled, deadlineAtMs: known.deadlineAtMs, place: 1, submission };
    }
    const open = [...this.turns.values()].filter(({ isSettled }) => !isSettled).length;
    if (open >= maxOpen) return { state: 'full', open };
    const deadlineAtMs = this.#now() + entry.timeoutMs;
    this.turns.set(entry.turnId, {
      entry,
      deadlineAtMs,
      dueMs: deadlineAtMs,
      epoch: 0,
      tries: 0,
      version: undefined,
      worker: undefined,
      atMs: this.#now(),
      once: undefined,
      before: undefined,
      isSettled: false,
      isCancelled: false,
      events: [],
      lastWords: new Map(),
      nodes: new Map(),
      decisions: new Map(),
      told: new Map(),
    });
    return { state: 'accepted', isSettled: false, deadlineAtMs, place: 1, submission: entry.submission };
  }

  async begin(turnId: string, worker: string, version: string, evenSo: boolean, once: string): Promise<Taking> {
    this.#count('begin');
    const turn = this.turns.get(turnId);
    if (turn === undefined) return { state: 'unknown' };
    if (turn.isSettled) return { state: 'settled' };
    const nowMs = this.#now();
    if (turn.version !== undefined && turn.version !== version && !evenSo)
      return { state: 'other_version', version: turn.version, silentMs: 0, deadlineAtMs: turn.deadlineAtMs, nowMs };
    if (turn.once !== once) {
      turn.before = turn.worker === undefined ? undefined : { worker: turn.worker, aliveAtMs: turn.atMs };
      turn.lastWords.set(turn.epoch, turn.atMs);
      Object.assign(turn, { epoch: turn.epoch + 1, tries: turn.tries + 1, worker, once });
      if (!evenSo) turn.version = version;
    }
    turn.atMs = nowMs;
    const { before } = turn;
    const begun: Begun = {
      state: 'begun',
      epoch: turn.epoch,
      submission: turn.entry.submission,
      tries: turn.tries,
      nowMs,
      deadlineAtMs: turn.deadlineAtMs,
      record: turn.entry.record,
      seq: turn.events.length,
      isCancelled: turn.isCancelled,
      ...(before === undefined ? {} : { before }),
      lastWords: new Map(turn.lastWords),
      nodes: new Map(turn.nodes),
      decisions: new Map(turn.decisions),
      told: new Map(turn.told),
    };
    return begun;
  }

  async write(turnId: string, epoch: number, batch: LedgerBatch): Promise<boolean> {
    this.#count('write');
    const turn = this.turns.get(turnId);
    if (turn?.epoch !== epoch) return false;
    for (const [at, event] of batch.events.entries())
      if (batch.firstSeq + at > turn.events.length) turn.events.push(event);
    for (const [id, entry] of batch.nodes) turn.nodes.set(id, entry);
    for (const [id, decision] of batch.decisions) turn.decisions.set(id, { decision, atMs: this.#now() });
    for (const [what, how] of batch.told) turn.told.set(what, how);
    turn.atMs = this.#now();
    if (batch.nodes.length + batch.decisions.length > 0) turn.tries = 0;
    turn.isSettled ||= batch.settles;
    this.#changes$.next(turnId);
    return true;
  }

  async owns(turnId: string, epoch: number): Promise<boolean> {
    this.#count('owns');
    const turn = this.turns.get(turnId);
    if (turn?.epoch !== epoch) return false;
    turn.atMs = this.#now();
    return true;
  }

  async yields(turnId: string, epoch: number): Promise<void> {
    this.#count('yields');
    const turn = this.turns.get(turnId);
    if (turn?.epoch === epoch) turn.tries = 0;
  }

  async read(turnId: string, afterSeq: number, count: number): ReturnType<TurnLedger['read']> {
    this.#count('read');
    const turn = this.turns.get(turnId);
    const events = (turn?.events ?? []).slice(afterSeq, afterSeq + count);
    return {
      isKnown: turn !== undefined,
      isSettled: turn?.isSettled === true,
      events: events.map((event, at) => ({ seq: afterSeq + at + 1, event })),
    };
  }

  changes(turnId: string): ReturnType<TurnLedger['changes']> {
    return this.#changes$.pipe(filter((changed) => changed === turnId));
  }

  async cancel(turnId: string): Promise<boolean> {
    this.#count('cancel');
    const turn = this.turns.get(turnId);
    if (turn === undefined || turn.isSettled) return false;
    turn.isCancelled = true;
    this.#orders$.next(turnId);
    return true;
  }

  async beat(_worker: string, _version: string, _turns: number, held: readonly HeldTurn[]): Promise<HeldState[]> {
    this.#count('beat');
    return held.map(({ turnId, epoch, undoes }) => {
      const turn = this.turns.get(turnId);
      if (turn?.epoch !== epoch) return 'taken';
      turn.atMs = this.#now();
      if (undoes) turn.dueMs = Math.max(turn.dueMs, turn.atMs);
      return turn.isCancelled ? 'cancelled' : 'held';
    });
  }

  async leave(): Promise<void> {
    this.#count('leave');
  }

  async report(): Promise<LedgerReport> {
    const nowMs = this.#now();
    const overdue = [...this.turns]
      .filter(([, { isSettled, dueMs }]) => !isSettled && dueMs + OVERDUE_MS < nowMs)
      .map(([turnId, { dueMs }]) => ({ turnId, overdueMs: nowMs - dueMs }));
    return { waiting: 0, running: 0, lagMs: 0, overdue, workers: [] };
  }

  close(): void {
    // It lives as long as its world.
  }
}
