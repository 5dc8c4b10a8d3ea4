import { Observable, catchError, defer, of, tap, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { RetryPolicy } from '../../src/contract/policy.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, permanent, transient } from '../support.ts';

/** Three milliseconds between attempts, without jitter. */
const threeMs: Partial<RetryPolicy> = { strategy: 'constant', initialDelayMs: 3, jitterPercent: 0, maxAttempts: 3 };

describe('R-2.1 what is emitted and when', () => {
  it('R-2.1 a source that succeeds is left alone', marbles((m) => {
    const source = m.cold('  --a--b|');
    const subs = '           ^------!';
    const expected = '       --a--b|';
    const runtime = counting(runtimeOn(m.scheduler));
    m.expect(source.pipe(retryBackoff(threeMs, runtime))).toBeObservable(expected);
    m.expect(source).toHaveSubscriptions('^-----!');
    m.flush();
    expect(subs.trim().length).toBe(8);
    expect(runtime.started).toBe(0);
  }));
});
