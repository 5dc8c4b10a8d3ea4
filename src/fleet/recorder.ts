import { AsyncSubject, EMPTY, NEVER, Subject, defer, from, mergeMap, tap, type Observable } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { oneAtATime } from '../operators/timing/one-at-a-time.ts';
import type { Begun, TurnLedger } from './ledger.ts';
import { untilAnswered } from './until-answered.ts';

/** Entries of one write: its script keeps a Redis busy for less than a millisecond. */
const BATCH_MAX = 100;

interface Entry {
  readonly event?: TraceEvent;
  readonly node?: readonly [nodeId: string, entry: string];
  readonly decision?: readonly [nodeId: string, decision: string];
  readonly settles?: true;
  readonly written?: AsyncSubject<true>;
}

/** Writes what happens in one turn to its ledger, in order, as much at a time as has come while the last was written. */
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

/** @param begun where the turn stands: its events are counted on from there */
export function recorderOf(
  ledger: TurnLedger,
  turnId: string,
  begun: Begun,
  tenant: string,
  runtime: Runtime,
): Recorder {
  const waiting: Entry[] = [];
  const asked$ = new Subject<void>();
  const lost$ = new AsyncSubject<true>();
  let { seq } = begun;
  const batch$ = defer(() => {
    const entries = waiting.splice(0, BATCH_MAX);
    if (entries.length === 0) return EMPTY;
    const events = entries.flatMap(({ event }) => (event === undefined ? [] : [event]));
    const firstSeq = seq + 1;
    seq += events.length;
    const batch = {
      events: events.map((event, at) => JSON.stringify({ ...event, turnId, seq: firstSeq + at })),
      firstSeq,
      nodes: entries.flatMap(({ node }) => (node === undefined ? [] : [node])),
      decisions: entries.flatMap(({ decision }) => (decision === undefined ? [] : [decision])),
      settles: entries.some(({ settles }) => settles === true),
      tenant,
    };
    return untilAnswered(() => ledger.write(turnId, begun.epoch, batch), runtime).pipe(
      tap((isOurs) => {
        if (!isOurs) return lose();
        for (const { written } of entries) {
          written?.next(true);
          written?.complete();
        }
        if (waiting.length > 0) asked$.next();
      }),
    );
  });
  const lose = (): void => {
    asked$.complete();
    lost$.next(true);
    lost$.complete();
  };
  // What happens in one go is written in one: a node's end and its place in the journal.
  const work$ = asked$.pipe(oneAtATime(() => from(Promise.resolve()).pipe(mergeMap(() => batch$))));
  const writing = work$.subscribe({ error: lose });
  const add = (entry: Entry): void => {
    waiting.push(entry);
    asked$.next();
  };
  const durable = (entry: Omit<Entry, 'written'>): Observable<unknown> =>
    defer(() => {
      if (writing.closed) return NEVER;
      const written = new AsyncSubject<true>();
      add({ ...entry, written });
      return written;
    });
  return {
    event: (event) => add({ event }),
    node: (nodeId, entry) => durable({ node: [nodeId, entry] }),
    decision: (nodeId, decision) => durable({ decision: [nodeId, decision] }),
    settle: (event) => durable({ event, settles: true }),
    lost$: lost$.asObservable(),
    close: () => writing.unsubscribe(),
  };
}
