import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../simulation/dice.ts';
import { startRedis } from '../stores/redis/server.ts';
import { checkLedger, type Verdict } from './checker.ts';
import { startFaults, type Faults } from './faults.ts';
import { readLedger } from './ledger.ts';
import { startProxy } from './proxy.ts';
import type { Plant } from './recorded-store.ts';
import type { Answer, Order } from './worker.ts';
import { startWorkers } from './workers.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly calls: number;
  readonly keys: number;
  readonly workers: number;
  /** Redis keeps nothing over a restart. */
  readonly forgetful: boolean;
  readonly plant?: Plant;
}

export interface SoakReport extends Verdict {
  readonly answered: number;
  /** Final answers by their status, or the code of their error. */
  readonly answers: Readonly<Record<string, number>>;
  readonly replays: number;
  /** Orders given again: their worker was killed, or told them to ask again. */
  readonly reissued: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly seconds: number;
}

const LEASE_MS = 600;
const DONE_TTL_MS = 2_500;
const ROOM = 40;
/** A client asks again so often under the same key; then what it was told stands. */
const TRIES_MAX = 6;
const ASK_AGAIN_MS = 150;
/** So many calls are for a key that is under way: a client that lost its connection and asks again. */
const DUPLICATE_CHANCE = 0.4;
/** What is under way when the time is over may take this long. */
const GRACE_MS = 30_000;
/** Troubles begin when all workers are there, or after this. */
const START_MS = 30_000;

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/**
 * Calls over keys, by processes that are killed, stopped and cut off from a Redis that is killed as well; then the
 * ledger is read.
 */
export async function soak({
  seconds,
  seed,
  calls,
  keys,
  workers: count,
  forgetful,
  plant,
}: SoakOptions): Promise<SoakReport> {
  const startedAtMs = performance.now();
  const dir = mkdtempSync(join(tmpdir(), 'spillway-soak-'));
  const ledger = join(dir, 'ledger');
  const server = await startRedis({ settings: forgetful ? {} : { appendonly: 'yes', appendfsync: 'always' } });
  const proxy = await startProxy(server.path, seed);
  const dice = new Dice(seed, 4);
  const problems: string[] = [];
  const answers: Array<{ key: string; askedAtMs: number; fence: number; fromCache: boolean }> = [];
  const final: Record<string, number> = {};
  const open = new Map<number, { readonly order: Order; askedAtMs: number; tries: number }>();
  const waiting: Order[] = [];
  let [issued, answered, replays, reissued] = [0, 0, 0, 0];

  const again = (order: Order): void => {
    reissued++;
    waiting.push(order);
  };
  const workers = startWorkers({
    count,
    room: ROOM,
    task: (library) => ({
      port: proxy.port,
      ledger,
      seed: dice.int(1, 1e9),
      library,
      leaseMs: LEASE_MS,
      doneTtlMs: DONE_TTL_MS,
      ...(plant === undefined ? {} : { plant }),
    }),
    orphaned: (orders) => orders.forEach(again),
    crashed: (said) => problems.push(said),
    answered: ({ id, status, fromCache, value, code, honest }: Answer) => {
      const call = open.get(id);
      if (call === undefined) return;
      const { order, askedAtMs } = call;
      if (!honest)
        problems.push(
          `${order.key} was answered ${status} (${code}), which is neither a result nor a reason to ask again`,
        );
      if (status === 'success')
        answers.push({ key: order.key, askedAtMs, fence: Number.parseInt(value ?? '', 10), fromCache });
      else if (call.tries < TRIES_MAX) {
        setTimeout(() => again(order), ASK_AGAIN_MS);
        return;
      }
      open.delete(id);
      answered++;
      if (fromCache) replays++;
      const what = status === 'success' ? status : `${status}: ${code}`;
      final[what] = (final[what] ?? 0) + 1;
    },
  });
  const give = (order: Order): boolean => {
    const call = open.get(order.id);
    if (call === undefined) return true;
    call.askedAtMs = Date.now();
    if (!workers.order(order)) return false;
    call.tries++;
    return true;
  };

  let faults: Faults | undefined;
  try {
    for (const startMs = performance.now() + START_MS; !workers.ready && performance.now() < startMs;) await sleep(20);
    faults = startFaults({ seed, server, proxy, workers, leaseMs: LEASE_MS });
    const beganAtMs = performance.now();
    const endMs = beganAtMs + seconds * 1_000;
    while (performance.now() < endMs) {
      const due = Math.min(calls, Math.ceil(((performance.now() - beganAtMs) / (seconds * 950)) * calls));
      for (; issued < due; issued++) {
        const under = [...open.values()];
        const twin = dice.chance(DUPLICATE_CHANCE) ? under[dice.int(0, under.length)]?.order.key : undefined;
        const order = { id: issued, key: twin ?? `k${dice.int(1, keys)}` };
        open.set(order.id, { order, askedAtMs: 0, tries: 0 });
        waiting.push(order);
      }
      while (waiting[0] !== undefined && give(waiting[0])) waiting.shift();
      await sleep(5);
    }
    await faults.end();
    for (const graceMs = performance.now() + GRACE_MS; open.size > 0 && performance.now() < graceMs; await sleep(5)) {
      while (waiting[0] !== undefined && give(waiting[0])) waiting.shift();
    }
    for (const { order } of open.values()) problems.push(`${order.key} (call ${order.id}) was never answered`);
  } finally {
    await faults?.end();
    await workers.stop();
    await proxy.close();
    await server.stop();
  }
  for (const pid of [...workers.pids, server.pid]) if (isAlive(pid)) problems.push(`process ${pid} was left behind`);
  const verdict = checkLedger(readLedger(ledger), {
    frozen: workers.frozen,
    outages: faults?.outages ?? [],
    forgetful,
    answers,
  });
  rmSync(dir, { recursive: true, force: true });
  const seen = Object.entries(proxy.seen).map(([weather, times]) => [`network ${weather.replace('_', ' ')}`, times]);
  return {
    ...verdict,
    violations: [...problems, ...verdict.violations],
    answered,
    answers: final,
    replays,
    reissued,
    faults: { ...faults?.counts, ...(Object.fromEntries(seen) as Record<string, number>) },
    seconds: (performance.now() - startedAtMs) / 1_000,
  };
}
