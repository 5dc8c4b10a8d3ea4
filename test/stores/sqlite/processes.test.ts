import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Readable, Writable } from 'node:stream';
import { sqliteStore } from 'spillway/stores/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-sqlite-'));
  path = join(folder, 'calls.db');
});

interface Worker {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** What it said, line by line. */
  said(): string[];
  until(lines: number): Promise<void>;
  readonly exited: Promise<unknown>;
}
const workers: Worker[] = [];
const start = (mode: 'race' | 'work', argument: string): Worker => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'worker.ts'), mode, path, argument], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => (text += more));
  const exited = once(child, 'close');
  // A line that was cut by a kill was not acknowledged.
  const said = (): string[] => text.split('\n').slice(0, -1);
  const until = async (lines: number): Promise<void> => {
    while (said().length < lines)
      await Promise.race([
        once(child.stdout, 'data'),
        exited.then(() => expect.fail(`the worker ended after ${said().length} lines`)),
      ]);
  };
  const worker = { child, said, until, exited };
  workers.push(worker);
  return worker;
};
afterEach(async () => {
  for (const { child, exited } of workers.splice(0)) {
    child.kill('SIGKILL');
    await exited;
  }
  rmSync(folder, { recursive: true });
});

const sound = (): void => {
  const db = new DatabaseSync(path);
  expect(Object.values(db.prepare('PRAGMA integrity_check').get() ?? {})).toEqual(['ok']);
  expect(db.prepare('SELECT (SELECT records FROM counters) = count(*) AS counted FROM records').get()).toEqual({
    counted: 1,
  });
  db.close();
};

describe('R-10.2 sqlite: several processes', () => {
  it('R-10.2 eight processes racing for 2,000 keys of one new file give 2,000 owners', async () => {
    const racers = Array.from({ length: 8 }, () => start('race', '2000'));
    await Promise.all(racers.map(({ until }) => until(1)));
    for (const { child } of racers) child.stdin.write('go\n');
    await Promise.all(racers.map(({ exited }) => exited));
    expect(racers.map(({ child }) => child.exitCode)).toEqual(Array.from({ length: 8 }, () => 0));
    const owned = racers.flatMap(({ said }) => said().slice(1)).map((line) => line.split(' '));
    expect(owned).toHaveLength(2_000);
    expect(new Set(owned.map(([key]) => key)).size).toBe(2_000);
    expect(new Set(owned.map(([, version]) => version)).size).toBe(2_000);
    sound();
  });

  it('R-10.2 kill -9 in the middle loses nothing that was acknowledged, and damages nothing', async () => {
    const killed: Worker[] = [];
    for (let round = 0; round < 3; round++) {
      const pair = [start('work', `first ${round}`), start('work', `second ${round}`)];
      await Promise.all(pair.map(({ until }) => until(300 + 37 * round)));
      for (const { child } of pair) child.kill('SIGKILL');
      await Promise.all(pair.map(({ exited }) => exited));
      killed.push(...pair);
      sound();
    }
    const store = sqliteStore(path);
    const acknowledged = killed
      .flatMap(({ said }) => said().slice(1))
      .map((line) => /^(claimed|done) (.*) (\d+)$/.exec(line)?.slice(1) ?? []);
    expect(acknowledged.length).toBeGreaterThan(1_800);
    for (const [what, key = '', version] of acknowledged) {
      const record = (await store.get(key))?.record;
      if (what === 'done')
        expect(record).toMatchObject({ state: 'done', payload: JSON.stringify(key), version: Number(version) });
      else expect(record?.version).toBeGreaterThanOrEqual(Number(version));
    }
    await store.close?.();
  });
});
