import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApprovals, createBudget } from '../../src/gates.ts';
import { createSpillway, tool } from '../../src/index.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { CLIENTS } from '../stores/redis/clients.ts';

/** What a process that will be killed does: one of these, over and over. */
export type Work = 'pays' | 'spends declared' | 'spends told';

const LIMITS = { calls: 80, usd: 180, tokens: 2_000 } as const;
/** What one call that declares nothing can use at most. */
const TOKENS_MAX = 60;
const AMOUNTS: readonly number[] = [0, 1, 2, 3, 4, 5];

/** A client library of Redis, or SQLite. */
export type Kind = 'redis' | 'ioredis' | 'sqlite';

const [work, kind, path, ledger] = process.argv.slice(2) as [Work, Kind, string, string];
process.once('disconnect', () => process.exit());

const connect = CLIENTS.find(([name]) => name === kind)?.[1];
const client = await connect?.({ path });
const store = client === undefined ? sqliteStore(path) : redisStore(client.client);

/** An effect, as the world sees it: it is there as soon as it is written. */
const effect = (...parts: readonly number[]): void => appendFileSync(ledger, `${parts.join(' ')}\n`);

const pays = async (): Promise<void> => {
  const pay = tool({
    name: 'pay',
    needsApproval: true,
    policy: { effects: 'mutating' },
    execute: async ({ amount }: { amount: number }) => {
      effect(amount);
      await sleep(5);
    },
  });
  const approvals = createApprovals({ pollMs: 20 });
  // So long all processes have seen the answer before one of them uses it.
  const hooks = { beforeToolCall: () => sleep(40).then(() => undefined) };
  const spillway = createSpillway({ tools: [pay], approvals, hooks, store });
  const again = async (amount: number): Promise<never> => {
    for (;;) await spillway.execute({ toolName: 'pay', input: { amount }, session: 's' });
  };
  process.send?.('begun');
  await Promise.all(AMOUNTS.map(again));
};

const spends = async (declared: boolean): Promise<void> => {
  const spend = tool({
    name: 'spend',
    policy: { effects: 'mutating', ...(declared ? { cost: 3 } : {}) },
    execute: async (_: unknown, { usage }) => {
      const tokens = 1 + Math.floor(Math.random() * TOKENS_MAX);
      effect(declared ? 3 : tokens);
      await sleep(5);
      if (!declared) usage?.({ tokens });
    },
  });
  const limits = declared ? { calls: LIMITS.calls, usd: LIMITS.usd } : { tokens: LIMITS.tokens };
  const budget = createBudget({ ...limits, per: 'tenant', leaseMs: 1_000 });
  const spillway = createSpillway({ tools: [spend], budget, store });
  process.send?.('begun');
  // Several at once.
  const again = async (): Promise<void> => {
    for (;;) {
      const { error } = await spillway.execute({ toolName: 'spend', input: {}, tenant: 't' });
      if (error?.code === 'limit_exceeded') return;
    }
  };
  await Promise.all(Array.from({ length: 4 }, again));
  process.send?.('spent');
};

await (work === 'pays' ? pays() : spends(work === 'spends declared'));
