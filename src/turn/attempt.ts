import type { Subscription } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { Progress, ToolContext } from '../contract/tool.ts';
import { timeoutError } from '../operators/attempt-timeout.ts';
import { expireAfter, type Expiry } from '../operators/expiry.ts';
import { fromOutput, isPromiseLike } from '../operators/output.ts';
import type { GuardedTool } from './registry.ts';
import { worded, type Call } from './request.ts';

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
export class Attempt {
  readonly #owner: AttemptOwner;
  readonly #guarded: GuardedTool;
  readonly #runtime: Runtime;
  #controller: AbortController | undefined;
  #hard: Expiry | undefined;
  #idle: Expiry | undefined;
  #work: Subscription | undefined;
  #over = false;
  #aborted = false;

  constructor(owner: AttemptOwner, guarded: GuardedTool, runtime: Runtime) {
    this.#owner = owner;
    this.#guarded = guarded;
    this.#runtime = runtime;
  }

  /** Calls the tool. It may settle before this returns. */
  start(call: Call, input: unknown, number: number): void {
    const { tool, timeoutMs } = this.#guarded;
    try {
      // The registry holds tools of any input; each has just checked its own.
      this.#follow(tool.execute(input as never, this.#context(call, number)));
    } catch (error) {
      this.#fail(error);
    }
    if (this.#over) return;
    const limitMs = Math.min(timeoutMs, call.hints?.timeoutMs ?? Infinity);
    this.#hard = expireAfter(limitMs, this.#runtime, () => this.#fail(timeoutError(limitMs)));
    this.#watchIdle();
  }

  /** Ends it from outside; its signal is aborted and nobody is told. */
  abort(): void {
    if (this.#over) return;
    this.#end();
    this.#abortSignal();
  }

  #context({ idempotencyKey, callId, traceparent, baggage }: Call, attempt: number): ToolContext {
    const signal = (): AbortSignal => this.#signal();
    return {
      // Made when it is first asked for: most of an attempt's memory is its signal.
      get signal() {
        return signal();
      },
      attempt,
      callKey: idempotencyKey ?? callId,
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(baggage === undefined ? {} : { baggage }),
      progress: (report) => {
        if (this.#over) return;
        this.#watchIdle();
        this.#owner.attemptProgressed(report);
      },
    };
  }

  #signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  #follow(output: unknown): void {
    if (isPromiseLike(output)) {
      output.then(
        (value) => this.#succeed(value),
        (error: unknown) => this.#fail(error),
      );
      return;
    }
    if (typeof output !== 'object' || output === null) return this.#succeed(output);
    let last: unknown;
    this.#work = fromOutput(output, () => undefined).subscribe({
      next: (value) => (last = value),
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
    this.#idle = expireAfter(idleTimeoutMs, this.#runtime, () => this.#fail(timeoutError(idleTimeoutMs, 'Tool made no progress, timeout')));
  }

  #succeed(value: unknown): void {
    if (this.#over) return;
    const { output: schema } = this.#guarded.tool;
    const parsed = schema?.safeParse(value);
    this.#end();
    if (parsed?.success === false) {
      // It may have had effects, and its output will not fit the next time either.
      const error = new ToolExecutionError('execution_error', `The output is malformed: ${worded(parsed.error)}`, { classification: 'permanent', uncertain: true });
      return this.#owner.attemptFailed(error);
    }
    this.#owner.attemptSucceeded(parsed === undefined ? value : parsed.data);
  }

  #fail(thrown: unknown): void {
    if (this.#over) return;
    const timedOut = thrown instanceof ToolExecutionError && thrown.kind === 'timeout';
    this.#end();
    // A tool that failed by itself is not aborted after the fact; one that was overtaken is.
    if (timedOut) this.#abortSignal();
    this.#owner.attemptFailed(thrown);
  }

  #end(): void {
    this.#over = true;
    this.#hard?.cancel();
    this.#idle?.cancel();
    this.#work?.unsubscribe();
  }

  #abortSignal(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }
}
