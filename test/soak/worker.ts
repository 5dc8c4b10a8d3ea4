import { setTimeout as sleep } from 'node:timers/promises';
import { createSpillway, tool } from '../../src/index.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { CLIENTS, type Connect, type TestClient } from '../stores/redis/clients.ts';
import { Dice } from '../simulation/dice.ts';
import { openLedger } from './ledger.ts';
import { recordedStore, type Plant } from './recorded-store.ts';

/** What a worker is told on its command line. */
export interface WorkerTask {
  readonly port: number;
  readonly ledger: string;
  readonly seed: number;
  /** Which of the libraries it uses. */
  readonly library: number;
  readonly leaseMs: number;
  readonly doneTtlMs: number;
  readonly plant?: Plant;
}

/** What it is asked over IPC. */
export interface Order {
  readonly id: number;
  readonly key: string;
}

/** What it answers. */
export interface Answer {
  readonly id: number;
  readonly status: string;
  readonly fromCache: boolean;
  /** What the tool gave: the fence it ran under, and its process. */
  readonly value?: string;
  readonly code?: string;
  readonly honest: boolean;
}

const COMMAND_TIMEOUT_MS = 1_000;
const STORE_TIMEOUT_MS = 1_500;
/** One in so many runs for longer than its lease, and lives by renewals. */
const LONG_CHANCE = 0.05;

const task = JSON.parse(process.argv[2] ?? '{}') as WorkerTask;
const dice = new Dice(task.seed, process.pid);
const ledger = openLedger(task.ledger);
// A worker does not outlive its supervisor.
process.once('disconnect', () => process.exit());

const connectAnyhow = async (connect: Connect): Promise<TestClient> => {
  for (;;) {
    try {
      return await connect({ port: task.port });
    } catch {
      await sleep(100);
    }
  }
};

const [, connect] = CLIENTS[task.library % CLIENTS.length] ?? CLIENTS[0] ?? [];
if (connect === undefined) throw new Error('there is no client library');
const [main, second] = [await connectAnyhow(connect), await connectAnyhow(connect)];
const store = redisStore(main.client, { commandTimeoutMs: COMMAND_TIMEOUT_MS, subscriber: second.client });

const effect = tool({
  name: 'effect',
  policy: {
    effects: 'mutating',
    timeoutMs: 10_000,
    retry: { maxAttempts: 1 },
    breaker: { failureThreshold: Infinity, failureRate: Infinity },
    dedupe: { leaseMs: task.leaseMs, doneTtlMs: task.doneTtlMs, failedTtlMs: 500 },
  },
  execute: async ({ key }: { key: string }, { fence = 0, signal }) => {
    ledger.write({ what: 'started', key, fence });
    const durationMs = dice.chance(LONG_CHANCE) ? task.leaseMs * 1.5 : dice.int(2, 200);
    await sleep(durationMs, undefined, { signal });
    ledger.write({ what: 'finished', key, fence });
    return `${fence} of ${process.pid}`;
  },
});
const spillway = createSpillway({
  tools: [effect],
  store: recordedStore(store, ledger, task.plant),
  storeTimeoutMs: STORE_TIMEOUT_MS,
});

const run = async ({ id, key }: Order): Promise<void> => {
  const result = await spillway.execute({
    contractVersion: '1.1',
    requestId: crypto.randomUUID(),
    toolName: 'effect',
    toolNamespace: 'soak',
    target: { sessionKey: 'soak', actorId: 'soak' },
    payload: { version: '1.0', params: { key }, idempotencyKey: key },
    transport: { dedupeMode: 'enforced', retryBudget: { maxAttempts: 1, maxElapsedMs: 20_000 } },
    control: {},
    trace: {},
  });
  const { status, fromCache, output, error } = result;
  const value = output?.content;
  const answer: Answer = {
    id,
    status,
    fromCache,
    ...(typeof value === 'string' ? { value } : {}),
    ...(error === undefined ? {} : { code: error.code }),
    honest: status === 'success' || error?.retriable === true || error?.uncertain === true,
  };
  process.send?.(answer);
};

process.on('message', (order: Order) => void run(order));
process.send?.({ ready: true });
