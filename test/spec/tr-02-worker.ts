import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSpillway, tool, type DedupeStore, type ToolCallEnvelope } from '../../src/index.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { CLIENTS } from '../stores/redis/clients.ts';

/** What a process that may die is told on its command line: it makes one call and tells its result over IPC. */
export interface WorkerTask {
  readonly store: { readonly sqlite: string } | { readonly redis: string };
  /** One line for each effect: `callKey fence pid`. */
  readonly ledger: string;
  readonly request: ToolCallEnvelope;
  readonly leaseMs: number;
  readonly safetyCritical?: boolean;
  /** Before it has its effect. */
  readonly takesMs?: number;
  /** Where it is killed, as by the machine. */
  readonly diesAt?: Point;
}

export type Point =
  | 'before the claim'
  | 'after the claim'
  | 'in the attempt'
  | 'after the effect'
  | 'before the completion'
  | 'after the completion';

const task = JSON.parse(process.argv[2] ?? '{}') as WorkerTask;
let closing = false;
// It does not outlive whoever started it, nor its own result; but what it closes, it closes first.
process.once('disconnect', () => {
  if (!closing) process.exit();
});

const reach = async (point: Point): Promise<void> => {
  if (task.diesAt !== point) return;
  process.kill(process.pid, 'SIGKILL');
  await new Promise(() => undefined);
};

const open = async (): Promise<DedupeStore> => {
  if ('sqlite' in task.store) return sqliteStore(task.store.sqlite);
  const [, connect] = CLIENTS[0] ?? [];
  const client = await connect?.({ path: task.store.redis });
  if (client === undefined) throw new Error('there is no client library');
  return redisStore(client.client);
};
const store = await open();
const mortal: DedupeStore = {
  ...store,
  setIfNotExists: async (claim, over) => {
    await reach('before the claim');
    const answer = await store.setIfNotExists(claim, over);
    await reach('after the claim');
    return answer;
  },
  compareAndSet: async (key, version, outcome) => {
    await reach('before the completion');
    const record = await store.compareAndSet(key, version, outcome);
    await reach('after the completion');
    return record;
  },
};

const { safetyCritical = false, takesMs = 0, leaseMs } = task;
const spillway = createSpillway({
  tools: [
    tool({
      name: 't',
      policy: { effects: 'mutating', safetyCritical, retry: { maxAttempts: 1 }, dedupe: { leaseMs } },
      execute: async (_input: unknown, { callKey, fence, signal }) => {
        process.send?.({ began: true });
        await reach('in the attempt');
        if (takesMs > 0) await sleep(takesMs, undefined, { signal });
        appendFileSync(task.ledger, `${callKey} ${fence} ${process.pid}\n`);
        await reach('after the effect');
        return process.pid;
      },
    }),
  ],
  store: mortal,
});
process.once('SIGTERM', () => {
  closing = true;
  void spillway.close().then(() => process.exit(0));
});
spillway.trace$.subscribe((event) => {
  if (event.type === 'dedupe') process.send?.({ step: event.step });
});
const result = await spillway.execute(task.request);
process.send?.({ result }, () => process.disconnect());
