import { filter, map, type Observable } from 'rxjs';
import type { Context } from 'rxjs-marbles';
import { createSpillway, plan, type TurnResult } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { instantOf, numberIn, picture, subscribed, type Row } from '../picture.ts';
import { transient } from '../support.ts';

const retry = (initialDelayMs: number) => ({ strategy: 'constant', initialDelayMs, jitterPercent: 0 }) as const;

/** A call of a tool whose attempts are these rows. */
const calling = (m: Context, attempts: readonly Row[], signal?: AbortSignal) => {
  const streams = attempts.map(({ marbles: row }) => m.cold<string>(row, undefined, transient));
  const left = [...streams];
  const work = { name: 'work', policy: { retry: retry(2) }, execute: () => left.shift() as Observable<string> };
  const layer = createSpillway({ tools: [work], runtime: runtimeOn(m.scheduler) });
  const result$ = layer.call({ toolName: 'work' }, signal === undefined ? {} : { signal }).pipe(
    filter((event) => event.type === 'settled'),
    map(({ result }) =>
      result.status === 'success'
        ? `success: ${String(result.output?.content)}`
        : `${result.status}: ${result.error?.code}`,
    ),
  );
  return { streams, result$ };
};

it(
  'R-8.2 R-2.1 the picture of a call: a retry, then success',
  marbles((m) => {
    const [first, backoff, second, call] = picture('src/call/pipe.ts', [
      'first attempt',
      'backoff of 2 ms',
      'second attempt',
      'call',
    ]);
    const { streams, result$ } = calling(m, [first, second]);
    expect([backoff.startMs, backoff.marbles.length]).toStrictEqual([instantOf(first, '#'), numberIn(backoff)]);
    m.expect(result$).toBeObservable(call.marbles, { s: 'success: a' });
    m.expect(streams[0] as never).toHaveSubscriptions(subscribed(first, instantOf(first, '#')));
    m.expect(streams[1] as never).toHaveSubscriptions(subscribed(second, instantOf(second, '(')));
  }),
);

it(
  'R-8.2 R-4.2 the picture of a call that its caller ends',
  marbles((m) => {
    const [first, second, aborts, call] = picture(
      'src/call/pipe.ts',
      ['first attempt', 'second attempt', 'caller aborts', 'call'],
      1,
    );
    const caller = new AbortController();
    const abortMs = instantOf(aborts, '!');
    m.scheduler.schedule(() => caller.abort(), abortMs);
    const { streams, result$ } = calling(m, [first, second], caller.signal);
    m.expect(result$).toBeObservable(call.marbles, { c: 'error: canceled' });
    m.expect(streams[1] as never).toHaveSubscriptions(subscribed(second, abortMs));
  }),
);

/** A turn of the tools in these rows, and of one that needs the first two. */
const turning = (
  m: Context,
  rows: { readonly flights: Row; readonly hotels: Row; readonly book?: Row },
  timeoutMs: number,
) => {
  const bookings: unknown[] = [];
  const streams = {
    flights: m.cold<string>(rows.flights.marbles),
    hotels: m.cold<string>(rows.hotels.marbles),
    book: m.cold<string>(rows.book?.marbles ?? '-'),
  };
  const flights = { name: 'flights', execute: () => streams.flights };
  const hotels = { name: 'hotels', execute: () => streams.hotels };
  const book = { name: 'book', execute: (input: unknown) => (bookings.push(input), streams.book) };
  const trip = plan({ timeoutMs })
    .call('flights', flights, {})
    .call('hotels', hotels, {})
    .call('book', book, (values) => values, { needs: ['flights', 'hotels'] });
  const result$ = createSpillway({ runtime: runtimeOn(m.scheduler) })
    .turn(trip)
    .pipe(
      filter((event) => event.type === 'settled' && event.source === 'turn'),
      map(({ result }) => stated(result as TurnResult)),
    );
  return { streams, bookings, result$ };
};
const stated = ({ nodes, values }: TurnResult): unknown => [nodes.map(({ id, state }) => `${id} ${state}`), values];

it(
  'R-5.2 the picture of a turn: a node is joined of its needs',
  marbles((m) => {
    const [flights, hotels, book, deadline, turn] = picture('src/turn/run.ts', [
      'flights',
      'hotels',
      'book',
      'deadline',
      'turn',
    ]);
    const { streams, bookings, result$ } = turning(m, { flights, hotels, book }, instantOf(deadline, '!'));
    const settled = [
      ['flights succeeded', 'hotels succeeded', 'book succeeded'],
      { flights: 'a', hotels: 'b', book: 'c' },
    ];
    m.expect(result$).toBeObservable(turn.marbles, { s: settled });
    m.expect(streams.book).toHaveSubscriptions(subscribed(book, instantOf(book, '(')));
    m.flush();
    expect(bookings).toStrictEqual([{ flights: 'a', hotels: 'b' }]);
  }),
);

it(
  'R-4.4 the picture of a turn: the deadline harvests',
  marbles((m) => {
    const [flights, hotels, deadline, turn] = picture('src/turn/run.ts', ['flights', 'hotels', 'deadline', 'turn'], 1);
    const { streams, bookings, result$ } = turning(m, { flights, hotels }, instantOf(deadline, '!'));
    const settled = [['flights succeeded', 'hotels timed_out', 'book timed_out'], { flights: 'a' }];
    m.expect(result$).toBeObservable(turn.marbles, { s: settled });
    m.expect(streams.hotels).toHaveSubscriptions(subscribed(hotels, instantOf(hotels, '(')));
    m.flush();
    expect(bookings).toStrictEqual([]);
  }),
);
