// Refunds that a person approves, from anywhere and across a restart, under a budget of 100 dollars a day.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSpillway, tool, type Spillway } from 'spillway';
import { approvalsIn, createApprovals, createBudget } from 'spillway/gates';
import { sqliteStore } from 'spillway/stores/sqlite';
import * as z from 'zod';

const folder = await mkdtemp(join(tmpdir(), 'refunds-')); // one that stays, in a program of yours
const store = sqliteStore(join(folder, 'calls.db'));

/** The program, as it is started once and again. */
const start = (): Spillway => {
  const refund = tool({
    name: 'refund',
    input: z.object({ order: z.string(), usd: z.number().positive() }),
    policy: { effects: 'mutating' },
    // Small ones pass; for others a person is asked.
    needsApproval: ({ usd }) => usd > 10,
    execute: ({ order, usd }, { usage }) => {
      usage?.({ usd });
      return `${usd} dollars for order ${order}`;
    },
  });
  return createSpillway({
    tools: [refund],
    store,
    // Without `ask` the answer comes through the store: `npx spillway approve --store sqlite:calls.db`.
    approvals: createApprovals({ ttlMs: 3_600_000, pollMs: 10 }),
    budget: createBudget({ usd: 100, per: 'tenant' }),
  });
};

const ask = async (spillway: Spillway, order: string, usd: number): Promise<void> => {
  const { status, output, error } = await spillway.execute({
    toolName: 'refund',
    input: { order, usd },
    tenant: 'shop',
  });
  console.log(status === 'success' ? `refunded: ${String(output?.content)}` : `not refunded: ${error?.message}`);
};

/** A person, at another place: the command, the admin endpoint, or a page of your own. */
const person = async (approved: boolean, reason?: string): Promise<void> => {
  const questions = approvalsIn(store);
  let [question] = await questions.pending();
  for (; question === undefined; [question] = await questions.pending()) await new Promise(setImmediate);
  console.log(`asked: ${question.toolName} ${JSON.stringify(question.input)}`);
  await questions.answer(question.id, { approved, by: 'Grace', ...(reason === undefined ? {} : { reason }) });
};

let shop = start();
await ask(shop, 'A1', 5);
await Promise.all([ask(shop, 'A2', 40), person(true)]);
await Promise.all([ask(shop, 'A3', 900), person(false, 'That is more than the order.')]);

// The program is stopped while it waits; Grace answers, and the next one finds the answer.
const waits = ask(shop, 'A4', 45);
const { pending } = approvalsIn(store);
while ((await pending()).length === 0) await new Promise(setImmediate);
await shop.close();
await waits;
await person(true);
shop = start();
await ask(shop, 'A4', 45);

// 90 dollars are spent.
await ask(shop, 'A5', 9);
await ask(shop, 'A6', 9);
await ask(shop, 'A7', 9);
await shop.close();
await store.close?.();
await rm(folder, { recursive: true });
