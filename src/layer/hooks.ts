import {
  catchError,
  defer,
  from,
  isObservable,
  map,
  of,
  tap,
  type MonoTypeOperatorFunction,
  type Observable,
} from 'rxjs';
import type { HookAttempt, HookCall, HookReport, Hooks, Preparation } from '../contract/hooks.ts';
import type { HookName, ToolEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { answerWithin } from '../operators/timing/answer-within.ts';
import { isPromiseLike } from '../operators/work/output.ts';
import { WHILE_BLOCKED } from '../policy/advice.ts';
import { checkKeys, checkNumber, given, positiveDuration } from '../policy/check.ts';
import type { GuardedTool } from './registry.ts';

/** CLAW's hosts give a hook this long. */
const HOOK_TIMEOUT_MS = 15_000;

/** The code of a call that is blocked since its host's hook failed, and not by a decision. */
export const HOOK_FAILED = 'hook_failed';

interface Problem {
  readonly problem: 'failed' | 'timed_out';
  readonly message: string;
}
type Answer = { readonly value: unknown } | Problem;

const NO_KEY: Problem = {
  problem: 'failed',
  message: 'prepareCall must give an idempotencyKey of 1 to 512 characters',
};

/** A call as its hooks know it. */
export interface HookedCall {
  readonly call: Omit<HookCall, 'toolName' | 'input' | 'effects' | 'turnId'>;
  readonly site: { readonly runtime: Runtime; readonly turnId?: string };
  readonly toolName: string;
  /** Its hooks were asked about an attempt. */
  hooked: boolean;
  /** For how long it waited for them, but for one that is asked now, and since when that is. */
  hooksMs: number;
  hookedAtMs: number | undefined;
  emit(
    event: Omit<
      Extract<ToolEvent, { readonly type: 'hook' }>,
      'seq' | 'atMs' | 'source' | 'callId' | 'toolName' | 'turnId' | 'nodeId' | 'late'
    >,
  ): void;
}

/** Whom a hook is asked about. */
export interface HookSubject {
  readonly context: HookedCall;
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

const callOf = ({ context, guarded, input }: HookSubject): HookCall => {
  const { call, site, toolName } = context;
  const { toolCallId, nodeId, session, actor, tenant, tags } = call;
  const { turnId } = site;
  return {
    callId: call.callId,
    toolName,
    input,
    effects: guarded?.effects ?? 'read',
    ...given({ toolCallId, turnId, nodeId, session, actor, tenant, tags }),
  };
};

/** What may hold an answer that nobody has read. */
const NO_ANSWER =
  'a hook gave a function, a list or a stream of another kind, where undefined or { block } is an answer';

const isOfOddKind = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return typeof value === 'function';
  try {
    return Symbol.iterator in value || Symbol.asyncIterator in value || 'subscribe' in value;
  } catch {
    // What cannot be looked at cannot be read either, which is said below.
    return false;
  }
};

/**
 * Why an answer says no: any `block` but `undefined`, `null` and `false`, since a hook that means no must not be
 * misread.
 */
const blockOf = (value: unknown): string | undefined => {
  if (isOfOddKind(value)) return NO_ANSWER;
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    const { block } = value as { readonly block?: unknown };
    if (block === undefined || block === null || block === false) return undefined;
    return typeof block === 'string' && block !== '' ? block : 'a hook gave no reason';
  } catch {
    return 'its answer cannot be read';
  }
};

const isKey = (key: unknown): boolean =>
  key === undefined || (typeof key === 'string' && key !== '' && key.length <= 512);

/**
 * What of an answer of `prepareCall` changes the call; a problem where that cannot be read, since the call must not go
 * on without it.
 */
const preparationOf = (value: unknown): Preparation | Problem => {
  if (typeof value !== 'object' || value === null) return {};
  try {
    const { idempotencyKey } = value as Preparation;
    if (!isKey(idempotencyKey)) return NO_KEY;
    return {
      ...('input' in value ? { input: value.input } : {}),
      ...given({ idempotencyKey }),
    };
  } catch (error) {
    return {
      problem: 'failed',
      message: `the answer of prepareCall cannot be read: ${toToolExecutionError(error).message}`,
    };
  }
};

/** Counts how long the call waits for an answer: one that lets it pass is told nowhere else. */
const waitedBy = (context: HookedCall): MonoTypeOperatorFunction<Answer> => {
  const askedAtMs = (context.hookedAtMs = context.site.runtime.now());
  return tap(() => {
    context.hooksMs += Math.max(0, context.site.runtime.now() - askedAtMs);
    context.hookedAtMs = undefined;
  });
};

/** The host's hooks, asked with a limit, and failing closed. */
export class HookRunner {
  readonly #hooks: Hooks;
  readonly #timeoutMs: number;

