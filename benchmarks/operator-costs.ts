import { EMPTY, NEVER, catchError, defer, lastValueFrom, map, of, retry, takeUntil, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  abortable,
  attemptTimeout,
  circuitBreaker,
  createBreaker,
  createSpillway,
  retryBackoff,
  tool,
} from '../src/index.ts';
import { added } from './guard.ts';
import { collect, median, sideBySide, type Question } from './measure.ts';
import { ATTEMPTS, COOLDOWN_MS, TIMEOUT_MS } from './peers.ts';

/**
 * Few calls a round, and many rounds: what else the machine does falls on some of them, and the median is of the
 * others.
 */
const CALLS = 250;
const ROUNDS = 201;
const PENDING = 10_000;
const PENDING_ROUNDS = 3;

type Work = (n: number) => Promise<number>;
const answering: Work = async (n) => n;

/**
 * Work that waits until it is told to go on. As a tool's own timers and sockets do, that keeps alive what waits for it.
 */
const waiting = (): { readonly work: Work; readonly goOn: () => void } => {
  const waits: Array<() => void> = [];
  return {
    work: (n) => new Promise((resolve) => waits.push(() => resolve(n))),
    goOn: () => {
      for (const go of waits.splice(0)) go();
    },
  };
};

type Pipe = (work: Work, n: number) => Observable<unknown>;

/** The pipe of a call as far as it is built. */
interface Step {
  readonly name: string;
  /** The pipe that it extends. */
  readonly after?: string;
  readonly why: string;
  readonly call: (work: Work, n: number) => Promise<unknown>;
}

const stepOf = (name: string, after: string | undefined, why: string, pipe: Pipe): Step => ({
  name,
  why,
  call: (work, n) => lastValueFrom(pipe(work, n)),
  ...(after === undefined ? {} : { after }),
});

/** First with RxJS's operators alone, then with what the engine makes of them. */
const ownSteps = (): readonly Step[] => {
  const breaker = createBreaker({ cooldownMs: COOLDOWN_MS });
  const [limited, broken, retried] = [
    attemptTimeout(TIMEOUT_MS),
    circuitBreaker(breaker),
    retryBackoff({ maxAttempts: ATTEMPTS }),
  ];
  const again = catchError((error: unknown) => throwError(() => error));
  const bare: Pipe = (work, n) => defer(() => work(n));
  const signaled: Pipe = (work, n) => abortable(() => work(n));
  const cut: Pipe = (work, n) => signaled(work, n).pipe(takeUntil(NEVER));
  const twice: Pipe = (work, n) => cut(work, n).pipe(again, again);
  const timed: Pipe = (work, n) => signaled(work, n).pipe(limited);
  const tapped: Pipe = (work, n) =>
    timed(work, n).pipe(tap({ next: () => undefined, error: () => undefined, complete: () => undefined }));
  const guarded: Pipe = (work, n) => timed(work, n).pipe(broken);
  const resubscribed: Pipe = (work, n) => defer(() => guarded(work, n).pipe(retry({ delay: () => EMPTY })));
  const tried: Pipe = (work, n) => guarded(work, n).pipe(retried);
  const valued: Pipe = (work, n) =>
    tried(work, n).pipe(
      map((content) => ({ content })),
      catchError((error: unknown) => of({ error })),
    );
  const ended: Pipe = (work, n) => valued(work, n).pipe(takeUntil(NEVER));
  return [
    stepOf('defer', undefined, 'a call is cold: nothing runs before it is subscribed to', bare),
    stepOf('abortable', 'defer', 'each attempt has a signal, made if the tool asks for it (R-4.2)', signaled),
    stepOf('takeUntil', 'abortable', 'bare: what a limit is made of', cut),
    stepOf(
      'catchError, catchError',
      'takeUntil',
      'bare: a teardown that throws costs nobody the error of the limit',
      twice,
    ),
    stepOf(
      'attemptTimeout',
      'abortable',
      'those three, and a place in the queue of deadlines that share a timer (R-4.1, R-4.6)',
      timed,
    ),
    stepOf('tap', 'attemptTimeout', 'bare: hears how an attempt ended', tapped),
    stepOf('circuitBreaker', 'attemptTimeout', 'that, and two decisions of the `scan` (R-3.1, R-3.6)', guarded),
    stepOf('defer, retry', 'circuitBreaker', 'bare: subscribes again after a failure', resubscribed),
    stepOf(
      'retryBackoff',
      'circuitBreaker',
      'those, and a look at the clock: attempts and time are counted (R-2.3)',
      tried,
    ),
    stepOf('map, catchError', 'retryBackoff', 'a failure becomes a value, once (R-8.2)', valued),
    stepOf('takeUntil, once more', 'map, catchError', 'its caller, its turn or its layer ends it', ended),
  ];
};

