import {
  AsyncSubject,
  EMPTY,
  NEVER,
  Subject,
  defer,
  from,
  mergeMap,
  tap,
  type Observable,
  type Subscription,
} from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { oneAtATime } from '../operators/timing/one-at-a-time.ts';
import type { Begun, LedgerBatch, TurnLedger } from './ledger.ts';
import { untilAnswered } from './until-answered.ts';

/** Entries of one write: its script keeps a Redis busy for less than a millisecond. */
const BATCH_MAX = 100;

/** While so much waits to be written, progress that is reported is not kept. */
const PROGRESS_MAX = 1_000;

interface Entry {
  readonly event?: TraceEvent;
  readonly node?: readonly [nodeId: string, entry: string];
  readonly decision?: readonly [nodeId: string, decision: string];
  readonly settles?: true;
  readonly written?: AsyncSubject<true>;
}

/**
 * Writes what happens in one turn to its ledger, in order, as much at a time as has come while the last was written.
 */
export interface Recorder {
  event(event: TraceEvent): void;
  /** Emits once it is durable; never where another has the turn. */
  node(nodeId: string, entry: string): Observable<unknown>;
  decision(nodeId: string, decision: string): Observable<unknown>;
  /** The last event, which has the turn's whole result. */
  settle(event: TraceEvent): Observable<unknown>;
  /** Emits when another has the turn. */
  readonly lost$: Observable<unknown>;
  /** Writes nothing more. */
  close(): void;
}

/** What an event says of the turn's end, and how: each owner that gets there would tell it. */
const endIn = (event: TraceEvent): readonly [what: string, how: string] | undefined => {
  if (event.source !== 'turn') return undefined;
  if (event.type === 'deadline') return ['deadline', event.onDeadline];
  return event.type === 'node_settled' ? [`node ${event.nodeId}`, event.state] : undefined;
};

/** Entries as they are written at once. */
const batchOf = (entries: readonly Entry[], turnId: string, tenant: string, firstSeq: number): LedgerBatch => {
  const events = entries.flatMap(({ event }) => (event === undefined ? [] : [event]));
  const nodes = entries.flatMap(({ node }) => (node === undefined ? [] : [node]));
  // A node that is in the journal is told no more anyway.
  const kept = new Set(nodes.map(([id]) => `node ${id}`));
  return {
    events: events.map((event, at) => JSON.stringify({ ...event, turnId, seq: firstSeq + at })),
    firstSeq,
    nodes,
    told: events.flatMap((event) => {
      const end = endIn(event);
      return end === undefined || kept.has(end[0]) ? [] : [end];
    }),
    decisions: entries.flatMap(({ decision }) => (decision === undefined ? [] : [decision])),
    settles: entries.some(({ settles }) => settles === true),
    tenant,
  };
};

class LedgerRecorder implements Recorder {
  readonly lost$: Observable<unknown>;
  readonly #lost$ = new AsyncSubject<true>();
  readonly #asked$ = new Subject<void>();
  readonly #waiting: Entry[] = [];
  readonly #writing: Subscription;
  readonly #told: Begun['told'];
  #seq: number;

  constructor(ledger: TurnLedger, turnId: string, { seq, epoch, told }: Begun, tenant: string, runtime: Runtime) {
    this.#seq = seq;
    this.#told = told;
    this.lost$ = this.#lost$.asObservable();
    const batch$ = defer(() => {
      const entries = this.#waiting.splice(0, BATCH_MAX);
      if (entries.length === 0) return EMPTY;
      const batch = batchOf(entries, turnId, tenant, this.#seq + 1);
      this.#seq += batch.events.length;
      return untilAnswered(() => ledger.write(turnId, epoch, batch), runtime).pipe(
        tap((isOurs) => (isOurs ? this.#written(entries) : this.#lose())),
      );
    });
    // What happens in one go is written in one: a node's end and its place in the journal.
    const work$ = this.#asked$.pipe(oneAtATime(() => from(Promise.resolve()).pipe(mergeMap(() => batch$))));
    this.#writing = work$.subscribe({ error: () => this.#lose() });
  }

  event(event: TraceEvent): void {
    const [what = '', how] = endIn(event) ?? [];
    if (how !== undefined && this.#told.get(what) === how) return;
    // A node's end must not wait behind what a tool says of its progress, nor fill the memory with it.
    if (event.type !== 'progress' || this.#waiting.length < PROGRESS_MAX) this.#add({ event });
  }

  node(nodeId: string, entry: string): Observable<unknown> {
    return this.#durable({ node: [nodeId, entry] });
  }

  decision(nodeId: string, decision: string): Observable<unknown> {
    return this.#durable({ decision: [nodeId, decision] });
  }

  settle(event: TraceEvent): Observable<unknown> {
    return this.#durable({ event, settles: true });
  }

  close(): void {
    this.#writing.unsubscribe();
  }

  #add(entry: Entry): void {
    this.#waiting.push(entry);
    this.#asked$.next();
  }

  #durable(entry: Omit<Entry, 'written'>): Observable<unknown> {
    return defer(() => {
      if (this.#writing.closed) return NEVER;
      const written = new AsyncSubject<true>();
      this.#add({ ...entry, written });
      return written;
    });
  }

  #written(entries: readonly Entry[]): void {
    for (const { written } of entries) {
      written?.next(true);
      written?.complete();
    }
    if (this.#waiting.length > 0) this.#asked$.next();
  }

  #lose(): void {
    this.#asked$.complete();
    this.#lost$.next(true);
    this.#lost$.complete();
  }
}

/** @param begun where the turn stands: its events are counted on from there */
export const recorderOf = (
  ledger: TurnLedger,
  turnId: string,
  begun: Begun,
  tenant: string,
  runtime: Runtime,
): Recorder => new LedgerRecorder(ledger, turnId, begun, tenant, runtime);
