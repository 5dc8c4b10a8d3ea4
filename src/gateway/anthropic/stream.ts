import { repeat, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { fieldsOf } from './blocks.ts';
import { joinBytes, type ByteSource, type ByteTaker } from '../wire/bytes.ts';
import { PING, SseSplitter, sseBytes } from '../wire/sse.ts';
import { StreamStep } from './step.ts';
import type { GatewayTurn, Outcome, StepEnd } from './answer.ts';
import type { UpstreamAnswer, UpstreamRefusal } from '../wire/upstream.ts';
import { GatewayError, errorBody } from '../wire/error.ts';

const broken = (): GatewayError => new GatewayError('upstream_broken', 'The upstream broke off its answer; ask again');

/** An error as an event: the upstream's own where it gave one. */
export const errorEvent = (error: GatewayError | UpstreamRefusal, requestId: string): Uint8Array => {
  if (error instanceof GatewayError) return sseBytes('error', errorBody(error, requestId));
  try {
    const body: unknown = JSON.parse(error.body);
    if (fieldsOf(body)['type'] === 'error') return sseBytes('error', JSON.stringify(body));
  } catch {
    // A proxy's page, say.
  }
  return sseBytes('error', errorBody(broken(), requestId));
};

export interface StreamOptions {
  readonly pingMs: number;
  readonly runtime: Runtime;
  /** Ends the turn's requests and tools. */
  readonly abort: () => void;
  /** Hears of what broke the stream off. */
  readonly onError: (error: GatewayError | UpstreamRefusal) => void;
}

/**
 * The answer to a client that streams: all steps of a turn, one after the other. It ends with an `error` event where it
 * cannot end well, and never fails.
 */
export class StreamedAnswer implements ByteSource, ByteTaker {
  readonly #turn: GatewayTurn;
  readonly #options: StreamOptions;
  readonly #first: ByteSource | null;
  #taker: ByteTaker | undefined;
  #step: StreamStep;
  /** Of the step now. */
  #body: ByteSource | undefined;
  #paused = false;

  constructor(turn: GatewayTurn, { body }: UpstreamAnswer, options: StreamOptions) {
    this.#turn = turn;
    this.#options = options;
    this.#first = body;
    this.#step = new StreamStep(turn, true, 0);
  }

  start(taker: ByteTaker): void {
    this.#taker = taker;
    this.#listen(this.#first);
  }

  pause(): void {
    this.#paused = true;
    this.#body?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#body?.resume();
  }

  /** Aborts the turn. Its end comes later: what was done is stored first, for when the client asks again. */
  cancel(): void {
    this.#options.abort();
  }

  take(piece: Uint8Array): void {
    this.#give(this.#step.hear(piece));
  }

  end(): void {
    this.#body = undefined;
    void this.#settled(() => this.#next());
  }

  fail(thrown: unknown): void {
    // What becomes of the connection takes nothing from an answer that is whole, and adds nothing to an error that was
    // told.
    if (this.#step.hasStopped || this.#step.hasFailed) return this.end();
    this.#body = undefined;
    void this.#settled(() => Promise.reject(thrown));
  }

  #listen(body: ByteSource | null): void {
    if (body === null) return queueMicrotask(() => this.end());
    this.#body = body;
    body.start(this);
    if (this.#paused) body.pause();
  }

  #give(pieces: readonly Uint8Array[]): void {
    if (pieces.length > 0) this.#taker?.take(joinBytes(pieces));
  }

  /** Goes on with the turn; what fails becomes the client's last event. */
  async #settled(goOn: () => Promise<boolean>): Promise<void> {
    const turn = this.#turn;
    try {
      if (await goOn()) return;
    } catch (thrown) {
      const error = turn.broken(thrown);
      this.#options.onError(error);
      // Before the client knows, and asks again.
      await turn.keepAfter(error);
      this.#give([errorEvent(error, turn.requestId)]);
    }
    this.#taker?.end();
  }

  /** What comes after a step. Whether there is a further one. */
  async #next(): Promise<boolean> {
    const step = this.#step;
    this.#give(step.hearRest());
    if (step.hasFailed) {
      await this.#turn.keepForRetry();
      return false;
    }
    if (!step.hasStopped) throw broken();
    const outcome = await this.#outcome(step.end);
    if (outcome.type === 'final') {
      this.#give(step.closing(outcome.warning));
      return false;
    }
    this.#step = new StreamStep(this.#turn, false, step.nextPlace);
    this.#listen(outcome.answer.body);
    return true;
  }

  /** While tools run, the client gets a ping every so often: at once if they may take their time. */
  async #outcome(end: StepEnd): Promise<Outcome> {
    const turn = this.#turn;
    const outcome = turn.after(end);
    if (turn.isPlain(end)) return outcome;
    if (end.blocks.some(({ value }) => turn.isOurs(value))) this.#ping();
    const pings = this.#pinging();
    try {
      return await outcome;
    } finally {
      pings.unsubscribe();
    }
  }

  #pinging(): Subscription {
    const { pingMs, runtime } = this.#options;
    return runtime
      .after(pingMs)
      .pipe(repeat())
      .subscribe(() => this.#ping());
  }

  #ping(): void {
    // Who does not read needs none.
    if (!this.#paused) this.#taker?.take(PING);
  }
}

/** Events passed on as they are. Broken off, the stream ends with an `error` event after the last whole one. */
export class PassedEvents implements ByteSource, ByteTaker {
  readonly #body: ByteSource;
  readonly #abort: () => void;
  readonly #toEvent: (thrown: unknown) => Uint8Array;
  readonly #splitter = new SseSplitter();
  #taker: ByteTaker | undefined;

  constructor(body: ByteSource, abort: () => void, toEvent: (thrown: unknown) => Uint8Array) {
    this.#body = body;
    this.#abort = abort;
    this.#toEvent = toEvent;
  }

  start(taker: ByteTaker): void {
    this.#taker = taker;
    this.#body.start(this);
  }

  pause(): void {
    this.#body.pause();
  }

  resume(): void {
    this.#body.resume();
  }

  cancel(): void {
    this.#abort();
  }

  take(piece: Uint8Array): void {
    const whole = this.#splitter.pass(piece);
    if (whole.length > 0) this.#taker?.take(whole);
  }

  end(): void {
    const rest = this.#splitter.rest();
    if (rest !== undefined) this.#taker?.take(rest.raw);
    this.#taker?.end();
  }

  fail(thrown: unknown): void {
    this.#taker?.take(this.#toEvent(thrown));
    this.#taker?.end();
  }
}
