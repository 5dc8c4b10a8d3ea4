import type { Plant } from './planted.ts';

/** Mistakes in what the three operators are made of. */
export const IN_OPERATORS: readonly Plant[] = [
  {
    mistake: 'R-2.3 an attempt starts after the time is over, when its timer came late',
    file: 'operators/retry-backoff.ts',
    text: 'if (runtime.now() - startedAtMs >= maxTotalTimeMs) throw thrown;',
    instead: '',
  },
  {
    mistake: 'R-2.4 Retry-After is no floor under the delay',
    file: 'policy/retry/refusal.ts',
    text: '(retryAfterMs > nextDelayMs ? retryAfterMs : nextDelayMs)',
    instead: 'nextDelayMs',
  },
  {
    mistake: 'R-3.3 a permanent failure that was answered is neutral',
    file: 'policy/breaker/outcome.ts',
    text: "rule === 'words' ? 'answered' : 'success'",
    instead: "'ignored'",
  },
  {
    mistake: 'R-3.6 who leaves without a value keeps the permit',
    file: 'operators/circuit-breaker.ts',
    text: "else if (standing === 'silent') permit.release();",
    instead: '',
  },
  {
    mistake: 'R-3.6 who leaves after a value has had none',
    file: 'operators/circuit-breaker.ts',
    text: "if (standing === 'answered') permit.success();",
    instead: "if (standing === 'answered') permit.release();",
  },
  {
    mistake: 'R-4.6 a deadline yields once too few',
    file: 'operators/timing/expiry.ts',
    text: '.pipe(concatMap(() => runtime.after(yieldMs)))',
    instead: '',
  },
];
export const IN_GUARD: readonly Plant[] = [
  {
    mistake: 'R-4.2 an attempt is not aborted when it is left',
    file: 'operators/guard.ts',
    text: 'startWork(subscriber, () => work(context), own);',
    instead: 'startWork(subscriber, () => work(context), new AttemptSignal());',
  },
  {
    mistake: 'R-2.7 a guard leaves its retries out',
    file: 'operators/guard.ts',
    text: '[retryBackoff(retry, runtime)]',
    instead: '[]',
  },
];
export const IN_MINI: readonly Plant[] = [
  {
    mistake: 'R-2.3 the time of all attempts is the default one',
    file: 'mini.ts',
    text: 'return retryBackoffFor(readFields, policy, runtime);',
    instead: 'return retryBackoffFor(readFields, { ...policy, maxTotalTimeMs: 2_000 }, runtime);',
  },
];
export const IN_CALL: readonly Plant[] = [
  {
    mistake: 'R-2.3 an attempt starts after the time is over, when its timer came late',
    file: 'call/attempt/retries.ts',
    text: 'atMs - execution.startedAtMs >= maxTotalTimeMsOf(execution);',
    instead: 'atMs < execution.startedAtMs;',
  },
  {
    mistake: 'R-2.5 a failure is retried though the breaker that it opened will not admit it',
    file: 'policy/retry/refusal.ts',
    text: "failure.breakerState === 'open' || ",
    instead: '',
  },
  {
    mistake: 'R-2.8 a call ends with the refusal of its retry, and not with its last failure',
    file: 'call/attempt/retries.ts',
    text: "failure.error.kind === 'circuit_open' ? (execution.retried ?? failure) : failure",
    instead: 'failure',
  },
  {
    mistake: 'R-3.6 who leaves after a value has had none',
    file: 'call/attempt/execution.ts',
    text: 'if (this.isAttempting && this.#hasAnswered) permit?.success();',
    instead: 'if (this.#hasAnswered) permit?.release();',
  },
  {
    mistake: 'R-4.2 a call that is canceled is told so before its attempt is aborted',
    file: 'call/pipe.ts',
    text: 'work?.unsubscribe();\n      subscriber.next(',
    instead: 'subscriber.next(',
  },
];
export const IN_TURN: readonly Plant[] = [
  {
    mistake: 'R-4.4 a node starts at the deadline itself',
    file: 'turn/node.ts',
    text: 'if (turn.layer.runtime.now() >= (turn.site.time?.endMs ?? turn.site.deadlineMs)) return NEVER;',
    instead: '',
  },
  {
    mistake: 'R-4.4 a retry is waited for though the turn will be over',
    file: 'policy/recovery/decide.ts',
    text: 'retryDelayMs(failure) >= turnRemainingMs',
    instead: 'false',
  },
  {
    mistake: 'R-4.4 what runs is not aborted at the deadline',
    file: 'turn/run.ts',
    text: "else if (onDeadline === 'abort') call.expire();",
    instead: '',
  },
  {
    mistake: 'R-4.6 the deadline beats a result of its own instant',
    file: 'turn/context.ts',
    text: 'expiry(leftMs, runtime)',
    instead: 'runtime.after(leftMs)',
  },
  {
    mistake: 'R-5.2 nobody counts how many calls run at a time',
    file: 'turn/run.ts',
    text: 'plan.options.concurrency ?? Infinity',
    instead: 'Infinity',
  },
  {
    mistake: 'R-5.3 an optional node is skipped in spite of its default',
    file: 'policy/recovery/cascade.ts',
    text: "if (node.hasDefault) return 'use_default';",
    instead: "if (node.hasDefault && !node.optional) return 'use_default';",
  },
  {
    mistake: 'R-5.5 a failed node is covered by dependents that did without it, though they are required',
    file: 'turn/result.ts',
    text: 'usedDefault[dependent] === true || planned[dependent]?.optional === true',
    instead: 'true',
  },
];