  constructor(hooks: Hooks, timeoutMs: number = HOOK_TIMEOUT_MS) {
    checkKeys('hooks', hooks, ['prepareCall', 'beforeToolCall', 'afterToolCall']);
    checkNumber('hookTimeoutMs', timeoutMs, positiveDuration);
    for (const [name, hook] of Object.entries(hooks))
      if (hook !== undefined && typeof hook !== 'function')
        throw new RangeError(`hooks.${name} must be a function, not ${typeof hook}`);
    this.#hooks = hooks;
    this.#timeoutMs = timeoutMs;
  }

  /** Asks before a call: emits what it changes, or why it must not run. */
  prepare(subject: HookSubject): Observable<Preparation | ToolExecutionError> {
    const { prepareCall } = this.#hooks;
    if (prepareCall === undefined) return of({});
    const { context } = subject;
    return this.#ask('prepareCall', context, () => prepareCall(callOf(subject))).pipe(
      waitedBy(context),
      map((answer) => {
        const refusal = this.#refusal('prepareCall', context, 0, answer);
        if (refusal !== undefined) return refusal;
        const preparation = preparationOf('value' in answer ? answer.value : undefined);
        if ('problem' in preparation) return this.#failed('prepareCall', context, 0, preparation);
        if (Object.keys(preparation).length > 0)
          context.emit({ type: 'hook', hook: 'prepareCall', outcome: 'changed', attempt: 0 });
        return preparation;
      }),
    );
  }

  /**
   * Asks before an attempt, or as attempt 0 about a call that ends without one: emits why it must not run, or
   * `undefined`.
   */
  before(subject: HookSubject, attempt: number): Observable<ToolExecutionError | undefined> {
    const { beforeToolCall } = this.#hooks;
    const { context } = subject;
    context.hooked = true;
    if (beforeToolCall === undefined) return of(undefined);
    const asked: HookAttempt = { ...callOf(subject), attempt };
    return this.#ask('beforeToolCall', context, () => beforeToolCall(asked)).pipe(
      waitedBy(context),
      map((answer) => this.#refusal('beforeToolCall', context, attempt, answer)),
    );
  }

  /** Calls `afterToolCall` with how it ended. Nobody waits for its answer, and what it throws changes nothing. */
  after(subject: HookSubject, attempt: number, end: HookEnd): void {
    const { afterToolCall } = this.#hooks;
    if (afterToolCall === undefined) return;
    const { context } = subject;
    const report: HookReport = { ...callOf(subject), attempt, ...end };
    this.#ask('afterToolCall', context, () => afterToolCall(report)).subscribe((answer) => {
      if ('problem' in answer)
        context.emit({
          type: 'hook',
          hook: 'afterToolCall',
          outcome: answer.problem,
          attempt,
          message: answer.message,
        });
    });
  }

  /** The hook's one answer: at once, or within its time. */
  #ask(hook: HookName, { site }: HookedCall, asked: () => unknown): Observable<Answer> {
    return defer(() => {
      const answer = asked();
      return isObservable(answer) || isPromiseLike(answer)
        ? this.#later(hook, site.runtime, from(answer as PromiseLike<unknown>))
        : of({ value: answer });
    }).pipe(
      catchError((error: unknown) =>
        of({ problem: 'failed', message: `${hook} threw: ${toToolExecutionError(error).message}` } as const),
      ),
    );
  }

  #later(hook: HookName, runtime: Runtime, answer$: Observable<unknown>): Observable<Answer> {
    return answerWithin(answer$, this.#timeoutMs, runtime).pipe(
      map((first) => {
        if (first === undefined)
          return { problem: 'timed_out', message: `${hook} gave no answer within ${this.#timeoutMs} ms` };
        if (first.kind === 'E')
          return { problem: 'failed', message: `${hook} failed: ${toToolExecutionError(first.error).message}` };
        return { value: first.kind === 'N' ? first.value : undefined };
      }),
    );
  }

  /** The error of an answer that blocks; its event goes to the trace. */
  #refusal(hook: HookName, call: HookedCall, attempt: number, answer: Answer): ToolExecutionError | undefined {
    if ('problem' in answer) return this.#failed(hook, call, attempt, answer);
    const reason = blockOf(answer.value);
    if (reason === undefined) return undefined;
    call.emit({ type: 'hook', hook, outcome: 'blocked', attempt, message: reason });
    const safeMessage = `The call was blocked: ${reason.replace(/[.\s]+$/, '')}. ${WHILE_BLOCKED}`;
    return new ToolExecutionError('blocked', `A hook blocked the call: ${reason}`, { safeMessage });
  }

  /** A hook that fails lets nothing pass. */
  #failed(hook: HookName, call: HookedCall, attempt: number, { problem, message }: Problem): ToolExecutionError {
    call.emit({ type: 'hook', hook, outcome: problem, attempt, message });
    return new ToolExecutionError('blocked', `The call is blocked, since ${message}`, { code: HOOK_FAILED });
  }
}