/** The same through a layer. */
const layerSteps = (): readonly Step[] => {
  let work: Work = answering;
  const echo = tool({
    name: 'echo',
    input: z.object({ n: z.number() }),
    policy: { effects: 'read' },
    execute: ({ n }) => work(n),
  });
  const spillway = createSpillway({ tools: [echo] });
  const request = (n: number): { readonly toolName: string; readonly input: unknown } => ({
    toolName: 'echo',
    input: { n },
  });
  const through =
    (call: (n: number) => Promise<unknown>) =>
    (given: Work, n: number): Promise<unknown> => {
      work = given;
      return call(n);
    };
  const contentOf = async (n: number): Promise<unknown> => (await spillway.execute(request(n))).output;
  const settled = (n: number): Observable<unknown> =>
    spillway.call(request(n)).pipe(map((event) => (event.type === 'settled' ? event.result.output : undefined)));
  return [
    {
      name: 'spillway.execute',
      after: 'takeUntil, once more',
      why: 'the request read, its input validated, ids, retry budget, states, and an envelope as result',
      call: through(contentOf),
    },
    {
      name: 'spillway.call',
      after: 'spillway.execute',
      why: 'the same as a stream: its events are made',
      call: through((n) => lastValueFrom(settled(n))),
    },
  ];
};

/** The bytes that each of many calls holds while its work waits. */
const bytesOf = async ({ name, call }: Step): Promise<number> => {
  const rounds: number[] = [];
  for (let round = 0; round <= PENDING_ROUNDS; round++) {
    const { work, goOn } = waiting();
    collect();
    const before = process.memoryUsage().heapUsed;
    const calls = Array.from({ length: PENDING }, (_, n) => call(work, n));
    collect();
    rounds.push((process.memoryUsage().heapUsed - before) / PENDING);
    goOn();
    const ended = (await Promise.all(calls)).filter((value, n) => numberOf(value) === n).length;
    if (ended !== PENDING) throw new Error(`${name}: ${PENDING - ended} calls were not pending`);
  }
  // The first one warms up.
  return median(rounds.slice(1));
};

const numberOf = (value: unknown): number =>
  Number(typeof value === 'object' && value !== null && 'content' in value ? value.content : value);

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const signed = (value: number, digits: number): string => `${value < 0 ? '-' : '+'}${Math.abs(value).toFixed(digits)}`;

/**
 * What each operator in the pipe of a call costs, from a bare `defer` to a layer: in time where all goes well, and in
 * memory.
 */
export async function benchmarkOperatorCosts(): Promise<Question> {
  const steps = [...ownSteps(), ...layerSteps()];
  const ways = Object.fromEntries(
    steps.map(({ name, call }) => [name, added(CALLS, async (n) => numberOf(await call(answering, n)))]),
  );
  const { figures, us } = await sideBySide(ways, CALLS, ROUNDS);
  const bytes = new Map<string, number>();
  for (const step of steps) bytes.set(step.name, await bytesOf(step));
  const sizeOf = (name: string): number => bytes.get(name) ?? Number.NaN;
  const cells = ({ name, after, why }: Step): string => {
    const more =
      after === undefined
        ? ['', '', '']
        : [after, signed(us(name) - us(after), 2), signed(sizeOf(name) - sizeOf(after), 0)];
    return row([name, us(name).toFixed(2), sizeOf(name).toFixed(0), ...more, why]);
  };
  return {
    question: 'What does each operator in the pipe of a call cost?',
    figures,
    ratios: {},
    kilobytes: Object.fromEntries([...bytes].map(([name, size]) => [`${name}, pending`, size / 1024])),
    table: [
      row(['the pipe up to', 'us', 'bytes', 'beside', 'us more', 'bytes more', 'what for']),
      row(Array.from({ length: 7 }, () => '---')),
      ...steps.map(cells),
    ],
  };
}
