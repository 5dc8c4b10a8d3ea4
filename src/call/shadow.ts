import { Subject, takeUntil } from 'rxjs';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { ShadowAct } from '../contract/event.ts';
import type { DedupeReading } from '../contract/store.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { Admission } from '../operators/breaker/permit.ts';
import { acquireKey, type KeyAnswer, type TellKeyStep } from '../operators/dedupe/key-acquisition.ts';
import type { Lease } from '../operators/dedupe/lease.ts';
import { circuitOpenError } from '../operators/circuit-breaker.ts';
import { backoffDelayMs } from '../policy/retry/backoff.ts';
import { breakerOutcome } from '../policy/breaker/outcome.ts';
import { classify } from '../policy/recovery/classify.ts';
import { decideRecovery } from '../policy/recovery/decide.ts';
import { breakerOf } from './attempt/admission.ts';
import type { CallContext } from './context.ts';
import { unattempted } from './decide.ts';
import { claimOf, keyOf, termsOf } from './idempotency.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { readInput } from './request.ts';
import { outcomeOf } from './replay.ts';
import type { CallOutcome } from './result.ts';

/**
 * A call in shadow mode: the tool runs as if there were no layer, and `shadow` events say what the layer would
 * have done. Breakers and keys are kept as they would be, the keys in a space of their own, so that nothing of it is
 * ever replayed; neither refuses anything.
 */
export class ShadowWatch {
  readonly #context: CallContext;
  readonly #guarded: GuardedTool;
  readonly #admission: Admission | undefined;
  #lease: Lease | undefined;
  #ending: { readonly result: ToolResultEnvelope | undefined; readonly kind: ToolErrorKind | undefined } | undefined;

  constructor(context: CallContext, guarded: GuardedTool) {
    this.#context = context;
    this.#guarded = guarded;
    const { error } = readInput(guarded.tool.input, context.call.input);
    if (error !== undefined) this.#tell('reject', error.kind, 'The input does not fit the schema of the tool');
    const breaker = breakerOf(context, guarded);
    this.#admission = breaker?.admit(undefined, context.call.callId);
    if (breaker !== undefined && this.#admission?.admitted === false)
      this.#tell('reject', 'circuit_open', circuitOpenError(breaker, this.#admission.retryAfterMs).message);
    this.#claim();
  }

  /** How the tool's own call ended. */
  end(outcome: CallOutcome): void {
    const { error, result } = outcome;
    this.#ending = { result, kind: error?.kind };
    const { timeoutMs } = this.#guarded;
    if (result.durationMs > timeoutMs)
      this.#tell('time_out', 'timeout', `The attempt took ${Math.round(result.durationMs)} ms of ${timeoutMs}`);
    if (error !== undefined) this.#failed(error);
    else if (this.#admission?.admitted === true) this.#admission.success();
    this.#keep();
  }

  /** The call was cut short, by its caller or its time: nothing is held on to. */
  cutShort(kind: ToolErrorKind): void {
    if (this.#ending !== undefined) return;
    this.#ending = { result: undefined, kind };
    if (this.#admission?.admitted === true) this.#admission.release();
    this.#keep();
  }

  #failed(error: ToolExecutionError): void {
    const { call, site, remainingMs, toolName } = this.#context;
    const { retry, effects, enforcesKey, safetyCritical, classification: overrides } = this.#guarded;
    const { classification, rule } = classify(error, overrides);
    if (this.#admission?.admitted === true) {
      const counts = breakerOutcome(error, classification, rule);
      if (counts === 'failure') this.#admission.failure(error);
      else if (counts === 'success') this.#admission.success();
      else if (counts === 'answered') this.#admission.answered();
      else this.#admission.ignore();
    }
    const decision = decideRecovery({
      ...unattempted,
      toolName,
      callId: call.callId,
      turnId: site.turnId,
      error,
      classification,
      breakerState: 'closed',
      turnRemainingMs: remainingMs,
      required: call.required,
      attempt: 1,
      maxAttempts: retry.maxAttempts,
      maxTotalTimeMs: retry.maxTotalTimeMs,
      nextDelayMs: backoffDelayMs(retry, 0, undefined, () => site.runtime.random()),
      effects,
      hasIdempotencyKey: enforcesKey,
      safetyCritical,
    });
    if (decision.strategy === 'retry')
      this.#tell('retry', error.kind, `A retry after ${Math.round(decision.delayMs ?? 0)} ms`);
  }

  /** What the call would have met under its key, in a space of keys of its own. It never waits. */
  #claim(): void {
    try {
      const key = keyOf(this.#context, this.#guarded);
      if (key === undefined) return;
      const claim = claimOf(this.#context, this.#guarded, { ...key, key: `shadow:${key.key}` });
      const waits$ = new Subject<void>();
      const tell: TellKeyStep = (step) => {
        if (step !== 'waiting') return;
        this.#tell('wait', 'duplicate_in_flight', 'The same call is running');
        waits$.next();
      };
      acquireKey(claim, termsOf(this.#context, this.#guarded), tell)
        .pipe(takeUntil(waits$))
        .subscribe((answer) => this.#answered(answer));
    } catch (error) {
      this.#refused(toToolExecutionError(error));
    }
  }

  #answered(answer: KeyAnswer): void {
    if (answer.act === 'refuse') return this.#refused(answer.error);
    if (answer.act === 'replay') return this.#replayed(answer.reading);
    this.#lease = answer.lease;
    answer.lease?.lost$.subscribe();
    // A store that answers later than the tool.
    this.#keep();
  }

  #refused(error: ToolExecutionError): void {
    this.#tell('reject', error.kind, error.message);
  }

  #replayed({ record }: DedupeReading): void {
    this.#tell(
      'replay',
      record.state,
      `The ${record.state === 'done' ? 'result' : 'failure'} of call ${record.request.requestId}`,
    );
  }

  /** The record of the key, without the result: it is never given to anyone. */
  #keep(): void {
    if (this.#lease === undefined || this.#ending === undefined) return;
    const { result, kind } = this.#ending;
    const { payload: _, ...outcome } = outcomeOf(this.#context, this.#guarded.dedupe, result, kind) ?? {};
    if ('state' in outcome) this.#lease.settled(outcome).subscribe();
    else this.#lease.release();
  }

  #tell(would: ShadowAct, reason: string, message: string): void {
    this.#context.emit({ type: 'shadow', would, reason, message });
  }
}
