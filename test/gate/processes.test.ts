import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { approvalsIn } from 'spillway/gates';
import type { DedupeStore } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { sqliteStore } from 'spillway/stores/sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import type { Kind, Work } from './worker.ts';

const WORKER = join(import.meta.dirname, 'worker.ts');
const PROCESSES = 3;
const KILLS = Number(process.env['SPILLWAY_KILLS'] ?? 2);
const LIMITS = { calls: 80, usd: 180, tokens: 2_000 };
const TOKENS_MAX = 60;

let folder: string;
let ledger: string;
let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.cli('flushall');
  folder = mkdtempSync(join(tmpdir(), 'spillway-gates-'));
  ledger = join(folder, 'ledger');
  writeFileSync(ledger, '');
});

const KINDS: readonly Kind[] = ['redis', 'ioredis', 'sqlite'];
const placeOf = (kind: Kind): string => (kind === 'sqlite' ? join(folder, 'store.db') : server.path);

/** The store that the processes share, as a person's program has it. */
const storeOf = async (kind: Kind): Promise<DedupeStore> => {
  const connect = CLIENTS.find(([name]) => name === kind)?.[1];
  const client = await connect?.(at(server));
  if (client === undefined) return sqliteStore(placeOf(kind));
  onTestFinished(() => client.close());
  return redisStore(client.client);
};

interface Worker {
  readonly child: ChildProcess;
  readonly gone: Promise<unknown>;
  begun: boolean;
  spent: boolean;
}
const workers: Worker[] = [];
afterEach(async () => {
  for (const worker of workers.splice(0)) await kill(worker);
  rmSync(folder, { recursive: true, force: true });
});

const kill = async ({ child, gone }: Worker): Promise<void> => {
  child.kill('SIGKILL');
  await gone;
};

const start = (work: Work, kind: Kind): Worker => {
  const child = fork(WORKER, [work, kind, placeOf(kind), ledger], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const worker: Worker = { child, gone: once(child, 'exit'), begun: false, spent: false };
  child.on('message', (message) => {
    worker.begun ||= message === 'begun';
    worker.spent ||= message === 'spent';
  });
  workers.push(worker);
  return worker;
};

/** The effects so far, a line each. */
const effects = (): number[][] =>
  readFileSync(ledger, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ').map(Number));

/** A machine at work starts processes slowly. */
const waited = { timeout: 60_000, interval: 5 };

/** Figures, for whoever asks for them. */
const told = (what: string, figures: object): void => {
  if (process.env['SPILLWAY_FIGURES'] !== undefined)
    process.stdout.write(`${what} ${JSON.stringify({ ...figures, KILLS })}\n`);
};

/** Kills one process after the other, each while it is at work, and starts another in its place. */
const killing = async (work: Work, kind: Kind): Promise<void> => {
  for (let n = 0; n < PROCESSES; n++) start(work, kind);
  for (let n = 0; n < KILLS; n++) {
    const worker = workers[n] as Worker;
    await expect.poll(() => worker.begun || worker.spent, waited).toBe(true);
    const before = effects().length;
    await expect.poll(() => effects().length > before + n || workers.some(({ spent }) => spent), waited).toBe(true);
    await kill(worker);
    start(work, kind);
  }
};

describe.each(KINDS)('three processes over %s, killed and started again', { timeout: 300_000 }, (kind) => {
  it('R-22.2 make no effect without an approval of its own, and none of what was denied', async () => {
    const questions = approvalsIn(await storeOf(kind));
    const granted = new Map<number, number>();
    const over = new AbortController();
    const person = async (): Promise<void> => {
      while (!over.signal.aborted) {
        for (const { id, input } of await questions.pending()) {
          const { amount } = input as { readonly amount: number };
          // Counted before it is given: whoever uses it may be quicker than the answer.
          const approves = amount !== 0;
          if (approves) granted.set(amount, (granted.get(amount) ?? 0) + 1);
          const { counts } = await questions.answer(id, { approved: approves, by: 'grace' });
          if (approves && !counts) granted.set(amount, (granted.get(amount) ?? 0) - 1);
        }
      }
    };
    const answering = person();
    await killing('pays', kind);
    const before = effects().length;
    await expect.poll(() => effects().length, waited).toBeGreaterThan(before + 20);
    over.abort();
    await answering;
    for (const worker of workers) await kill(worker);
    told('approvals', { effects: effects().length, approvals: [...granted.values()].reduce((sum, n) => sum + n, 0) });
    const made = Map.groupBy(effects(), ([amount]) => amount ?? -1);
    expect(made.has(0)).toBe(false);
    for (const [amount, list] of made) expect(list.length).toBeLessThanOrEqual(granted.get(amount) ?? 0);
    // An approval is lost only with the process that had used it up, or was about to.
    const approvals = [...granted.values()].reduce((sum, count) => sum + count, 0);
    expect(effects().length).toBeGreaterThanOrEqual(approvals - granted.size - KILLS * granted.size);
  });

  const spent = async (work: Work): Promise<number[]> => {
    await killing(work, kind);
    await expect.poll(() => workers.slice(KILLS).every((worker) => worker.spent), waited).toBe(true);
    return effects().map(([amount = 0]) => amount);
  };

  it('R-22.7 overdraw no budget of declared costs at all', async () => {
    const costs = await spent('spends declared');
    const usd = costs.reduce((sum, cost) => sum + cost, 0);
    told('declared', { calls: costs.length, usd, limits: LIMITS });
    expect(costs.length).toBeLessThanOrEqual(LIMITS.calls);
    expect(usd).toBeLessThanOrEqual(LIMITS.usd);
    // What died with something reserved has used it up, and no more.
    expect(usd).toBeGreaterThanOrEqual(LIMITS.usd - 3 * (4 * KILLS + 1));
  });

  it('R-22.7 overdraw a budget of what is told by one call of each process at most', async () => {
    const tokens = (await spent('spends told')).reduce((sum, used) => sum + used, 0);
    told('told', { tokens, limit: LIMITS.tokens, mayBe: LIMITS.tokens + (PROCESSES + KILLS) * TOKENS_MAX });
    expect(tokens).toBeLessThanOrEqual(LIMITS.tokens + (PROCESSES + KILLS) * TOKENS_MAX);
    expect(tokens).toBeGreaterThan(LIMITS.tokens / 2);
  });
});
