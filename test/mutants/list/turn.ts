import type { MutatedFile } from '../mutant.ts';

/** The call and the turn, where they decide something. */
export const TURN: readonly MutatedFile[] = [
  {
    file: 'call/result.ts',
    mutants: [
      ['R-2.8 a spent budget ends a row of retries', "'budget_exhausted', 'circuit_open',", "'circuit_open',"],
      [
        'R-2.8 circuit_open is a first attempt that was rejected',
        "error.kind === 'circuit_open' && attempts === 0",
        "error.kind === 'circuit_open'",
      ],
      [
        'R-2.8 a timeout without a retry is a timeout',
        "error.kind === 'timeout' || error.kind === 'deadline_exceeded'",
        "error.kind === 'deadline_exceeded'",
      ],
    ],
  },
  {
    file: 'call/replay.ts',
    mutants: [
      [
        'R-9.4 a call without an attempt is not remembered',
        "(attempts === 0 && result?.verified !== 'done') || read",
        'read',
      ],
      ['R-9.4 a failure is remembered as uncertain', 'terminal, uncertain === true)', 'terminal, false)'],
      [
        'R-9.4 an output that cannot be kept is a failure that is remembered',
        "return { state: 'failed', ttlMs: doneTtlMs, error: failureOf('internal_error'",
        "return { state: 'failed', ttlMs: failedTtlMs, error: failureOf('internal_error'",
      ],
    ],
  },
  {
    file: 'turn/result.ts',
    mutants: [
      ['R-5.5 a replayed result counts as one that ran', 'executedTools + replayed)', 'executedTools)'],
      ['R-5.5 a dependent that used a default covers', 'usedDefault[dependent] === true || ', ''],
    ],
  },
  {
    file: 'turn/summary.ts',
    mutants: [['R-4.5 nodes of one tool go by their own ids', 'byTool ? toolName : id', 'toolName']],
  },
  {
    file: 'call/decide.ts',
    mutants: [
      [
        'R-6.1 time goes on while an answer is waited for',
        'circumstances.elapsedMs + (now - askedMs)',
        'circumstances.elapsedMs',
      ],
    ],
  },
  {
    file: 'operators/dedupe/idempotent.ts',
    mutants: [
      [
        'a call that others of this process wait for goes on without its caller',
        'isAlone = lease.isHeld && lease.waitedFor &&',
        'isAlone = false &&',
      ],
    ],
  },
  {
    file: 'turn/run.ts',
    mutants: [
      ['R-5.5 a call that was cut short counts as one that ran', 'if (call.executed) found.executedTools++;', ''],
    ],
  },
  {
    file: 'call/request.ts',
    mutants: [
      [
        'R-8.1 nobody gets an earlier answer without asking',
        "idempotencyKey === undefined ? 'disabled' : 'enforced'",
        "'enforced'",
      ],
      [
        'TR-1 a deadline of the wall clock is one of the monotonic clock',
        'runtime.now() + (control.deadlineAtMs - runtime.wallNow())',
        'control.deadlineAtMs',
      ],
    ],
  },
  {
    file: 'call/attempt/retries.ts',
    mutants: [
      [
        'R-2.1 decorrelated delays grow from the backoff, not from a hint',
        'execution.previousDelayMs = nextDelayMs;',
        'execution.previousDelayMs = delayMs;',
      ],
      [
        'R-2.3 no retry starts after maxTotalTimeMs, behind a stall either',
        'atMs - execution.startedAtMs >= maxTotalTimeMsOf(execution)',
        'atMs < execution.startedAtMs',
      ],
      [
        'R-9.6 no attempt starts without a valid claim',
        'context.isOver || !mayAct(context)) return NEVER;',
        'context.isOver) return NEVER;',
      ],
      [
        'a retry that was not admitted was not made: the failure is the one before it',
        "failure.error.kind === 'circuit_open' ? (execution.retried ?? failure) : failure",
        'failure',
      ],
    ],
  },
  {
    file: 'call/request.ts',
    mutants: [['R-2.5 an attempt has its input for itself', 'copies.set(value, copy);', 'return value;']],
  },
  {
    file: 'call/attempt/execution.ts',
    mutants: [
      [
        'R-2.5 doubt about an attempt stays',
        'doubted(read, this.guarded.effects, this.context.uncertain || began)',
        'doubted(read, this.guarded.effects, began)',
      ],
      ['R-2.5 a stream that gave a value had begun', 'this.context.uncertain || began)', 'this.context.uncertain)'],
      [
        'R-3.6 who leaves after a value has had an answer',
        'if (this.isAttempting && this.#hasAnswered) permit?.success();',
        'if (this.#hasAnswered) permit?.release();',
      ],
    ],
  },
  {
    file: 'layer/breakers.ts',
    mutants: [
      ['R-3.7 the breaker used longest ago makes room', 'found.usedAt = ++this.#uses;', ''],
      ['R-3.8 what a person set stays', 'areSet = free.length === 0;', 'areSet = true;'],
    ],
  },
  {
    file: 'turn/plan.ts',
    mutants: [['R-5.1 a need named twice is one need', '[...new Set(node.needs ?? [])]', '[...(node.needs ?? [])]']],
  },
];
