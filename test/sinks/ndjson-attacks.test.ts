import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { virtualRuntime } from 'spillway/testing';
import { event, fresh, numbers, rotated } from './ndjson-kit.ts';

const flusher = join(import.meta.dirname, 'ndjson-flusher.ts');

/** A process that writes, killed once it has said that so many events are written. */
const killedAfter = async (count: number, path: string, ...more: readonly string[]): Promise<number> => {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [flusher, path, ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let acknowledged = 0;
  for await (const line of createInterface(child.stdout)) {
    acknowledged = Number(line);
    // What it has said meanwhile is read until its end.
    if (acknowledged >= Number(more[0] ?? 0) + count) child.kill('SIGKILL');
  }
  await exited;
  return acknowledged;
};
const seqsIn = async (paths: readonly string[]): Promise<{ readonly seqs: number[]; readonly torn: number }> => {
  const read = await Promise.all(paths.map((path) => readNdjson(path).catch(() => undefined)));
  return {
    seqs: read.flatMap((file) => file?.events.map(({ seq }) => seq) ?? []),
    torn: read.reduce((sum, file) => sum + (file?.leftOutCount ?? 0), 0),
  };
};

describe('R-7.1 NDJSON under attack', { timeout: 120_000 }, () => {
  it('R-7.1 killed again and again: what a flush has told of is there, and a new process goes on', async () => {
    const { folder, path } = fresh();
    let first = 0;
    for (const count of [1, 400, 2_000, 900]) {
      const acknowledged = await killedAfter(count, path, String(first), '20000');
      const { seqs, torn } = await seqsIn([...rotated(folder), path]);
      // A line that was being written is torn at most, one a kill.
      expect(torn).toBeLessThanOrEqual(4);
      expect(seqs.slice(0, acknowledged)).toEqual(numbers(0, acknowledged - 1));
      // Those after the last flush may be there or not, from the first on.
      expect(seqs).toEqual(numbers(0, seqs.length - 1));
      first = seqs.length;
    }
  });

  it('R-7.1 two processes in one file, of which one rotates it: every line is whole, and none is lost', async () => {
    const { folder, path } = fresh();
    const [one, other] = await Promise.all([
      killedAfter(3_000, path, '0', '30000'),
      killedAfter(3_000, path, '1000000'),
    ]);
    const { seqs, torn } = await seqsIn([...rotated(folder), path]);
    expect(torn).toBeLessThanOrEqual(2);
    const all = new Set(seqs);
    expect(seqs).toHaveLength(all.size);
    expect(rotated(folder).length).toBeGreaterThan(1);
    expect([...numbers(0, one - 1), ...numbers(1_000_000, other - 1)].filter((seq) => !all.has(seq))).toEqual([]);
  });

  it('R-7.1 the clock is set back by a day, and on by a week, in mid-burst: nothing is lost', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const day = 86_400_000;
    let shiftMs = 0;
    const file = await ndjsonSink(path, {
      runtime: { ...runtime, now: () => runtime.now(), wallNow: () => runtime.wallNow() + shiftMs },
      maxFileAgeMs: day,
      maxFileBytes: 20_000,
    });
    let seq = 0;
    for (const shift of [0, -day, 6 * day, -day, 0]) {
      shiftMs += shift;
      for (let n = 0; n < 100; n++) file.next(event(++seq, 'x'.repeat(100)));
      const flushed = file.flush();
      for (let n = 0; n < 100; n++) file.next(event(++seq, 'x'.repeat(100)));
      await flushed;
      await runtime.advance(day / 2);
    }
    expect(await file.close()).toEqual({ written: seq, dropped: 0 });
    const { seqs, torn } = await seqsIn([...rotated(folder), path]);
    expect([torn, seqs]).toEqual([0, numbers(1, seq)]);
  });

  it('R-7.1 a folder or a link that is named as if it had been rotated away is not deleted, nor counted', async () => {
    const { folder, path } = fresh();
    const [own, link] = ['0', '1'].map((n) => join(folder, `trace.20200101T00000000${n}Z.ndjson`));
    mkdirSync(own ?? '');
    for (let n = 0; n < 20; n++) writeFileSync(join(own ?? '', `${n}${'x'.repeat(200)}`), 'theirs');
    symlinkSync(own ?? '', link ?? '');
    const errors: unknown[] = [];
    const file = await ndjsonSink(path, {
      maxFileBytes: 4_096,
      maxFolderBytes: 8_192,
      onError: (error) => errors.push(error),
    });
    for (let seq = 1; seq <= 300; seq++) {
      file.next(event(seq, 'x'.repeat(100)));
      await file.flush();
    }
    expect(await file.close()).toEqual({ written: 300, dropped: 0 });
    expect(errors).toEqual([]);
    expect([lstatSync(own ?? '').isDirectory(), lstatSync(link ?? '').isSymbolicLink()]).toEqual([true, true]);
    // One full file beside the one that grows.
    expect(rotated(folder)).toHaveLength(3);
  });

  it('R-7.1 renamed by somebody else just when it is rotated: no failure, and it goes on at the path', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const elsewhere = join(folder, 'elsewhere.ndjson');
    let asked = -Infinity;
    const wallNow = (): number => {
      // First for the file's age, then for the name that it is to have.
      if (++asked === 2) renameSync(path, elsewhere);
      return runtime.wallNow();
    };
    const errors: unknown[] = [];
    const file = await ndjsonSink(path, {
      runtime: { ...runtime, now: () => runtime.now(), wallNow },
      maxFileBytes: 4_096,
      onError: (error) => errors.push(error),
    });
    file.next(event(1, 'x'.repeat(3_800)));
    await file.flush();
    asked = 0;
    file.next(event(2, 'x'.repeat(100)));
    await file.flush();
    expect(asked).toBeGreaterThanOrEqual(2);
    expect(await file.close()).toEqual({ written: 2, dropped: 0 });
    expect(errors).toEqual([]);
    expect((await seqsIn([elsewhere])).seqs).toEqual([1]);
    expect((await seqsIn([path])).seqs).toEqual([2]);
  });
});
