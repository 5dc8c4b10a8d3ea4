import { Subscriber, take, type Observable, type Unsubscribable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/tool.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import { classify } from '../policy/classify.ts';
import { AbortableStream } from './abortable.ts';
import { timeoutError } from './attempt-timeout.ts';
import type { Breaker, GivenPermit } from './breaker.ts';
import { circuitOpenError, settlePermit } from './circuit-breaker.ts';
import { endWith } from './consumer.ts';
import type { Expiry, ExpiryQueue } from './expiry.ts';
import { fromOutput, isPromiseLike } from './output.ts';
import { AttemptCount } from './retry-backoff.ts';

/** What a guard guards with, decided. */
export interface GuardTerms {
  /** Where the deadlines of attempts are set, if they have one. */
  readonly timeouts: ExpiryQueue | undefined;
  readonly breaker: Breaker | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly runtime: Runtime;
}

/** What guarded work is given. */
export interface GuardContext {
  /** Fresh for each attempt, and aborted when the attempt is over before the work is. */
  readonly signal: AbortSignal;
  /** Counted from 1. */
  readonly attempt: number;
}

/** What is guarded: work that is given a signal, or a stream. */
export type Guarded<T> = Observable<T> | Work<T>;

type Work<T> = (context: GuardContext) => ToolOutput<T>;

/** The context of one attempt at work. Its signal is made when it is first asked for. */
class WorkContext implements GuardContext {
  readonly attempt: number;
  #controller: AbortController | undefined;
  #aborted = false;

  constructor(attempt: number) {
    this.attempt = attempt;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Static, so that work cannot say it. */
  static abort(context: WorkContext): void {
    context.#aborted = true;
    context.#controller?.abort();
  }
}

/** Hears a stream for one attempt. */
class StreamAttempt<T> extends Subscriber<T> {
  readonly #run: GuardRun<T>;
  readonly #number: number;

  constructor(run: GuardRun<T>, number: number) {
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#run = run;
    this.#number = number;
  }

  protected override _next(value: T): void {
    this.#run.next(this.#number, value);
  }

  protected override _error(thrown: unknown): void {
    try {
      this.#run.fail(this.#number, thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      this.#run.complete(this.#number);
    } finally {
      this.unsubscribe();
    }
  }
}

/**
 * All attempts of one subscription under the three guards, in one object: `retryBackoff(circuitBreaker(attemptTimeout(guarded)))`. A property test
 * holds that it means the same. Each attempt has a number; what comes from one that is over says nothing.
 *
 * Not a Subscriber itself: that would be one more to make and to take down for each call, and work that gives a Promise needs none.
 */
export class GuardRun<T> implements Unsubscribable {
  readonly #terms: GuardTerms;
  readonly #guarded: Guarded<T>;
  readonly #subscriber: Subscriber<T>;
  #count: AttemptCount | undefined;
  #closed = false;
  /** The present attempt. */
  #number = 0;
  /** It has neither ended nor been overtaken. */
  #live = false;
  #startedAtMs = 0;
  #gaveValue = false;
  #permit: GivenPermit | undefined;
  #deadline: Expiry | undefined;
  /** Of work that has not settled. */
  #context: WorkContext | undefined;
  /** The attempt's stream, or the wait before the next attempt. */
  #inner: Unsubscribable | undefined;

  constructor(terms: GuardTerms, guarded: Guarded<T>, subscriber: Subscriber<T>) {
    this.#terms = terms;
    this.#guarded = guarded;
    this.#subscriber = subscriber;
    endWith(subscriber, this);
  }

  /** Begins the next attempt. */
  start(): void {
    if (this.#closed) return;
    const { timeouts, breaker, runtime } = this.#terms;
    const number = ++this.#number;
    this.#startedAtMs = runtime.now();
    this.#gaveValue = false;
    this.#permit = undefined;
    const admission = breaker?.admit(this.#startedAtMs);
    if (admission?.admitted === false) return this.#failed(circuitOpenError(admission.retryAfterMs));
    this.#permit = admission;
    // Whoever heard of the breaker's change may have unsubscribed.
    if (this.#closed) return this.#giveBack();
    this.#live = true;
    this.#begin(number);
    // What settles synchronously needs no timer.
    if (timeouts === undefined || !this.#isLive(number)) return;
    this.#deadline = timeouts.addFrom(this.#startedAtMs, () => this.#overtake(timeouts.ms));
  }

  next(number: number, value: T): void {
    if (!this.#isLive(number)) return;
    this.#gaveValue = true;
    this.#subscriber.next(value);
  }

  fail(number: number, thrown: unknown): void {
    if (!this.#isLive(number)) return;
    this.#end();
    this.#failed(thrown);
  }

  complete(number: number): void {
    if (!this.#isLive(number)) return;
    this.#end();
    this.#permit?.success();
    this.#subscriber.complete();
  }

  /** Whoever listened has gone. */
  unsubscribe(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#cutShort();
    } finally {
      this.#giveBack();
    }
  }

  #isLive(number: number): boolean {
    return this.#live && this.#number === number;
  }

  #begin(number: number): void {
    const guarded = this.#guarded;
    // Right behind `abortable` it is the same as `from`, and one subscriber less.
    if (typeof guarded === 'function' || guarded instanceof AbortableStream) return this.#work(guarded, number);
    const attempt = new StreamAttempt(this, number);
    this.#inner = attempt;
    guarded.subscribe(attempt);
  }

  /** What `abortable` does. */
  #work(guarded: Work<T> | AbortableStream<T>, number: number): void {
    const context = new WorkContext(number);
    this.#context = context;
    try {
      let output: ToolOutput<T>;
      if (typeof guarded === 'function') output = guarded(context);
      else {
        const { work } = guarded;
        output = work(context.signal);
      }
      if (isPromiseLike(output)) {
        output.then(
          (value) => this.#give(number, value),
          (thrown: unknown) => this.fail(number, thrown),
        );
      } else {
        const attempt = new StreamAttempt(this, number);
        if (this.#isLive(number)) this.#inner = attempt;
        else attempt.unsubscribe();
        fromOutput(output, () => this.#settle(number)).subscribe(attempt);
      }
    } catch (error) {
      this.fail(number, error);
    }
  }

  /** Work that has settled is not aborted after the fact. */
  #settle(number: number): void {
    if (this.#isLive(number)) this.#context = undefined;
  }

  #give(number: number, value: T): void {
    this.#settle(number);
    this.next(number, value);
    this.complete(number);
  }

  /** The attempt has ended by itself; what gave it is taken down after those who hear it, but before what comes after them. */
  #end(): void {
    this.#live = false;
    this.#context = undefined;
    this.#deadline?.cancel();
    this.#deadline = undefined;
  }

  /** Ends whatever goes on. */
  #cutShort(): void {
    const inner = this.#inner;
    const context = this.#context;
    this.#end();
    this.#inner = undefined;
    if (context !== undefined) WorkContext.abort(context);
    inner?.unsubscribe();
  }

  #overtake(timeoutMs: number): void {
    try {
      this.#cutShort();
    } finally {
      // Whoever heard of the abort may have unsubscribed.
      if (!this.#closed) this.#failed(timeoutError(timeoutMs));
    }
  }

  /** Unsubscribed before it ended. Says nothing to a permit that has. */
  #giveBack(): void {
    if (this.#gaveValue) this.#permit?.success();
    else this.#permit?.release();
  }

  /** Counts a failure, and tries again after a wait, unless that ends too late, or passes it on. */
  #failed(thrown: unknown): void {
    const { retry, runtime } = this.#terms;
    const error = toToolExecutionError(thrown, () => runtime.wallNow());
    const { classification } = classify(error);
    settlePermit(this.#permit, breakerOutcome(error, classification), error);
    // Whoever heard of the breaker's change may have unsubscribed.
    if (this.#closed) return;
    if (retry === undefined) return this.#subscriber.error(thrown);
    const count = (this.#count ??= new AttemptCount(retry, runtime, this.#startedAtMs));
    const delayMs = count.delayAfterMs(error, classification);
    if (delayMs === undefined) return this.#subscriber.error(thrown);
    const wait = runtime
      .after(delayMs)
      .pipe(take(1))
      .subscribe(() => (count.late ? this.#subscriber.error(thrown) : this.start()));
    // One that was over at once has made way for the next attempt.
    if (!wait.closed) this.#inner = wait;
  }
}
