import { Subject, firstValueFrom } from 'rxjs';
import { createSpillway, tool, type AnyTool } from 'spillway';
import { approvalsIn, createApprovals, createBudget } from 'spillway/gates';
import { redisStore } from 'spillway/stores/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis } from '../stores/redis/server.ts';

const KEEPS = { appendonly: 'yes', appendfsync: 'always' } as const;
const waited = { timeout: 60_000, interval: 20 };

describe.each(CLIENTS)('over %s, Redis is lost', { timeout: 90_000 }, (_, connect) => {
  const placed = async (settings: Readonly<Record<string, string>>) => {
    const server = await startRedis({ settings });
    onTestFinished(() => server.stop());
    const mine = await connect(at(server));
    const theirs = await connect(at(server));
    onTestFinished(() => Promise.all([mine.close(), theirs.close()]).then(() => undefined));
    return { server, store: redisStore(mine.client), questions: approvalsIn(redisStore(theirs.client)) };
  };

  /** A payment that waits for a person while Redis goes away and comes back. */
  const waiting = async (settings: Readonly<Record<string, string>>) => {
    const { server, store, questions } = await placed(settings);
    let paid = 0;
    const pay: AnyTool = {
      name: 'pay',
      needsApproval: true,
      policy: { effects: 'mutating' },
      execute: () => ++paid,
    };
    const spillway = createSpillway({ tools: [pay], store, approvals: createApprovals({ pollMs: 50 }) });
    onTestFinished(() => spillway.close());
    const result = spillway.execute({ toolName: 'pay', input: { amount: 7 }, idempotencyKey: 'k' });
    await expect.poll(async () => (await questions.pending()).length, waited).toBe(1);
    const [question] = await questions.pending();
    await server.kill('SIGKILL');
    // Nobody can answer what the store cannot take.
    await expect(questions.answer(question?.id ?? '', true)).rejects.toMatchObject({ kind: 'store_unavailable' });
    expect(paid).toBe(0);
    await server.start();
    return { questions, id: question?.id ?? '', result, paid: () => paid };
  };

  it('R-22.5 while a person is waited for: the question stands, and one answer makes one payment', async () => {
    const { questions, id, result, paid } = await waiting(KEEPS);
    const answered = async (): Promise<boolean> =>
      (await questions.answer(id, true).catch(() => undefined))?.counts === true;
    await expect.poll(answered, waited).toBe(true);
    expect(await result).toMatchObject({ status: 'success' });
    // Late, and twice.
    expect(await questions.answer(id, true)).toMatchObject({ counts: false });
    expect(await questions.answer(id, false)).toMatchObject({ counts: false });
    expect(paid()).toBe(1);
  });

  it('R-22.2 with all that it held: nobody has approved anything, and nothing is paid', async () => {
    const { questions, id, result, paid } = await waiting({});
    expect((await result).error).toMatchObject({ code: 'not_permitted' });
    expect(await questions.answer(id, true).catch(() => undefined)).toMatchObject({ counts: false });
    expect(paid()).toBe(0);
  });

  it('R-22.7 while attempts run: what they used is told once it is back, and no budget is overspent', async () => {
    const { server, store } = await placed(KEEPS);
    const goOn$ = new Subject<void>();
    let ran = 0;
    const spend = tool({
      name: 'spend',
      policy: { effects: 'read', cost: 1, retry: { maxAttempts: 1 } },
      execute: async () => {
        ran++;
        await firstValueFrom(goOn$);
      },
    });
    const budget = createBudget({ usd: 3, per: 'tenant' });
    const spillway = createSpillway({ tools: [spend], store, budget });
    onTestFinished(() => spillway.close());
    const call = (session: string) => spillway.execute({ toolName: 'spend', input: {}, tenant: 't', session });
    const running = [call('a'), call('b')];
    await expect.poll(() => ran, waited).toBe(2);
    await server.kill('SIGKILL');
    goOn$.next();
    for (const { status } of await Promise.all(running)) expect(status).toBe('success');
    expect((await call('c')).error).toMatchObject({ code: 'store_unavailable' });
    await server.start();
    const left = async () => (await budget.left({ tenant: 't' }).catch(() => []))[0]?.left;
    await expect.poll(left, waited).toBe(1);
    const last = ['d', 'e'].map((session) => call(session));
    await expect.poll(() => ran, waited).toBe(3);
    goOn$.next();
    const ends = await Promise.all(last);
    expect(ends.map(({ error }) => error?.code ?? 'ok').toSorted()).toEqual(['limit_exceeded', 'ok']);
    expect(ran).toBe(3);
  });
});
