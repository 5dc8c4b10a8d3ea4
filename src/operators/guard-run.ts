import { Subscriber, take, type Observable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/output.ts';
import { readAsCall } from '../policy/classify.ts';
import { AbortableStream } from './abortable.ts';
import { AttemptSignal, Attempts } from './attempts.ts';
import type { Breaker } from './breaker.ts';
import { circuitOpenError } from './circuit-breaker.ts';
import { endWith } from './consumer.ts';
import type { ExpiryQueue } from './expiry.ts';
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

/** The context of one attempt at work. */
class WorkContext extends AttemptSignal implements GuardContext {
  readonly attempt: number;

  constructor(attempt: number) {
    super();
    this.attempt = attempt;
  }

  override get signal(): AbortSignal {
    return AttemptSignal.signalOf(this);
  }
}

/** Hears a stream for one attempt. */
class StreamAttempt extends Subscriber<unknown> {
  readonly #run: Attempts;
  readonly #number: number;

  constructor(run: Attempts, number: number) {
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#run = run;
    this.#number = number;
  }

  protected override _next(value: unknown): void {
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
 * All attempts of one subscription under the three guards: `retryBackoff(circuitBreaker(attemptTimeout(guarded)))`. A property test holds that it
 * means the same.
 *
 * Not a Subscriber itself: that would be one more to make and to take down for each call, and work that gives a Promise needs none.
 */
export class GuardRun<T> extends Attempts {
  readonly #terms: GuardTerms;
  readonly #guarded: Guarded<T>;
  readonly #subscriber: Subscriber<T>;
  #count: AttemptCount | undefined;
  #startedAtMs = 0;

  constructor(terms: GuardTerms, guarded: Guarded<T>, subscriber: Subscriber<T>) {
    super(terms.runtime);
    this.#terms = terms;
    this.#guarded = guarded;
    this.#subscriber = subscriber;
    endWith(subscriber, this);
  }

  /** Asks for admission, and begins the next attempt. */
  start(): void {
    if (this.closed) return;
    const atMs = this.runtime.now();
    this.#startedAtMs = atMs;
    const admission = this.#terms.breaker?.admit(atMs);
    if (admission?.admitted === false) return this.failed(circuitOpenError(admission.retryAfterMs));
    if (this.hold(admission)) this.attempt(atMs);
  }

  protected override get deadlines(): ExpiryQueue | undefined {
    return this.#terms.timeouts;
  }

  protected override begin(number: number): void {
    const guarded = this.#guarded;
    const isWork = typeof guarded === 'function';
    // Right behind `abortable` it is the same as `from`, and one subscriber less.
    if (!isWork && !(guarded instanceof AbortableStream)) return this.listen(guarded, number);
    const context = new WorkContext(number);
    this.abortWith(context, number);
    if (isWork) return this.follow(guarded(context), number);
    const { work } = guarded;
    this.follow(work(context.signal), number);
  }

  protected override listen(stream: Observable<unknown>, number: number): void {
    const attempt = new StreamAttempt(this, number);
    this.inner = attempt;
    stream.subscribe(attempt);
  }

  protected override gave(value: unknown): void {
    this.#subscriber.next(value as T);
  }

  protected override succeeded(): void {
    if (!this.end()) return;
    this.takePermit()?.success();
    this.#subscriber.complete();
  }

  /** Counts a failure, and tries again after a wait, unless that ends too late, or passes it on. */
  protected override failed(thrown: unknown): void {
    const { runtime } = this;
    const { retry } = this.#terms;
    const failure = readAsCall(thrown, () => runtime.wallNow());
    this.settleFailure(failure);
    // Whoever heard of the breaker's change may have unsubscribed.
    if (this.closed) return;
    if (retry === undefined) return this.#subscriber.error(thrown);
    const count = (this.#count ??= new AttemptCount(retry, runtime, this.#startedAtMs));
    const delayMs = count.delayAfterMs(failure);
    if (delayMs === undefined) return this.#subscriber.error(thrown);
    const wait = runtime
      .after(delayMs)
      .pipe(take(1))
      .subscribe(() => (count.late ? this.#subscriber.error(thrown) : this.start()));
    // One that was over at once has made way for the next attempt.
    if (!wait.closed) this.inner = wait;
  }
}
