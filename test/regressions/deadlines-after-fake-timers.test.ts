// Was: a deadline was missed after fake timers had been replaced or cleared with one on its way. Now: every deadline is
// kept.
import { firstValueFrom } from 'rxjs';
import { abortable, attemptTimeout, guard } from 'spillway';
import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => vi.useRealTimers());

const never = (): Promise<never> => new Promise(() => undefined);
const ways = {
  attemptTimeout: (work: () => Promise<unknown>, timeoutMs: number): Promise<unknown> =>
    firstValueFrom(abortable(work).pipe(attemptTimeout(timeoutMs))),
  guard: (work: () => Promise<unknown>, timeoutMs: number): Promise<unknown> =>
    firstValueFrom(guard({ timeoutMs }).from(work)),
};

it.each([
  ['attemptTimeout', 'replaced', 41],
  ['guard', 'replaced', 42],
  ['attemptTimeout', 'cleared', 43],
  ['guard', 'cleared', 44],
] as const)(
  'R-4.1 deadlines of %s are kept after fake timers were %s with one on its way',
  async (way, what, timeoutMs) => {
    vi.useFakeTimers();
    await ways[way](() => Promise.resolve('done'), timeoutMs);
    if (what === 'replaced') vi.useRealTimers();
    else vi.clearAllTimers();
    const call = ways[way](never, timeoutMs).catch((error: unknown) => error);
    if (what === 'cleared') await vi.advanceTimersByTimeAsync(timeoutMs + 10);
    expect(await call).toMatchObject({ kind: 'timeout' });
  },
  60_000,
);

it('R-4.1 a deadline is kept however often the queue empties in one turn', async () => {
  const call = (): Promise<unknown> => ways.guard(() => Promise.resolve('done'), 45);
  for (let n = 0; n < 1_000; n++) await call();
  await expect(ways.guard(never, 45)).rejects.toMatchObject({ kind: 'timeout' });
}, 60_000);
