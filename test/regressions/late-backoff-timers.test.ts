// Was: a backoff timer that fired late, as behind a stalled event loop, started an attempt after maxTotalTimeMs. Now: a
// late timer starts no attempt once that time is over.
import { delay } from 'rxjs';
import { expect, it } from 'vitest';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';

it(
  'R-2.3 a backoff timer that comes late starts no attempt after maxTotalTimeMs',
  marbles((m) => {
    const source = m.cold<string>('--#', undefined, transient);
    const subs = '                 ^-!';
    const expected = '             -------#';
    const onTime = runtimeOn(m.scheduler);
    const late = { ...onTime, after: (ms: number) => onTime.after(ms).pipe(delay(2, m.scheduler)) };
    const policy = { strategy: 'constant', initialDelayMs: 3, jitterPercent: 0, maxTotalTimeMs: 6 } as const;
    m.expect(source.pipe(retryBackoff(policy, late))).toBeObservable(expected, undefined, transient);
    m.expect(source).toHaveSubscriptions(subs);
    expect(late.now()).toBe(0);
  }),
);
