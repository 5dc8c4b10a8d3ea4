import { createSpillway, tool, type AnyTool } from '../../../src/index.ts';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { CLIENTS } from '../../stores/redis/clients.ts';
import type { Transfer } from './bank.ts';

/** What a worker is told on its command line. */
export interface Task {
  readonly port: number;
  /** By what it reaches the bank. */
  readonly over: 'http' | 'mcp';
  /** A client library of Redis, or SQLite. */
  readonly kind: 'sqlite' | 'redis' | 'ioredis';
  /** The file of SQLite, or the socket of Redis. */
  readonly store: string;
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
  timeoutMs: 250,
  breaker: false,
  retry: { maxAttempts: 5, initialDelayMs: 10, maxTotalTimeMs: 30_000 },
  dedupe: { leaseMs: 1_500, failedTtlMs: 600_000 },
} as const;
const VERIFY = { settleMs: 400, timeoutMs: 1_000, maxAttempts: 10, delayMs: 20 } as const;

const overHttp = (): AnyTool =>
  tool({
    name: 'transfer',
    policy: { ...POLICY, verify: VERIFY },
    execute: async ({ reference: _, ...transfer }: Transfer & { readonly reference: string }, context) => {
      const { signal } = context;
      return (await asked('/transfer', { method: 'POST', body: JSON.stringify(transfer), signal }, context)).receipt;
    },
    verify: async (_, context) => {
      const { booked, receipt } = await asked('/verify', { signal: context.signal }, context);
      return booked === true ? { done: true, output: receipt } : booked === false ? { done: false } : 'unknown';
    },
  });

/** A server for each request is slow: on a busy machine a transfer lies there for a while after its caller has gone. */
const MCP_SETTLE_MS = 3_000;

const overMcp = async (): Promise<AnyTool[]> => {
  const { tools } = await mcpHttpProvider({ name: 'bank', url: `http://127.0.0.1:${task.port}/mcp` });
  const verify = {
    ...VERIFY,
    settleMs: MCP_SETTLE_MS,
    tool: 'bank.list_transfers',
    input: { reference: '${input.reference}' },
    done: { path: 'transfers[*].reference', equals: '${input.reference}' },
    output: 'transfers[*].receipt',
  };
  return tools.map((known) =>
    known.name === 'bank.transfer' ? { ...known, policy: { ...known.policy, ...POLICY, verify } } : known,
  );
};

const tools = task.over === 'http' ? [overHttp()] : await overMcp();
const connect = CLIENTS.find(([name]) => name === task.kind)?.[1];
const redis = await connect?.({ path: task.store });
const store = redis === undefined ? sqliteStore(task.store) : redisStore(redis.client);
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
