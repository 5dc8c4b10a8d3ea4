import type { MutatedFile } from '../mutant.ts';

/** The operators, where they decide something. */
export const OPERATORS: readonly MutatedFile[] = [
  {
    file: 'operators/hedge.ts',
    mutants: [
      [
        'R-2.6 a hedge is charged once',
        'tap(() => budget?.recordRetry(runtime.now())),',
        'tap(() => budget?.recordRetry(runtime.now())), tap(() => budget?.recordRetry(runtime.now())),',
      ],
      [
        'a loser is measured as far as it came',
        'for (const atMs of startedAtMs.values()) latencies',
        'for (const atMs of [startedAtMs.get(number) ?? 0]) latencies',
      ],
      ['so many hedges beside the first', 'number >= maxHedges', 'number + 1 >= maxHedges'],
      [
        'a hedge that the budget does not allow is not made',
        'filter(() => budget?.available(runtime.now()) !== false),',
        '',
      ],
    ],
  },
  {
    file: 'operators/timing/expiry.ts',
    mutants: [
      [
        'R-4.1 a deadline set out of order is kept to the millisecond',
        'this.#tail.dueMs - startedAtMs - this.ms < 1)',
        'this.#tail.dueMs - startedAtMs - this.ms < 1000)',
      ],
      [
        'R-4.6 on a real event loop a deadline waits for answers behind a stall',
        'runtime.soon === undefined ? 0 : 1',
        'runtime.soon === undefined ? 0 : 0',
      ],
    ],
  },
  {
    file: 'operators/retry-backoff.ts',
    mutants: [
      [
        'R-2.3 no attempt starts after maxTotalTimeMs, behind a stall either',
        'if (runtime.now() - startedAtMs >= maxTotalTimeMs) throw thrown;',
        '',
      ],
      [
        'R-4.2 a cancellation is not retried',
        "error.kind === 'canceled' || retryRefusal(failure) !== undefined",
        'retryRefusal(failure) !== undefined',
      ],
    ],
  },
  {
    file: 'operators/dedupe/lease.ts',
    mutants: [
      [
        'R-9.6 a takeover that is given up leaves what may have run',
        'this.tookOver ? store.renew(key, version, AT_ONCE_MS) : store.delete(key, version)',
        'store.delete(key, version)',
      ],
      [
        'R-9.6 a renewal counts from before it was sent',
        'this.#validUntilMs = sentAtMs + this.#terms.leaseMs',
        'this.#validUntilMs = this.#terms.runtime.now() + this.#terms.leaseMs',
      ],
    ],
  },
  {
    file: 'operators/breaker/permit.ts',
    mutants: [['R-3.6 a permit ends once', 'if (this.#ended) return;', '']],
  },
  {
    file: 'operators/circuit-breaker.ts',
    mutants: [
      [
        'R-3.6 who leaves after a value has had an answer',
        "if (standing === 'answered') permit.success();\n        else if (standing === 'silent') permit",
        "if (standing !== 'settled') permit",
      ],
    ],
  },
  {
    file: 'operators/timing/limited-by.ts',
    mutants: [
      ['R-4.6 a limit is armed once its source has started', 'limit = own;', 'limit = own; limit$.subscribe(own);'],
    ],
  },
  {
    file: 'operators/timing/paced.ts',
    mutants: [
      [
        'what comes while the event loop has its turn waits as well',
        'if (busy || pause !== undefined) return;',
        'if (busy) return;',
      ],
    ],
  },
];
