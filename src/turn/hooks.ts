import { from, isObservable, materialize, merge, take, type Observable, type Subscription } from 'rxjs';
import type { HookAttempt, HookCall, HookReport, Hooks, Preparation } from '../contract/hooks.ts';
import type { HookName } from '../contract/event.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../entrance/structure.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { expiry } from '../operators/expiry.ts';
import { isPromiseLike } from '../operators/output.ts';
import { WHILE_BLOCKED } from '../policy/advice.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import type { CallContext } from './call-context.ts';
import type { GuardedTool } from './registry.ts';

/** CLAW's hosts give a hook this long. */
const HOOK_TIMEOUT_MS = 15_000;

type Answer = { readonly value: unknown } | { readonly problem: 'failed' | 'timed_out'; readonly message: string };

/** Whom a hook is asked about. */
export interface HookSubject {
  readonly record: CallContext;
  readonly guarded: GuardedTool | undefined;
  readonly input: unknown;
}

/** How an attempt ended, for `afterToolCall`. */
export interface HookEnd {
  readonly durationMs: number;
  readonly output?: unknown;
  readonly error?: Error;
  readonly result?: ToolResultEnvelope;
}

const callOf = ({ record, guarded, input }: HookSubject): HookCall => {
  const { call, site, toolName } = record;
  const { toolCallId, nodeId, session, actor, tenant, tags } = call;
  const { turnId } = site;
  return {
    callId: call.callId,
    toolName,
    input,
    effects: guarded?.effects ?? 'read',
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(turnId === undefined ? {} : { turnId }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(session === undefined ? {} : { session }),
    ...(actor === undefined ? {} : { actor }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(tags === undefined ? {} : { tags }),
  };
};

/** Why an answer says no: any `block` but `undefined`, `null` and `false`, since a hook that means no must not be misread. */
const blockOf = (value: unknown): string | undefined => {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const { block } = value as { readonly block?: unknown };
    if (block === undefined || block === null || block === false) return undefined;
    return typeof block === 'string' && block !== '' ? block : 'a hook gave no reason';
  } catch {
    return 'its answer cannot be read';
  }
};

/** What of an answer of `prepareCall` changes the call. */
const preparationOf = (value: unknown): Preparation => {
  const key = read(value, 'idempotencyKey');
  return {
    ...(typeof value === 'object' && value !== null && 'input' in value ? { input: read(value, 'input') } : {}),
    ...(key === undefined ? {} : { idempotencyKey: key as string }),
  };
};

const isKey = (key: unknown): boolean => key === undefined || (typeof key === 'string' && key !== '' && key.length <= 512);

/** The host's hooks, asked with a limit, and failing closed. */
export class HookRunner {
  readonly #hooks: Hooks;
  readonly #timeoutMs: number;

  constructor(hooks: Hooks, timeoutMs: number = HOOK_TIMEOUT_MS) {
    checkKeys('hooks', hooks, ['prepareCall', 'beforeToolCall', 'afterToolCall']);
    checkNumber('hookTimeoutMs', timeoutMs, positiveDuration);
    for (const [name, hook] of Object.entries(hooks)) if (hook !== undefined && typeof hook !== 'function') throw new RangeError(`hooks.${name} must be a function, not ${typeof hook}`);
    this.#hooks = hooks;
    this.#timeoutMs = timeoutMs;
  }

  /** Asks before a call: what it changes, or why it must not run. Told at once, or later. */
  prepare(subject: HookSubject, told: (preparation: Preparation, error?: ToolExecutionError) => void): Subscription | undefined {
    const { prepareCall } = this.#hooks;
    if (prepareCall === undefined) {
      told({});
      return undefined;
    }
    return this.#ask('prepareCall', subject.record, () => prepareCall(callOf(subject)), (answer) => {
      const error = this.#refusal('prepareCall', subject.record, 0, answer);
      if (error !== undefined) return told({}, error);
      const preparation = preparationOf('value' in answer ? answer.value : undefined);
      if (!isKey(preparation.idempotencyKey)) {
        const message = 'prepareCall must give an idempotencyKey of 1 to 512 characters';
        return told({}, this.#refusal('prepareCall', subject.record, 0, { problem: 'failed', message }));
      }
      if (Object.keys(preparation).length > 0) subject.record.emit({ type: 'hook', hook: 'prepareCall', outcome: 'changed', attempt: 0 });
      told(preparation);
    });
  }

  /** Asks before an attempt, or as attempt 0 about a call that ends without one. */
  before(subject: HookSubject, attempt: number, told: (error?: ToolExecutionError) => void): Subscription | undefined {
    const { beforeToolCall } = this.#hooks;
    subject.record.hooked = true;
    if (beforeToolCall === undefined) {
      told();
      return undefined;
    }
    const asked: HookAttempt = { ...callOf(subject), attempt };
    return this.#ask('beforeToolCall', subject.record, () => beforeToolCall(asked), (answer) => told(this.#refusal('beforeToolCall', subject.record, attempt, answer)));
  }

  /** Tells how it ended. Nobody waits for it, and what it throws changes nothing. */
  after(subject: HookSubject, attempt: number, end: HookEnd): void {
    const { afterToolCall } = this.#hooks;
    if (afterToolCall === undefined) return;
    const report: HookReport = { ...callOf(subject), attempt, ...end };
    const { record } = subject;
    this.#ask('afterToolCall', record, () => afterToolCall(report), (answer) => {
      if ('problem' in answer) record.emit({ type: 'hook', hook: 'afterToolCall', outcome: answer.problem, attempt, message: answer.message });
    });
  }

  #ask(hook: HookName, { site }: CallContext, asked: () => unknown, told: (answer: Answer) => void): Subscription | undefined {
    let answer: unknown;
    try {
      answer = asked();
    } catch (error) {
      told({ problem: 'failed', message: `${hook} threw: ${toToolExecutionError(error).message}` });
      return undefined;
    }
    if (!isObservable(answer) && !isPromiseLike(answer)) {
      told({ value: answer });
      return undefined;
    }
    const answer$: Observable<unknown> = from(answer as PromiseLike<unknown>);
    const answered$ = answer$.pipe(take(1), materialize());
    return merge(answered$, expiry(this.#timeoutMs, site.runtime))
      .pipe(take(1))
      .subscribe((first) => {
        if (first === 0) return told({ problem: 'timed_out', message: `${hook} gave no answer within ${this.#timeoutMs} ms` });
        if (first.kind === 'E') return told({ problem: 'failed', message: `${hook} failed: ${toToolExecutionError(first.error).message}` });
        told({ value: first.kind === 'N' ? first.value : undefined });
      });
  }

  /** The error of an answer that blocks, told in the trace. */
  #refusal(hook: HookName, record: CallContext, attempt: number, answer: Answer): ToolExecutionError | undefined {
    if ('problem' in answer) {
      record.emit({ type: 'hook', hook, outcome: answer.problem, attempt, message: answer.message });
      return new ToolExecutionError('blocked', `The call is blocked, since ${answer.message}`);
    }
    const reason = blockOf(answer.value);
    if (reason === undefined) return undefined;
    record.emit({ type: 'hook', hook, outcome: 'blocked', attempt, message: reason });
    return new ToolExecutionError('blocked', `A hook blocked the call: ${reason}`, { safeMessage: `The call was blocked: ${reason.replace(/[.\s]+$/, '')}. ${WHILE_BLOCKED}` });
  }
}
