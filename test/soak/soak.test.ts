import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DedupeStore } from '../../src/contract/store.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { claimOf } from '../../src/testing/store-conformance/check.ts';
import { checkLedger, type Observed } from './checker.ts';
import { openLedger, readLedger, type Entry, type Note } from './ledger.ts';
import { startProxy } from './proxy.ts';
import { PLANTS, recordedStore, type Plant } from './recorded-store.ts';
import { soak } from './soak.ts';

const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'spillway-soak-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
};
const nothing: Observed = { frozen: new Map(), outages: [], forgetful: false, answers: [] };
const payload = (value: string): string => JSON.stringify({ output: { content: value } });

/** An owner stands still for longer than its lease, another takes over and ends, the first one wakes. */
const overtaken = async (store: DedupeStore): Promise<void> => {
  const first = await store.setIfNotExists(claimOf('k', { leaseMs: 30 }));
  await sleep(60);
  const second = await store.setIfNotExists(claimOf('k', { leaseMs: 60_000 }), first.record.version);
  await store.compareAndSet('k', second.record.version, { state: 'done', ttlMs: 60_000, payload: payload('2') });
  await store.compareAndSet('k', first.record.version, { state: 'done', ttlMs: 60_000, payload: payload('1') });
};
/** A second one comes while the first one runs. */
const doubled = async (store: DedupeStore): Promise<void> => {
  await store.setIfNotExists(claimOf('k', { leaseMs: 60_000 }));
  await sleep(10);
  await store.setIfNotExists(claimOf('k', { leaseMs: 60_000 }));
};
const play = async (plant: Plant | undefined): Promise<string[]> => {
  const violations: string[] = [];
  for (const scene of [overtaken, doubled]) {
    const path = join(folder(), 'ledger');
    const ledger = openLedger(path);
    await scene(recordedStore(memoryStore(), ledger, plant));
    ledger.close();
    violations.push(...checkLedger(readLedger(path), nothing).violations);
  }
  return violations;
};

describe('the checker', () => {
  it('IDEM-1 IDEM-3 finds each planted mistake, and nothing where there is none', async () => {
    expect(await play(undefined)).toEqual([]);
    for (const plant of PLANTS) expect(await play(plant), plant).not.toEqual([]);
  });

  const entry = (note: Note, atMs: number, pid = 1): Entry => ({ ...note, atMs, pid, monotonicMs: atMs });
  const claimed = (fence: number, atMs: number, untilMs: number): Entry =>
    entry({ what: 'claimed', key: 'k', fence, untilMs, over: false }, atMs);

  it.each([
    ['a claim within a lease', [claimed(1, 0, 100), claimed(2, 50, 150)], {}, 1],
    ['a claim after a lease', [claimed(1, 0, 100), claimed(2, 100, 150)], {}, 0],
    [
      'a claim within a renewed lease',
      [claimed(1, 0, 100), entry({ what: 'renewed', key: 'k', fence: 1, untilMs: 200 }, 50), claimed(2, 150, 250)],
      {},
      1,
    ],
    [
      'a claim after the end',
      [claimed(1, 0, 100), entry({ what: 'ending', key: 'k', fence: 1 }, 20), claimed(2, 50, 150)],
      {},
      0,
    ],
    [
      'a claim that Redis had forgotten, where it may',
      [claimed(1, 0, 100), claimed(2, 50, 150)],
      { forgetful: true, outages: [{ fromMs: 20, toMs: 40 }] },
      0,
    ],
    [
      'a claim that Redis had forgotten, where it may not',
      [claimed(1, 0, 100), claimed(2, 50, 150)],
      { outages: [{ fromMs: 20, toMs: 40 }] },
      1,
    ],
    ['an effect without a claim', [entry({ what: 'started', key: 'k', fence: 9 }, 1)], {}, 1],
    [
      'an effect beside a valid lease',
      [claimed(1, 0, 100), claimed(2, 110, 250), entry({ what: 'started', key: 'k', fence: 1 }, 150)],
      {},
      1,
    ],
    [
      'the same of a process that stood still',
      [claimed(1, 0, 100), claimed(2, 110, 250), entry({ what: 'started', key: 'k', fence: 1 }, 150, 7)],
      { frozen: new Map([[7, [{ fromMs: 10, toMs: 140 }]]]) },
      0,
    ],
    [
      'a stale outcome',
      [
        entry({ what: 'recorded', key: 'k', fence: 2, version: 3, value: 'b' }, 1),
        entry({ what: 'recorded', key: 'k', fence: 1, version: 4, value: 'a' }, 2),
      ],
      {},
      1,
    ],
    [
      'an old result',
      [entry({ what: 'recorded', key: 'k', fence: 2, version: 3, value: 'b' }, 1)],
      { answers: [{ key: 'k', askedAtMs: 5, fence: 1, fromCache: true }] },
      1,
    ],
  ])('IDEM-1 %s: its number of violations', (_name, entries, observed, violations) => {
    expect(checkLedger(entries, { ...nothing, ...observed }).violations).toHaveLength(violations);
  });

  it('the ledger keeps lines of several writers whole', () => {
    const path = join(folder(), 'ledger');
    const writers = [openLedger(path), openLedger(path)];
    for (let fence = 1; fence <= 200; fence++) writers[fence % 2]?.write({ what: 'started', key: 'é\n"', fence });
    expect(readLedger(path).map(({ fence }) => fence)).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(201);
  });
});

it('the proxy keeps bytes and their order in every weather but a hole, out of which nothing comes', async () => {
  const path = join(folder(), 'echo');
  const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket));
  await new Promise<void>((resolve) => echo.listen(path, resolve));
  const proxy = await startProxy(path, 5);
  onTestFinished(async () => {
    await proxy.close();
    echo.close();
  });
  const socket = connect(proxy.port, '127.0.0.1');
  let got = '';
  let closed = false;
  socket
    .on('data', (chunk: Buffer) => (got += chunk.toString()))
    .on('close', () => (closed = true))
    .on('error', () => undefined);
  let sent = '';
  for (const weather of ['calm', 'sliced', 'slow', 'calm'] as const) {
    proxy.become(weather);
    for (let i = 0; i < 20; i++) {
      const text = `${weather} ${i};`;
      sent += text;
      socket.write(text);
    }
    await sleep(30);
  }
  await expect.poll(() => got).toBe(sent);
  proxy.become('black_hole');
  socket.write('lost');
  await sleep(100);
  proxy.become('calm');
  await expect.poll(() => closed).toBe(true);
  expect(got).toBe(sent);
});

it('IDEM-1 a short soak with kills, pauses, restarts and a bad network keeps the promise', async () => {
  const report = await soak({ seconds: 8, seed: 3, calls: 600, keys: 60, workers: 2, forgetful: false });
  expect(report.violations).toEqual([]);
  expect(report.answered).toBe(600);
  expect(report.executions).toBeGreaterThan(60);
});
