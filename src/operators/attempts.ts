import type { Observable, Unsubscribable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { ClassifiedError, ToolExecutionError } from '../contract/tool-error.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import { timeoutError } from './attempt-timeout.ts';
import type { GivenPermit } from './breaker.ts';
import { settlePermit } from './circuit-breaker.ts';
import type { Expiry, ExpiryQueue } from './expiry.ts';
import { isPromiseLike, streamIn } from './output.ts';

/**
 * The signal of one attempt, made when it is first asked for: most of an attempt's memory would be that. What work is given is one of these, so
 * that a signal asked for late is that of its own attempt.
 */
export abstract class AttemptSignal {
  abstract readonly signal: AbortSignal;
  #controller: AbortController | undefined;
  #aborted = false;
  /** Whose signal this is, where the work of an attempt was started more than once. */
  #first: AttemptSignal | undefined;

  protected static signalOf(attempt: AttemptSignal): AbortSignal {
    const first = attempt.#first ?? attempt;
    if (first.#controller === undefined) {
      first.#controller = new AbortController();
      if (first.#aborted) first.#controller.abort();
    }
    return first.#controller.signal;
  }

  /** Static, so that work cannot say these. */
  static share(attempt: AttemptSignal, first: AttemptSignal): void {
    attempt.#first = first;
  }

  static abort(attempt: AttemptSignal): void {
    attempt.#aborted = true;
    attempt.#controller?.abort();
  }
}

/**
 * Attempts at one piece of work, one after the other, each with a permit of the breaker and a deadline: what `guard` does for a stream or for
 * work, and a call for its tool. Who may begin the next one, and when, is theirs to say. One object for all attempts, since a hundred thousand
 * of these can be in flight; each attempt has a number, and what comes from one that is over says nothing.
 */
export abstract class Attempts implements Unsubscribable {
  protected readonly runtime: Runtime;
  /** It has ended, or whoever listened has gone. */
  protected closed = false;
  /** The stream that the present attempt listens to, or what is waited for before the next one. */
  protected inner: Unsubscribable | undefined;
  /** The present attempt, counted from 1. */
  #number = 0;
  /** It has neither ended nor been overtaken. */
  #live = false;
  #gaveValue = false;
  /** It has given all there is: nothing else that its work does counts. */
  #hasAnswered = false;
  #permit: GivenPermit | undefined;
  #deadline: Expiry | undefined;
  /** Of work that has not settled. */
  #signal: AttemptSignal | undefined;

  constructor(runtime: Runtime) {
    this.runtime = runtime;
  }

  /** Where the deadline of an attempt that did not end at once is set, if it has one. */
  protected abstract get deadlines(): ExpiryQueue | undefined;
  /** Starts the work of an attempt, and says what to `follow`. */
  protected abstract begin(number: number): void;
  /** Listens to what the work gave, and tells this of it by the attempt's number; sets `inner`. */
  protected abstract listen(stream: Observable<unknown>, number: number): void;
  /** The attempt gave a value. */
  protected abstract gave(value: unknown): void;
  /** The attempt has given all there is; it is to be ended now. */
  protected abstract succeeded(): void;
  /** The attempt failed by itself, or its deadline has passed. Its permit is still there. */
  protected abstract failed(thrown: unknown): void;
  /** The present attempt is over, however it ended; nobody has been told yet. */
  protected ended(): void {}

  /** Takes what admits the next attempt. False when whoever heard of the breaker's change has ended this: then it is given back. */
  protected hold(permit: GivenPermit | undefined): boolean {
    if (this.closed) permit?.release();
    else this.#permit = permit;
    this.#gaveValue = false;
    return !this.closed;
  }

  /** The permit of the attempt that has ended, to be told how. Ended again from within, this says nothing more to it. */
  protected takePermit(): GivenPermit | undefined {
    const permit = this.#permit;
    this.#permit = undefined;
    return permit;
  }

  /** Tells the permit what a failure means to the breaker. */
  protected settleFailure({ error, classification }: ClassifiedError): void {
    settlePermit(this.takePermit(), breakerOutcome(error, classification), error);
  }

  /** Makes the next attempt. It may end before this returns. */
  protected attempt(startedAtMs: number): void {
    const number = ++this.#number;
    this.#live = true;
    this.#hasAnswered = false;
    try {
      this.begin(number);
    } catch (error) {
      this.fail(number, error);
    }
    // What settles synchronously needs no timer.
    if (!this.isLive(number)) return;
    const { deadlines } = this;
    if (deadlines !== undefined) this.#deadline = deadlines.addFrom(startedAtMs, () => this.overtake(timeoutError(deadlines.ms)));
  }

  /** A signal to abort when the attempt is over before its work is. Work that starts after that finds it aborted, unless the attempt went well. */
  protected abortWith(signal: AttemptSignal, number: number): void {
    if (!this.isLive(number)) {
      if (!this.#hasAnswered || this.#number !== number) AttemptSignal.abort(signal);
    } else if (this.#signal === undefined) this.#signal = signal;
    else AttemptSignal.share(signal, this.#signal);
  }

  /** Hears what the work of an attempt gave: a value, a Promise, an Observable or an AsyncIterable. */
  protected follow(output: unknown, number: number): void {
    if (isPromiseLike(output)) {
      output.then(
        (value) => this.#settle(number, value),
        (thrown: unknown) => this.fail(number, thrown),
      );
      return;
    }
    const stream = streamIn(output);
    if (stream === undefined) this.#settle(number, output);
    // Ended while it started: it is not even subscribed to.
    else if (this.isLive(number)) this.listen(stream, number);
  }

  next(number: number, value: unknown): void {
    if (!this.isLive(number)) return;
    this.#gaveValue = true;
    this.gave(value);
  }

  fail(number: number, thrown: unknown): void {
    if (this.isLive(number) && this.end()) this.failed(thrown);
  }

  complete(number: number): void {
    if (!this.isLive(number)) return;
    this.#hasAnswered = true;
    // Work that has settled is not aborted after the fact.
    this.#signal = undefined;
    this.succeeded();
  }

  protected isLive(number: number = this.#number): boolean {
    return this.#live && this.#number === number && !this.#hasAnswered;
  }

  /** A limit has passed: the work is aborted first, so that nothing of it overlaps with what follows. */
  protected overtake(error: ToolExecutionError): void {
    if (!this.#live) return;
    try {
      this.#cutShort();
    } finally {
      // Whoever heard of the abort may have ended this.
      if (!this.closed) this.failed(error);
    }
  }

  /** Ends it from outside: nobody is told, and the permit is given back. */
  unsubscribe(): void {
    if (this.closed) return;
    this.closed = true;
    try {
      this.#cutShort();
    } finally {
      // Who leaves after a value has had an answer.
      if (this.#gaveValue) this.takePermit()?.success();
      else this.takePermit()?.release();
    }
  }

  #settle(number: number, value: unknown): void {
    if (!this.isLive(number)) return;
    // Whoever hears the value may unsubscribe.
    this.#signal = undefined;
    this.next(number, value);
    this.complete(number);
  }

  /** The present attempt has ended by itself. False when that is not so any more, or when whoever heard of it has ended this. */
  protected end(): boolean {
    if (!this.#live) return false;
    this.#takeDown();
    return !this.closed;
  }

  #takeDown(): void {
    this.#live = false;
    this.#signal = undefined;
    this.#deadline?.cancel();
    this.#deadline = undefined;
    this.ended();
  }

  /** Ends whatever goes on. */
  #cutShort(): void {
    const signal = this.#signal;
    this.#hasAnswered = false;
    this.#takeDown();
    const { inner } = this;
    this.inner = undefined;
    if (signal !== undefined) AttemptSignal.abort(signal);
    inner?.unsubscribe();
  }
}
