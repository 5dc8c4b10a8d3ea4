// Was: a resource that cancels a key, so that nothing can come late, had its no doubted for `settleMs` all the same.
// Now: `{ done: false, final: true }` counts at once.
import { describe, expect, it } from 'vitest';
import { ended, lost, scene } from '../call/verified-payment.ts';

/** A bank that books `lateMs` after it was asked, whether or not anybody waits; `forget` is what a `final` no does. */
const slowBank = (lateMs: number) => {
  const booked: number[] = [];
  const void$ = new Set<number>();
  let at: ReturnType<typeof scene> | undefined;
  const pay = (attempt: number, signal: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
      at?.runtime.after(lateMs).subscribe(() => {
        if (void$.has(attempt)) return;
        booked.push(attempt);
        resolve('receipt');
      });
    });
  return {
    booked,
    pay,
    void: (attempt: number) => void$.add(attempt),
    open: (scene_: ReturnType<typeof scene>) => (at = scene_),
    looks: () => (booked.length > 0 ? { done: true, output: 'receipt' } : { done: false }),
  };
};

const SLOW = { timeoutMs: 30_000 };

describe('R-18.2 a verify that says no before it can be known', () => {
  it('R-18.2 what comes within the second that is waited for is found all the same', async () => {
    const bank = slowBank(30_500);
    const { status, verified, attempts } = await ended(bank.open(scene(bank.looks, bank.pay, SLOW)));
    expect({ status, verified, attempts, booked: bank.booked }).toEqual({
      status: 'success',
      verified: 'done',
      attempts: 1,
      booked: [1],
    });
  });

  it.each([
    ['of the tool', { verify: { settleMs: 5_000 } }, {}],
    ['of the layer', {}, { defaults: { verify: { settleMs: 5_000 } } }],
  ])('R-18.2 a settleMs %s that is true of the server keeps it from being paid twice', async (_, policy, options) => {
    const bank = slowBank(32_000);
    const at = bank.open(scene(bank.looks, bank.pay, { ...SLOW, ...policy }, options));
    expect((await ended(at)).verified).toBe('done');
    expect(bank.booked).toEqual([1]);
  });

  it('R-18.2 with settleMs a payment that was never made is made again', async () => {
    let isLost = true;
    const at = scene(
      () => ({ done: false }),
      () => (isLost ? ((isLost = false), lost()) : 'receipt'),
      { verify: { settleMs: 5_000 } },
    );
    expect(await ended(at)).toMatchObject({ status: 'success', attempts: 2 });
  });

  it('R-18.2 a final no counts at once, since the resource refuses what is still under way', async () => {
    const bank = slowBank(32_000);
    const at = bank.open(
      scene(
        ({ attempt }) => (bank.void(attempt), { done: false, final: true }),
        (attempt, signal) => (attempt === 1 ? bank.pay(attempt, signal) : 'receipt'),
        SLOW,
      ),
    );
    const { status, attempts } = await ended(at);
    expect({ status, attempts, starts: at.starts, booked: bank.booked }).toEqual({
      status: 'success',
      attempts: 2,
      starts: [0, 30_100],
      booked: [],
    });
  });

  it.each([false, 'true', 1])('R-18.2 a final that is %s is none', async (final) => {
    const bank = slowBank(32_000);
    const policy = { ...SLOW, verify: { settleMs: 5_000 } };
    const at = bank.open(scene(() => ({ ...bank.looks(), final }), bank.pay, policy));
    await ended(at);
    expect(bank.booked).toEqual([1]);
  });
});
