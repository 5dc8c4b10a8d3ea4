import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSpillway, plan, tool, type AnyTool } from '../../src/index.ts';
import type { Compensation } from '../../src/contract/turn.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { CLIENTS } from '../stores/redis/clients.ts';

/** A client library of Redis, or SQLite. */
export type Kind = 'redis' | 'ioredis' | 'sqlite';
/** What the process is to do: book trips under these ids, which all fail in the end, or finish those of others. */
export type Order = { readonly book: readonly string[] } | 'resume';
/** What it says of a turn: the nodes of which something may stay. */
export interface Told {
  readonly turnId: string;
  readonly stays: readonly string[];
}

export const LEASE_MS = 1_500;
const STOPS = ['flight', 'hotel', 'car', 'tour'];
const WORK_MS = 25;

const [kind, path, books] = process.argv.slice(2) as [Kind, string, string];

/** What is left for a person; what it left for another process is not. */
const staysIn = (compensation: Compensation | undefined): string[] =>
  (compensation?.stays ?? []).filter(({ why }) => !why.includes('resume() goes on')).map(({ id }) => id);

const main = async (): Promise<void> => {
  process.once('disconnect', () => process.exit());
  const connect = CLIENTS.find(([name]) => name === kind)?.[1];
  const client = await connect?.({ path });
  const store = client === undefined ? sqliteStore(path) : redisStore(client.client);

  // What is done is there at once; then it takes a while, in which its process can die.
  const write = async (sign: '+' | '-', key: string, what: string): Promise<void> => {
    appendFileSync(books, `${sign} ${key} ${what}\n`);
    await sleep(WORK_MS);
  };
  const stands = (key: string): boolean => {
    const lines = readFileSync(books, 'utf8');
    return lines.includes(`+ ${key} `) && !lines.includes(`- ${key} `);
  };
  const book = tool({
    name: 'book',
    policy: {
      effects: 'mutating',
      safetyCritical: true,
      breaker: false,
      dedupe: { leaseMs: LEASE_MS },
      verify: { settleMs: 100, delayMs: 20 },
    },
    execute: async ({ what }: { readonly what: string }, { callKey }) => {
      await write('+', callKey, what);
      return { callKey };
    },
    verify: (_, { callKey }) => (stands(callKey) ? { done: true, output: { callKey } } : { done: false }),
    compensate: (_, { callKey, input }) => write('-', callKey, (input as { readonly what: string }).what),
  }) as AnyTool;
  const pay: AnyTool = {
    name: 'pay',
    policy: { effects: 'read' },
    execute: () => {
      throw Object.assign(new Error('the card was refused'), { status: 402 });
    },
  };
  const layer = createSpillway({ tools: [book, pay], store, retryBudget: false });
  const planOf = (turnId: string) =>
    plan.from(
      [
        ...STOPS.map((id, at) => ({
          id,
          tool: 'book',
          input: { what: `${turnId}/${id}` },
          needs: STOPS.slice(Math.max(0, at - 1), at),
        })),
        { id: 'pay', tool: 'pay', needs: STOPS },
      ],
      { onFailure: 'compensate', leaseMs: LEASE_MS },
    );
  const tell = (told: Told): void => void process.send?.(told);
  const begin = (turnId: string): void => {
    layer.turn(planOf(turnId), { turnId }).subscribe((event) => {
      if (event.source !== 'turn' || event.type !== 'settled') return;
      tell({ turnId, stays: staysIn(event.result.compensation) });
    });
  };
  const resume = async (): Promise<void> => {
    for (const { turnId, compensation } of await layer.resume()) tell({ turnId, stays: staysIn(compensation) });
    process.send?.('resumed');
  };
  process.on('message', (order: Order) => {
    if (order === 'resume') void resume();
    else for (const turnId of order.book) begin(turnId);
  });
  process.send?.('ready');
};

if (process.send !== undefined && process.argv[1] === import.meta.filename) await main();
