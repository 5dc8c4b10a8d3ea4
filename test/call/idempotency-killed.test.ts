import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DedupeStore, ToolResultEnvelope } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { sqliteStore } from 'spillway/stores/sqlite';
import { asked, records, watched } from '../spec/tr-02-stores.ts';
import type { Point, WorkerTask } from '../spec/tr-02-worker.ts';
import { CLIENTS } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

const WORKER = join(import.meta.dirname, '../spec/tr-02-worker.ts');
const LEASE_MS = 1_500;

let folder: string;
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-killed-'));
});

interface Worker {
  readonly child: ChildProcess;
  readonly steps: string[];
  began: boolean;
  result: ToolResultEnvelope | undefined;
  readonly gone: Promise<unknown>;
}

const workers: Worker[] = [];
afterEach(async () => {
  for (const { child, gone } of workers.splice(0)) {
    child.kill('SIGKILL');
    await gone;
  }
  rmSync(folder, { recursive: true, force: true });
});

type Kind = 'sqlite' | 'redis';
const taskOf = (kind: Kind, more: Partial<WorkerTask> = {}): WorkerTask => ({
  store: kind === 'sqlite' ? { sqlite: join(folder, 'calls.db') } : { redis: server.path },
  ledger: join(folder, 'ledger'),
  // Each test has its own folder, and so its own key.
  request: asked({ key: folder }),
  leaseMs: LEASE_MS,
  ...more,
});

const start = (task: WorkerTask): Worker => {
  const child = fork(WORKER, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const worker: Worker = { child, steps: [], began: false, result: undefined, gone: once(child, 'exit') };
  child.on(
    'message',
    (message: { readonly step?: string; readonly began?: true; readonly result?: ToolResultEnvelope }) => {
      if (message.step !== undefined) worker.steps.push(message.step);
      if (message.began === true) worker.began = true;
      if (message.result !== undefined) worker.result = message.result;
    },
  );
  workers.push(worker);
  return worker;
};

const finished = async (worker: Worker): Promise<ToolResultEnvelope> => {
  await worker.gone;
  if (worker.result === undefined) throw new Error(`a worker ended without a result, after ${worker.steps.join(' ')}`);
  return worker.result;
};

const effects = (): string[][] => {
  try {
    return readFileSync(join(folder, 'ledger'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' '));
  } catch {
    return [];
  }
};

/** The same place, seen from this process. */
const withStore = async <T>(kind: Kind, use: (store: DedupeStore) => Promise<T>): Promise<T> => {
  const [, connect] = CLIENTS[0] ?? [];
  const client = kind === 'redis' ? await connect?.({ path: server.path }) : undefined;
  const store: DedupeStore = client === undefined ? sqliteStore(join(folder, 'calls.db')) : redisStore(client.client);
  try {
    return await use(store);
  } finally {
    await store.close?.();
    await client?.close();
  }
};

const look = (kind: Kind): Promise<string[]> =>
  withStore(kind, async (store) =>
    (await records(store)).filter(({ idempotencyKey }) => idempotencyKey === folder).map(({ state }) => state),
  );

/** The next one to ask for the same, in this process. */
const next = (
  kind: Kind,
  safetyCritical = false,
): Promise<{ readonly result: ToolResultEnvelope; readonly steps: readonly string[] }> =>
  withStore(kind, async (store) => {
    const { call, steps } = watched(
      store,
      (_input, { callKey, fence }) => {
        appendFileSync(join(folder, 'ledger'), `${callKey} ${fence} ${process.pid}\n`);
        return process.pid;
      },
      { effects: 'mutating', safetyCritical, retry: { maxAttempts: 1 }, dedupe: { leaseMs: LEASE_MS } },
    );
    return { result: await call({ key: folder }), steps: steps() };
  });

describe.each(['sqlite', 'redis'] as const)('a worker on %s', (kind) => {
  it.each<readonly [Point, number, string]>([
    ['before the claim', 1, 'claimed'],
    ['after the claim', 1, 'taken_over'],
    ['in the attempt', 1, 'taken_over'],
    // What nobody recorded, nobody can know: only the resource can refuse the second one, by its key.
    ['after the effect', 2, 'taken_over'],
    ['before the completion', 2, 'taken_over'],
    ['after the completion', 1, 'replayed'],
  ])('R-9.6 killed %s: effects in all %i, and the next one is told %s', async (diesAt, count, step) => {
    await start(taskOf(kind, { diesAt })).gone;
    expect(workers[0]?.child.signalCode).toBe('SIGKILL');
    const { result, steps } = await next(kind);
    expect(result).toMatchObject({ status: 'success', fromCache: step === 'replayed' });
    expect(steps).toContain(step);
    const ledger = effects();
    expect(ledger).toHaveLength(count);
    const [first, second] = ledger;
    expect(new Set(ledger.map(([callKey]) => callKey)).size).toBe(1);
    if (second !== undefined) expect(Number(second[1])).toBeGreaterThan(Number(first?.[1]));
    expect(await look(kind)).toEqual(['done']);
  });

  it.each<Point>(['after the claim', 'in the attempt', 'after the effect', 'before the completion'])(
    'R-2.5 killed %s, safety-critical: it is not run again, and reported uncertain',
    async (diesAt) => {
      await start(taskOf(kind, { diesAt, safetyCritical: true })).gone;
      const before = effects().length;
      await sleep(LEASE_MS);
      expect((await next(kind, true)).result).toMatchObject({
        attempts: 0,
        error: { uncertain: true, terminal: true },
      });
      expect(effects()).toHaveLength(before);
    },
  );

  it('R-9.6 stopped for longer than its lease: another takes over, and thawed it gives the other’s result', async () => {
    const stalled = start(taskOf(kind, { takesMs: 5_000 }));
    await expect.poll(() => stalled.began).toBe(true);
    stalled.child.kill('SIGSTOP');
    const { result } = await next(kind);
    expect(result).toMatchObject({ status: 'success', fromCache: false });
    stalled.child.kill('SIGCONT');
    const late = await finished(stalled);
    expect(late.output?.content).toBe(result.output?.content);
    expect(late.fromCache).toBe(true);
    // The thawed one may have had its own effect before it could hear that it must not; with a lower fence, which the
    // resource can refuse.
    const [first, second] = effects().toSorted((a, b) => Number(a[1]) - Number(b[1]));
    expect(first).toBeDefined();
    if (second !== undefined) expect(first?.[2]).toBe(String(stalled.child.pid));
    expect(await look(kind)).toEqual(['done']);
  });
});

it.each(['sqlite', 'redis'] as const)(
  'R-4.4 SIGTERM on %s while it runs: the call is told that it is canceled, and its key says so before the process is gone',
  async (kind) => {
    const running = start(taskOf(kind, { takesMs: 60_000, leaseMs: 60_000 }));
    await expect.poll(() => running.began).toBe(true);
    running.child.kill('SIGTERM');
    await running.gone;
    expect(running.child.exitCode).toBe(0);
    expect(await look(kind)).toEqual(['cancelled']);
    expect(effects()).toEqual([]);
  },
);
