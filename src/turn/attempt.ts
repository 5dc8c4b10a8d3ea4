import type { Subscription } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { Progress } from '../contract/tool.ts';
import { timeoutError } from '../operators/attempt-timeout.ts';
import { expireAfter, queueOf, type Expiry } from '../operators/expiry.ts';
import { fromOutput, isPromiseLike } from '../operators/output.ts';
import { AttemptContext, type ContextOwner } from './attempt-context.ts';
import type { GuardedTool } from './registry.ts';
import type { CallRecord } from './call-record.ts';
import { fit } from './request.ts';

/** Who made an attempt and hears how it goes; told of one end at most. */
export interface AttemptOwner {
  attemptSucceeded(output: unknown): void;
  attemptFailed(thrown: unknown): void;
  attemptProgressed(report: Progress): void;
}

/**
 * One physical execution of a tool under its timeouts: what `abortable`, `idleTimeout` and `attemptTimeout` do for a stream, in one object, since
 * a hundred thousand of these can be in flight. A property test holds that both mean the same.
 */
export class Attempt implements ContextOwner {
  readonly #owner: AttemptOwner;
  readonly #guarded: GuardedTool;
  readonly #runtime: Runtime;
  #controller: AbortController | undefined;
  #hard: Expiry | undefined;
  #idle: Expiry | undefined;
  #work: Subscription | undefined;
  #over = false;
  #aborted = false;
  #gaveValue = false;

  constructor(owner: AttemptOwner, guarded: GuardedTool, runtime: Runtime) {
    this.#owner = owner;
    this.#guarded = guarded;
    this.#runtime = runtime;
  }

  /** Whether it has emitted anything: then what it depends on is reachable. */
  get gaveValue(): boolean {
    return this.#gaveValue;
  }

  /** Calls the tool. It may settle before this returns. */
  start(record: CallRecord, input: unknown, number: number, startedAtMs: number): void {
    const { tool, timeoutMs } = this.#guarded;
    try {
      const { around } = record.layer;
      // The registry holds tools of any input; each has just checked its own.
      if (around === undefined) this.#follow(tool.execute(input as never, new AttemptContext(this, record, number)));
      else this.#follow(around(record.call.callId, number, () => tool.execute(input as never, new AttemptContext(this, record, number))));
    } catch (error) {
      this.#fail(error);
    }
    if (this.#over) return;
    const limitMs = Math.min(timeoutMs, record.call.hints?.timeoutMs ?? Infinity);
    // A call that goes straight through has none.
    if (limitMs === Infinity) return;
    this.#hard = queueOf(limitMs, this.#runtime).addFrom(startedAtMs, () => this.#overtake(timeoutError(limitMs)));
    this.#watchIdle();
  }

  /** Ends it from outside; its signal is aborted and nobody is told. */
  abort(): void {
    if (this.#over) return;
    this.#end();
    this.#abortSignal();
  }

  /** The attempt's signal, made when it is first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** The tool says how far it has come. */
  report(progress: Progress): void {
    if (this.#over) return;
    this.#watchIdle();
    this.#owner.attemptProgressed(progress);
  }

  #follow(output: unknown): void {
    if (isPromiseLike(output)) return this.#await(output);
    if (typeof output !== 'object' || output === null) return this.#succeed(output);
    this.#subscribe(output);
  }

  #await(output: PromiseLike<unknown>): void {
    output.then(
      (value) => this.#succeed(value),
      (error: unknown) => this.#fail(error),
    );
  }

  #subscribe(output: object): void {
    // Ended while it started: a stream is not even subscribed to.
    if (this.#over) return;
    let last: unknown;
    this.#work = fromOutput(output, () => undefined).subscribe({
      next: (value) => {
        last = value;
        this.#gaveValue = true;
      },
      error: (error: unknown) => this.#fail(error),
      complete: () => this.#succeed(last),
    });
    if (this.#over) this.#work.unsubscribe();
  }

  /** Starts the silence that may last until the next progress. */
  #watchIdle(): void {
    const { idleTimeoutMs } = this.#guarded;
    if (idleTimeoutMs === undefined) return;
    this.#idle?.cancel();
    this.#idle = expireAfter(idleTimeoutMs, this.#runtime, () => this.#overtake(timeoutError(idleTimeoutMs, 'Tool made no progress, timeout')));
  }

  #succeed(value: unknown): void {
    if (this.#over) return;
    const { value: output, misfit, cause } = fit(this.#guarded.tool.output, value);
    this.#end();
    if (misfit === undefined) return this.#owner.attemptSucceeded(output);
    // It may have had effects, and its output will not fit the next time either.
    this.#owner.attemptFailed(new ToolExecutionError('execution_error', `The output is malformed: ${misfit}`, { classification: 'permanent', uncertain: true, cause }));
  }

  /** It failed by itself: its signal is not aborted after the fact. */
  #fail(thrown: unknown): void {
    if (this.#over) return;
    this.#end();
    this.#owner.attemptFailed(thrown);
  }

  /** A limit passed: it is aborted first, so that nothing of it overlaps with what follows. */
  #overtake(error: ToolExecutionError): void {
    if (this.#over) return;
    this.abort();
    this.#owner.attemptFailed(error);
  }

  #end(): void {
    this.#over = true;
    this.#hard?.cancel();
    this.#idle?.cancel();
    try {
      this.#work?.unsubscribe();
    } catch {
      // What a tool throws while it is torn down is its own: the call goes on.
    }
  }

  #abortSignal(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }
}
