import { createSpillway, tool } from '../../../src/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import type { Transfer } from './bank.ts';

/** What a worker is told on its command line. */
export interface Task {
  readonly port: number;
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

const pay = tool({
  name: 'transfer',
  policy: {
    safetyCritical: true,
    timeoutMs: 250,
    breaker: false,
    retry: { maxAttempts: 5, initialDelayMs: 10, maxTotalTimeMs: 30_000 },
    dedupe: { leaseMs: 1_500, failedTtlMs: 600_000 },
    verify: { settleMs: 400, timeoutMs: 1_000, maxAttempts: 10, delayMs: 20 },
  },
  execute: async (transfer: Transfer, context) => {
    const { signal } = context;
    return (await asked('/transfer', { method: 'POST', body: JSON.stringify(transfer), signal }, context)).receipt;
  },
  verify: async (_, context) => {
    const { booked, receipt } = await asked('/verify', { signal: context.signal }, context);
    return booked === true ? { done: true, output: receipt } : booked === false ? { done: false } : 'unknown';
  },
});

const store = sqliteStore(task.store);
const layer = createSpillway({ tools: [pay], store, retryBudget: false });

process.on('message', (order: Order) => {
  const { key, transfer } = order;
  void layer
    .execute({ toolName: 'transfer', input: transfer, idempotencyKey: key, session: 'soak' })
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
