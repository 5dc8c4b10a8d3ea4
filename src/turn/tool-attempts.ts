import type { Observable } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Progress } from '../contract/tool.ts';
import { timeoutError } from '../operators/attempt-timeout.ts';
import { Attempts } from '../operators/attempts.ts';
import { expireAfter, queueOf, type Expiry, type ExpiryQueue } from '../operators/expiry.ts';
import { AttemptContext } from './attempt-context.ts';
import type { CallRecord } from './call-record.ts';
import type { GuardedTool } from './registry.ts';
import { fit } from './request.ts';

/** Attempts at a tool: how it is called, how long it may be silent, and what of all that it gives is its output. */
export abstract class ToolAttempts extends Attempts {
  protected readonly record: CallRecord;
  protected readonly guarded: GuardedTool;
  protected readonly input: unknown;
  #idle: Expiry | undefined;
  /** What the tool gave last, until the attempt is over. */
  #output: unknown;

  constructor(record: CallRecord, guarded: GuardedTool, input: unknown) {
    super(record.site.runtime);
    this.record = record;
    this.guarded = guarded;
    this.input = input;
  }

  /** The tool gave an output that fits its schema. */
  protected abstract gaveOutput(output: unknown): void;
  /** The tool says how far it has come. */
  protected abstract progressed(report: Progress): void;

  protected override get deadlines(): ExpiryQueue | undefined {
    const limitMs = Math.min(this.guarded.timeoutMs, this.record.call.hints?.timeoutMs ?? Infinity);
    // A call that goes straight through has none.
    return limitMs === Infinity ? undefined : queueOf(limitMs, this.runtime);
  }

  protected override begin(number: number): void {
    const { call, layer } = this.record;
    const { around } = layer;
    this.follow(around === undefined ? this.#execute(number) : around(call.callId, number, () => this.#execute(number)), number);
  }

  protected override attempt(startedAtMs: number): void {
    super.attempt(startedAtMs);
    if (this.isLive()) this.#watchIdle();
  }

  protected override listen(stream: Observable<unknown>, number: number): void {
    const work = stream.subscribe({
      next: (value) => this.next(number, value),
      error: (error: unknown) => this.fail(number, error),
      complete: () => this.complete(number),
    });
    if (this.isLive(number)) this.inner = work;
    else work.unsubscribe();
  }

  protected override gave(value: unknown): void {
    this.#output = value;
  }

  protected override succeeded(): void {
    // Before the tool is taken down: what it gave may be read only now.
    const { value: output, misfit, cause } = fit(this.guarded.tool.output, this.#output);
    if (!this.end()) return;
    if (misfit === undefined) return this.gaveOutput(output);
    // It may have had effects, and its output will not fit the next time either.
    this.failed(new ToolExecutionError('execution_error', `The output is malformed: ${misfit}`, { classification: 'permanent', uncertain: true, cause }));
  }

  protected override ended(): void {
    this.#output = undefined;
    this.#idle?.cancel();
    this.#idle = undefined;
    try {
      this.inner?.unsubscribe();
    } catch {
      // What a tool throws while it is torn down is its own: the call goes on.
    }
    this.inner = undefined;
  }

  #execute(number: number): unknown {
    const context = new AttemptContext(this.record, number, (report) => this.#hear(number, report));
    this.abortWith(context, number);
    // The registry holds tools of any input; each has just checked its own.
    return this.guarded.tool.execute(this.input as never, context);
  }

  #hear(number: number, report: Progress): void {
    if (!this.isLive(number)) return;
    this.#watchIdle();
    this.progressed(report);
  }

  /** Starts the silence that may last until the next progress. */
  #watchIdle(): void {
    const { idleTimeoutMs } = this.guarded;
    if (idleTimeoutMs === undefined) return;
    this.#idle?.cancel();
    this.#idle = expireAfter(idleTimeoutMs, this.runtime, () => this.overtake(timeoutError(idleTimeoutMs, 'Tool made no progress, timeout')));
  }
}
