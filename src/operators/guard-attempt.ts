import { Subscriber, take, type Observable, type Subscription } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/tool.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import { classify } from '../policy/classify.ts';
import { timeoutError } from './attempt-timeout.ts';
import type { Breaker, GivenPermit } from './breaker.ts';
import { circuitOpenError, settlePermit } from './circuit-breaker.ts';
import type { Expiry } from './expiry.ts';
import { expireFrom } from './guard-deadline.ts';
import { fromOutput, isPromiseLike } from './output.ts';
import { AttemptCount } from './retry-backoff.ts';

/** What a guard guards with, decided. */
export interface GuardTerms {
  readonly timeoutMs: number | undefined;
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
export type Guarded<T> = Observable<T> | ((context: GuardContext) => ToolOutput<T>);

/** The context of one attempt at work. Its signal is made when it is first asked for. */
class AttemptContext implements GuardContext {
  readonly attempt: number;
  readonly #subscription: Subscription;
  #controller: AbortController | undefined;
  #settled = false;

  constructor(attempt: number, subscription: Subscription) {
    this.attempt = attempt;
    this.#subscription = subscription;
  }

  get signal(): AbortSignal {
    const controller = (this.#controller ??= this.#make());
    return controller.signal;
  }

  /** Work that has settled is not aborted after the fact. Static, so that work cannot say it. */
  static settle(context: AttemptContext): void {
    context.#settled = true;
  }

  #make(): AbortController {
    const controller = new AbortController();
    this.#subscription.add(() => {
      if (!this.#settled) controller.abort();
    });
    return controller;
  }
}

/**
 * One attempt under all three guards, in one subscriber: `retryBackoff(circuitBreaker(attemptTimeout(guarded)))`. A failure that may be retried makes
 * the next attempt, which waits before it starts. A property test holds that it means the same as the three.
 */
export class GuardAttempt<T> extends Subscriber<T> {
  readonly #terms: GuardTerms;
  readonly #guarded: Guarded<T>;
  readonly #subscriber: Subscriber<T>;
  readonly #number: number;
  #count: AttemptCount | undefined;
  #startedAtMs = 0;
  #permit: GivenPermit | undefined;
  #deadline: Expiry | undefined;
  #gaveValue = false;
  #overtaken = false;

  constructor(terms: GuardTerms, guarded: Guarded<T>, subscriber: Subscriber<T>, number = 1, count?: AttemptCount) {
    // Not chained to it here: where the subscriber has gone, this would be unsubscribed before it is made.
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#terms = terms;
    this.#guarded = guarded;
    this.#subscriber = subscriber;
    this.#number = number;
    this.#count = count;
    subscriber.add(this);
  }

  start(): void {
    if (this.closed) return;
    const { timeoutMs, breaker, runtime } = this.#terms;
    this.#startedAtMs = runtime.now();
    const admission = breaker?.admit();
    if (admission?.admitted === false) return this.error(circuitOpenError(admission.retryAfterMs));
    this.#permit = admission;
    // Whoever heard of the breaker's change may have unsubscribed.
    if (this.closed) return this.#giveBack();
    this.#run();
    // What settles synchronously needs no timer.
    if (timeoutMs === undefined || this.closed) return;
    this.#deadline = expireFrom(this.#startedAtMs, timeoutMs, runtime, () => this.#overtake(timeoutMs));
  }

  /** Starts after a wait, unless that ends too late. */
  startAfter(delayMs: number, failure: unknown): void {
    const wait = this.#terms.runtime.after(delayMs).pipe(take(1));
    this.add(wait.subscribe(() => (this.#count?.late === true ? this.#subscriber.error(failure) : this.start())));
  }

  override unsubscribe(): void {
    if (this.closed) return;
    try {
      super.unsubscribe();
    } finally {
      this.#deadline?.cancel();
      if (!this.#overtaken) this.#giveBack();
    }
  }

  protected override _next(value: T): void {
    this.#gaveValue = true;
    this.#subscriber.next(value);
  }

  protected override _error(thrown: unknown): void {
    try {
      this.#failed(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    this.#permit?.success();
    try {
      this.#subscriber.complete();
    } finally {
      this.unsubscribe();
    }
  }

  #run(): void {
    const guarded = this.#guarded;
    if (typeof guarded === 'function') this.#work(guarded);
    else guarded.subscribe(this);
  }

  /** What `abortable` does. */
  #work(work: (context: GuardContext) => ToolOutput<T>): void {
    const context = new AttemptContext(this.#number, this);
    const fail = (error: unknown): void => {
      AttemptContext.settle(context);
      this.error(error);
    };
    try {
      const output = work(context);
      if (isPromiseLike(output)) {
        output.then((value) => {
          AttemptContext.settle(context);
          this.next(value);
          this.complete();
        }, fail);
      } else {
        fromOutput(output, () => AttemptContext.settle(context)).subscribe(this);
      }
    } catch (error) {
      fail(error);
    }
  }

  #overtake(timeoutMs: number): void {
    this.#overtaken = true;
    try {
      this.unsubscribe();
    } finally {
      // Whoever heard of the abort may have unsubscribed.
      if (this.#subscriber.closed) this.#giveBack();
      else this.#failed(timeoutError(timeoutMs));
    }
  }

  /** Unsubscribed before it ended. Says nothing to a permit that has. */
  #giveBack(): void {
    if (this.#gaveValue) this.#permit?.success();
    else this.#permit?.release();
  }

  /** Counts a failure, and tries again or passes it on. */
  #failed(thrown: unknown): void {
    const { retry, runtime } = this.#terms;
    const error = toToolExecutionError(thrown, () => runtime.wallNow());
    const { classification } = classify(error);
    settlePermit(this.#permit, breakerOutcome(error, classification), error);
    // Whoever heard of the breaker's change may have unsubscribed.
    if (this.#subscriber.closed) return;
    if (retry === undefined) return this.#subscriber.error(thrown);
    this.#count ??= new AttemptCount(retry, runtime, this.#startedAtMs);
    const delayMs = this.#count.delayAfterMs(error, classification);
    if (delayMs === undefined) return this.#subscriber.error(thrown);
    new GuardAttempt(this.#terms, this.#guarded, this.#subscriber, this.#number + 1, this.#count).startAfter(delayMs, thrown);
  }
}
