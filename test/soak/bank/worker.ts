import { ToolExecutionError, createSpillway, tool, type AnyTool, type ToolContext } from '../../../src/index.ts';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { CLIENTS } from '../../stores/redis/clients.ts';
import { SETTLE_MS, type Transfer } from './bank.ts';
import type { Plant } from './plants.ts';

/** What a worker is told on its command line. */
export interface Task {
  readonly port: number;
  /** By what it reaches the bank. */
  readonly over: 'http' | 'mcp';
  /** A client library of Redis, or SQLite. */
  readonly kind: 'sqlite' | 'redis' | 'ioredis';
  /** The file of SQLite, or the socket of Redis. */
  readonly store: string;
  /** Its limits of time are so many times as long as usual. */
  readonly pace: number;
  /** A mistake that it makes, which whoever watches has to find. */
  readonly plant?: Plant;
}

/** What it is asked over IPC. */
export interface Order {
  readonly key: string;
  readonly transfer: Transfer;
}

/** What it answers. */
export interface Receipt {
  readonly key: string;
  readonly status: string;
  readonly uncertain: boolean;
  /** It says nothing about the transfer: this call did not come to it, and is to be asked again under its key. */
  readonly again: boolean;
  readonly verified?: string;
  readonly receipt?: unknown;
  readonly error?: string;
}

const task = JSON.parse(process.argv[2] ?? '{}') as Task;
const { plant, pace } = task;
// A worker does not outlive its supervisor.
process.once('disconnect', () => process.exit());

const asked = async (path: string, init: RequestInit, { callKey, fence = 0 }: { callKey: string; fence?: number }) => {
  const headers = { 'x-key': callKey, 'x-fence': String(fence), 'content-type': 'application/json' };
  const response = await fetch(`http://127.0.0.1:${task.port}${path}`, { ...init, headers });
  const body = (await response.json()) as { readonly receipt?: string; readonly booked?: boolean };
  if (!response.ok) throw Object.assign(new Error(`the bank said ${response.status}`), { status: response.status });
  return body;
};

const POLICY = {
  safetyCritical: true,
  timeoutMs: 250 * pace,
  breaker: false,
  retry: { maxAttempts: 5, initialDelayMs: 10, maxTotalTimeMs: 30_000 * pace },
  dedupe: { leaseMs: 1_500 * pace, failedTtlMs: 600_000 },
} as const;
const VERIFY = { settleMs: SETTLE_MS.http * pace, timeoutMs: 1_000 * pace, maxAttempts: 10, delayMs: 20 } as const;

type Asked = Transfer & { readonly reference: string };

const overHttp = (): AnyTool =>
  tool({
    name: 'transfer',
    policy: { ...POLICY, verify: VERIFY },
    execute: async ({ reference: _, ...transfer }: Asked, context) => {
      const { signal } = context;
      const body = JSON.stringify({ ...transfer, sentAtMs: Date.now() });
      return (await asked('/transfer', { method: 'POST', body, signal }, context)).receipt;
    },
    verify: async (_, context) => {
      const { booked, receipt } = await asked('/verify', { signal: context.signal }, context);
      return booked === true ? { done: true, output: receipt } : booked === false ? { done: false } : 'unknown';
    },
  });

/** The same tool, as one would have it who makes a mistake. */
const planted = (sound: AnyTool): AnyTool => {
  const { verify: _, policy: { verify: _policy, safetyCritical: _critical, ...policy } = {}, ...rest } = sound;
  const execute = sound.execute as (input: Asked, context: ToolContext) => Promise<unknown>;
  const through = (change: (input: Asked, context: ToolContext) => Promise<unknown>): AnyTool => ({
    ...sound,
    execute: change,
  });
  const saying = (done: boolean): AnyTool => ({
    ...rest,
    policy: { ...policy, verify: { settleMs: 0 } },
    execute: sound.execute,
    verify: (input: Asked) => (done ? { done: true, output: `r-${input.reference}` } : { done: false }),
  });
  switch (plant) {
    case 'no_verify':
      return { ...rest, policy: { ...policy, enforcesKey: true } };
    case 'early':
      return { ...sound, policy: { ...sound.policy, verify: { ...sound.policy?.verify, settleMs: 0 } } };
    case 'denies':
      return saying(false);
    case 'hopes':
      return saying(true);
    case 'other_key':
      return through((input, { callKey, attempt, ...context }) => {
        const key = `${attempt === 1 ? '' : attempt}${callKey}`;
        return execute({ ...input, reference: key }, { ...context, attempt, callKey: key });
      });
    case 'swallows':
      return through((input, context) => execute(input, context).catch(() => `r-${input.reference}`));
    case 'other_amount':
      return through((input, context) => execute({ ...input, amount: input.amount + context.attempt - 1 }, context));
    case 'refuses':
      return through(() => Promise.reject(new ToolExecutionError('not_permitted', 'no')));
    default:
      return sound;
  }
};

const overMcp = async (): Promise<AnyTool[]> => {
  const { tools } = await mcpHttpProvider({ name: 'bank', url: `http://127.0.0.1:${task.port}/mcp` });
  const verify = {
    ...VERIFY,
    settleMs: SETTLE_MS.mcp * pace,
    tool: 'bank.list_transfers',
    input: { reference: '${input.reference}' },
    done: { path: 'transfers[*].reference', equals: '${input.reference}' },
    output: 'transfers[*].receipt',
  };
  return tools.map((known) =>
    known.name === 'bank.transfer'
      ? {
          ...known,
          policy: { ...known.policy, ...POLICY, verify },
          execute: (input: Asked, context: ToolContext) => known.execute({ ...input, sentAtMs: Date.now() }, context),
        }
      : known,
  );
};

const sound = task.over === 'http' ? [overHttp()] : await overMcp();
const tools = sound.map((known) => (known.name.endsWith('transfer') ? planted(known) : known));
const connect = CLIENTS.find(([name]) => name === task.kind)?.[1];
const redis = await connect?.({ path: task.store });
const shared = redis === undefined ? sqliteStore(task.store) : redisStore(redis.client);
const store = plant === 'no_claim' ? memoryStore() : shared;
const layer = createSpillway({ tools, store, retryBudget: false });

process.on('message', (order: Order) => {
  const { key, transfer } = order;
  void layer
    .execute({
      toolName: task.over === 'http' ? 'transfer' : 'bank.transfer',
      input: { ...transfer, reference: key },
      idempotencyKey: key,
      session: 'soak',
    })
    .then(({ status, verified, error, output }) => {
      const told: Receipt = {
        key,
        status,
        uncertain: error?.uncertain === true,
        again: error?.code === 'store_unavailable' || error?.code === 'duplicate_in_flight',
        ...(verified === undefined ? {} : { verified }),
        ...(output === undefined ? {} : { receipt: output.content }),
        ...(error === undefined ? {} : { error: `${error.code}: ${error.message}` }),
      };
      process.send?.(told);
    });
});
process.send?.({ ready: true });
