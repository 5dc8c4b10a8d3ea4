import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { LEASE_MS, type Kind, type Order, type Told } from './worker.ts';

const WORKER = join(import.meta.dirname, 'worker.ts');
const ROUNDS = Number(process.env['SPILLWAY_ROUNDS'] ?? 1);
const TRIPS = 4;
/** A trip that is left in peace takes about so long to be booked and undone. */
const TRIP_MS = 500;
const waited = { timeout: 60_000, interval: 10 };

let server: RedisServer;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.cli('flushall');
  folder = mkdtempSync(join(tmpdir(), 'spillway-saga-'));
  writeFileSync(join(folder, 'books'), '');
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(folder, { recursive: true, force: true });
});

const kill = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
};

/** What is in the books, in order: `+` for a booking, `-` for its undoing. */
const books = (): ReadonlyArray<{ readonly sign: string; readonly key: string; readonly what: string }> =>
  readFileSync(join(folder, 'books'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [sign = '', key = '', what = ''] = line.split(' ');
      return { sign, key, what };
    });

/** A process, and what it has said. */
interface Agent {
  readonly child: ChildProcess;
  readonly told: Told[];
  resumed: number;
  order(order: Order): void;
}

const start = async (kind: Kind): Promise<Agent> => {
  const path = kind === 'sqlite' ? join(folder, 'store.db') : server.path;
  const child = fork(WORKER, [kind, path, join(folder, 'books')], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  children.push(child);
  const agent: Agent = { child, told: [], resumed: 0, order: (order) => child.send(order) };
  child.on('message', (message: Told | 'resumed' | 'ready') => {
    if (typeof message === 'object') agent.told.push(message);
    else if (message === 'resumed') agent.resumed++;
  });
  await once(child, 'message');
  return agent;
};

const resumed = async (...agents: readonly Agent[]): Promise<void> => {
  const before = agents.map((agent) => agent.resumed);
  for (const agent of agents) agent.order('resume');
  await expect.poll(() => agents.every((agent, at) => agent.resumed > (before[at] ?? 0)), waited).toBe(true);
};

/** What the books and what was told disagree about. */
const problemsOf = (told: readonly Told[]): string[] => {
  const lines = books();
  const stays = new Set(told.flatMap(({ turnId, stays: ids }) => ids.map((id) => `${turnId}/${id}`)));
  return [...new Set(lines.map(({ key }) => key))].flatMap((key) => {
    const own = lines.filter((line) => line.key === key);
    const what = own[0]?.what ?? '';
    const [made, undone] = ['+', '-'].map((sign) => own.filter((line) => line.sign === sign).length);
    return [
      ...(made === 1 ? [] : [`${what} was booked ${made} times`]),
      ...((undone ?? 0) > 1 ? [`${what} was undone ${undone} times`] : []),
      ...(undone === 0 && !stays.has(what) ? [`${what} stays, and nobody was told`] : []),
      ...(undone === 1 && stays.has(what) ? [`${what} was undone, and is told to stay`] : []),
    ];
  });
};

/** Trips whose process is killed, or stands still, after so long; two others resume them at once. */
const round = async (kind: Kind, fate: 'SIGKILL' | 'SIGSTOP', n: number, afterMs: number): Promise<readonly Told[]> => {
  const agents = await Promise.all([start(kind), start(kind), start(kind)]);
  const [first, ...others] = agents;
  first.order({ book: Array.from({ length: TRIPS }, (_, trip) => `r${n}t${trip}`) });
  const before = books().length;
  await expect.poll(() => books().length, waited).toBeGreaterThan(before);
  await sleep(afterMs);
  first.child.kill(fate);
  await sleep(LEASE_MS + 200);
  const resuming = resumed(...others);
  // In the middle of the others' undoing it goes on.
  await sleep(afterMs / 2);
  if (fate === 'SIGSTOP') first.child.kill('SIGCONT');
  await resuming;
  await sleep(2 * LEASE_MS + 500);
  await resumed(others[0]);
  for (const { child } of agents) await kill(child);
  return agents.flatMap(({ told }) => told);
};

describe.each<Kind>(['redis', 'ioredis', 'sqlite'])('trips of a process over %s', { timeout: 600_000 }, (kind) => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'R-18.6 that gets a %s are undone once by two others, and nothing stays untold',
    async (fate) => {
      const told: Told[] = [];
      for (let n = 0; n < ROUNDS; n++) told.push(...(await round(kind, fate, n, ((n + 0.5) / ROUNDS) * TRIP_MS)));
      expect(problemsOf(told)).toEqual([]);
      // Something was booked, and undone.
      expect(new Set(books().map(({ sign }) => sign))).toEqual(new Set(['+', '-']));
    },
  );
});
