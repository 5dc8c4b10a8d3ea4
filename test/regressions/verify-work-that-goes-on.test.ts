// Was: "not done" was believed while an earlier attempt, or an Observable's work, went on: paid up to four times.
// Now: the work of all attempts is watched, and what cannot be seen to stop leaves "not done" unknown.
import { defer } from 'rxjs';
import { createSpillway, type ToolResultEnvelope } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

/** A bank that books what it was asked after a while, whether or not anyone still waits. */
class Bank {
  readonly runtime = virtualRuntime();
  readonly booked: string[] = [];

  pay(key: string, afterMs: number): Promise<string> {
    return new Promise((resolve) => {
      this.runtime.after(afterMs).subscribe(() => {
        this.booked.push(key);
        resolve('paid');
      });
    });
  }

  verify = (
    _: unknown,
    { callKey }: { readonly callKey: string },
  ): { readonly done: true } | { readonly done: false } =>
    this.booked.includes(callKey) ? { done: true } : { done: false };

  async settled(promise: Promise<ToolResultEnvelope>): Promise<ToolResultEnvelope> {
    await this.runtime.advance(100_000);
    return promise;
  }
}

it('R-18.2 "not done" is no answer while an earlier attempt of the call goes on', async () => {
  const bank = new Bank();
  const layer = createSpillway({
    runtime: bank.runtime,
    tools: [
      {
        name: 'pay',
        policy: {
          timeoutMs: 1_000,
          enforcesKey: true,
          retry: { maxAttempts: 2, initialDelayMs: 100, maxTotalTimeMs: 60_000 },
          verify: { settleMs: 1_000, maxAttempts: 1, timeoutMs: 2_000 },
        },
        execute: (_: unknown, { callKey, attempt }) =>
          attempt === 1
            ? bank.pay(callKey, 30_000)
            : Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' })),
        verify: bank.verify,
      },
    ],
  });
  const result = await bank.settled(layer.execute({ toolName: 'pay', input: {} }));
  expect(result).toMatchObject({ verified: 'unknown', attempts: 2, error: { uncertain: true } });
  expect(bank.booked).toHaveLength(1);
});

it.for(['a Promise', 'an Observable'])('R-18.2 a slow payment given as %s is made once', async (as) => {
  const bank = new Bank();
  const layer = createSpillway({
    runtime: bank.runtime,
    tools: [
      {
        name: 'pay',
        policy: { timeoutMs: 1_000, retry: { maxTotalTimeMs: 60_000 }, verify: {} },
        execute: (_: unknown, { callKey }) =>
          as === 'a Promise' ? bank.pay(callKey, 8_000) : defer(() => bank.pay(callKey, 8_000)),
        verify: bank.verify,
      },
    ],
  });
  const result = await bank.settled(layer.execute({ toolName: 'pay', input: {} }));
  expect(bank.booked).toHaveLength(1);
  expect(result.attempts).toBe(1);
});

it('R-18.2 an Observable whose author says that it stops when it is unsubscribed is believed', async () => {
  const bank = new Bank();
  const layer = createSpillway({
    runtime: bank.runtime,
    tools: [
      {
        name: 'pay',
        policy: {
          timeoutMs: 1_000,
          retry: { maxAttempts: 2, maxTotalTimeMs: 60_000 },
          verify: { stopsOnUnsubscribe: true, settleMs: 0 },
        },
        execute: (_: unknown, { attempt }) => bank.runtime.after(attempt === 1 ? 8_000 : 100),
        verify: bank.verify,
      },
    ],
  });
  expect(await bank.settled(layer.execute({ toolName: 'pay', input: {} }))).toMatchObject({
    status: 'success',
    attempts: 2,
  });
});

it('R-2.9 stopsOnUnsubscribe is true or false', () => {
  const tool = { name: 'pay', policy: { verify: { stopsOnUnsubscribe: 'yes' as unknown as boolean } } };
  expect(() => createSpillway({ tools: [{ ...tool, execute: () => 1, verify: () => 'unknown' as const }] })).toThrow(
    'verify.stopsOnUnsubscribe must be true or false, not yes',
  );
});
