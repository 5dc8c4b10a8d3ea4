import { Subscriber, take, type Observable, type Subscription, type Unsubscribable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ClassifiedError, ErrorReader } from '../contract/tool-error.ts';
import { backoffDelayMs, retryPolicy } from '../policy/backoff.ts';
import { readAsCall } from '../policy/classify.ts';
import { retryDelayMs, retryRefusal, type RetryQuestion } from '../policy/retry-refusal.ts';
import { liveRuntime } from '../runtime.ts';
import { endWith } from './consumer.ts';
import { DirectStream } from './direct-stream.ts';

/** A stream shares no budget, and whoever retries it says that doing it twice does no harm. An open breaker is an error of its own. */
const ALONE = { breakerState: 'closed', budgetAvailable: true, effects: 'read', hasIdempotencyKey: false, retrySafe: true } as const;

/** What the attempts of one subscription have used up, and so what is left. */
export class AttemptCount {
  readonly #settings: RetryPolicy;
  readonly #runtime: Runtime;
  readonly #startedAtMs: number;
  #attempts = 0;
  #previousDelayMs: number | undefined;

  constructor(settings: RetryPolicy, runtime: Runtime, startedAtMs: number) {
    this.#settings = settings;
    this.#runtime = runtime;
    this.#startedAtMs = startedAtMs;
  }

  /** How long to wait after one more failed attempt; `undefined` when it was the last one. */
  delayAfterMs({ error, classification }: ClassifiedError): number | undefined {
    const attempt = ++this.#attempts;
    const { maxAttempts, maxTotalTimeMs } = this.#settings;
    const nextDelayMs = backoffDelayMs(this.#settings, attempt - 1, this.#previousDelayMs, () => this.#runtime.random());
    const failure: RetryQuestion = { error, classification, attempt, maxAttempts, maxTotalTimeMs, nextDelayMs, elapsedMs: this.#elapsedMs, ...ALONE };
    if (error.kind === 'canceled' || retryRefusal(failure) !== undefined) return undefined;
    this.#previousDelayMs = nextDelayMs;
    return retryDelayMs(failure);
  }

  /** A timer can come late, behind a stalled event loop: no attempt starts once the time is over. */
  get late(): boolean {
    return this.#elapsedMs >= this.#settings.maxTotalTimeMs;
  }

  get #elapsedMs(): number {
    return this.#runtime.now() - this.#startedAtMs;
  }
}

/** One attempt: what it emits goes on, its failure goes to the run. */
class RetriedSubscriber<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #run: RetryRun<T>;

  constructor(subscriber: Subscriber<T>, run: RetryRun<T>) {
    // Not chained to it: the run ends its attempt.
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#subscriber = subscriber;
    this.#run = run;
  }

  protected override _next(value: T): void {
    this.#subscriber.next(value);
  }

  protected override _error(thrown: unknown): void {
    try {
      this.#run.failed(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      this.#subscriber.complete();
    } finally {
      this.unsubscribe();
    }
  }
}

/** The attempts of one subscription, one after the other. RxJS's `retry` would be assembled anew for each subscription, to have a state of its own. */
class RetryRun<T> implements Unsubscribable {
  readonly #source: Observable<T>;
  readonly #subscriber: Subscriber<T>;
  readonly #runtime: Runtime;
  readonly #settings: RetryPolicy;
  readonly #read: ErrorReader;
  readonly #startedAtMs: number;
  #count: AttemptCount | undefined;
  #attempt: Subscription | undefined;
  #wait: Subscription | undefined;
  #over = false;

  constructor(source: Observable<T>, subscriber: Subscriber<T>, settings: RetryPolicy, runtime: Runtime, read: ErrorReader) {
    this.#source = source;
    this.#subscriber = subscriber;
    this.#runtime = runtime;
    this.#settings = settings;
    this.#read = read;
    this.#startedAtMs = runtime.now();
    endWith(subscriber, this);
  }

  start(): void {
    if (this.#over) return;
    const attempt = new RetriedSubscriber(this.#subscriber, this);
    this.#attempt = attempt;
    this.#source.subscribe(attempt);
  }

  failed(thrown: unknown): void {
    const count = (this.#count ??= new AttemptCount(this.#settings, this.#runtime, this.#startedAtMs));
    const delayMs = count.delayAfterMs(this.#read(thrown, () => this.#runtime.wallNow()));
    if (delayMs === undefined) return this.#subscriber.error(thrown);
    const wait = this.#runtime.after(delayMs).pipe(take(1)).subscribe(() => {
      if (count.late) return this.#subscriber.error(thrown);
      this.#attempt?.unsubscribe();
      this.start();
    });
    // One that was over at once has made way for the next attempt's.
    if (this.#over) wait.unsubscribe();
    else if (!wait.closed) this.#wait = wait;
  }

  /** Whoever listened has gone. */
  unsubscribe(): void {
    this.#over = true;
    this.#wait?.unsubscribe();
    this.#attempt?.unsubscribe();
  }
}

/**
 * Subscribes again after a transient failure, with jittered backoff, until attempts or time are used up.
 *
 * Emits what each attempt emits; values from before a failure stay emitted, as with RxJS's own `retry`. A permanent failure, an open
 * circuit breaker and a server that asked not to be asked again end it at once; `Retry-After` is a floor under each delay.
 * Unsubscribing during a backoff cancels its timer. Each subscription counts its own attempts.
 *
 * @param policy what differs from the interactive profile: exponential, 100 ms doubling to 800 ms, +-10 %, 5 attempts, 2 s in all (SI 2.1)
 * @param runtime where time and chance come from
 * @throws RangeError for an option out of its range; (as the stream's error) the last failure
 *
 * @example
 * search$.pipe(attemptTimeout(2_000), circuitBreaker(breaker), retryBackoff({ maxAttempts: 4 }));
 */
export function retryBackoff(policy: Partial<RetryPolicy> = {}, runtime: Runtime = liveRuntime): <T>(source: Observable<T>) => Observable<T> {
  return retryBackoffReading(readAsCall, policy, runtime);
}

/** The same, for who reads errors in another way. */
export function retryBackoffReading(read: ErrorReader, policy: Partial<RetryPolicy>, runtime: Runtime): <T>(source: Observable<T>) => Observable<T> {
  const settings = retryPolicy(policy);
  return <T>(source: Observable<T>): Observable<T> => new DirectStream((subscriber) => new RetryRun(source, subscriber, settings, runtime, read).start());
}
