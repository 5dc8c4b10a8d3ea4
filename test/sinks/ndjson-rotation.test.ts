import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, renameSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ndjsonSink, readNdjson, type NdjsonSink } from 'spillway/sinks/ndjson';
import { virtualRuntime } from 'spillway/testing';
import { event, firstLine, fresh, numbers, rotated, seqsOf } from './ndjson-kit.ts';

const writer = join(import.meta.dirname, 'ndjson-writer.ts');
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  readonly version: string;
};
const HEADER = {
  format: 1,
  source: 'sink',
  type: 'file_started',
  version,
  time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown,
  atMs: expect.any(Number) as unknown,
};

/** Writes events for as long as `goOn` says, in bursts, with turns of the event loop between. */
const writing = async (file: NdjsonSink, goOn: (seq: number) => boolean): Promise<number> => {
  let seq = 0;
  while (goOn(seq)) {
    for (let burst = 0; burst < 7; burst++) file.next(event(++seq, `t${'x'.repeat(seq % 90)}`));
    await nextTurn();
  }
  return seq;
};

describe('R-7.1 the header of a file', () => {
  it('R-7.1 is its first line, and is no event', async () => {
    const { path } = fresh();
    const runtime = virtualRuntime();
    const file = await ndjsonSink(path, { runtime });
    file.next(event(1));
    expect(await file.close()).toEqual({ written: 1, dropped: 0 });
    expect(firstLine(path)).toEqual({
      ...HEADER,
      time: new Date(runtime.wallNow()).toISOString(),
      atMs: runtime.now(),
    });
    expect(await readNdjson(path)).toMatchObject({ events: [event(1)], leftOutCount: 0, dropped: 0, lastSeq: 1 });
  });

  it('R-7.1 a file without one reads as before; one of a format to come says so', async () => {
    const { path } = fresh();
    writeFileSync(path, `${JSON.stringify(event(1))}\n`);
    expect((await readNdjson(path)).events).toEqual([event(1)]);
    writeFileSync(path, `{"format":2,"source":"sink","type":"file_started"}\n${JSON.stringify(event(1))}\n`);
    expect(await readNdjson(path)).toMatchObject({ events: [event(1)], leftOut: [{ line: 1, why: 'not_an_event' }] });
  });

  it('R-7.1 each process that goes on in a file begins with one', async () => {
    const { path } = fresh();
    for (const seq of [1, 2]) {
      const file = await ndjsonSink(path);
      file.next(event(seq));
      await file.close();
    }
    expect(
      readFileSync(path, 'utf8')
        .split('\n')
        .map((line) => line.includes('file_started')),
    ).toEqual([true, false, false, true, false, false, false]);
    expect(await seqsOf([path])).toEqual([1, 2]);
  });
});

describe('R-7.1 rotation by somebody else', () => {
  it('R-7.1 renamed while it is written, and reopened: every line is in one file or the other, whole', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path);
    const olds: string[] = [];
    const rotations = (async () => {
      for (let round = 0; round < 20; round++) {
        while ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 2_000) await nextTurn();
        const old = join(folder, `trace.ndjson.${round}`);
        renameSync(path, old);
        olds.push(old);
        await file.reopen();
      }
      return true;
    })();
    let done = false;
    void rotations.then(() => (done = true));
    const last = await writing(file, () => !done);
    expect(await file.close()).toEqual({ written: last, dropped: 0 });
    expect(await seqsOf([...olds, path])).toEqual(numbers(1, last));
    for (const old of [...olds, path]) expect(firstLine(old)).toMatchObject(HEADER);
  });

  it('R-7.1 renamed and not reopened: it goes on in the renamed file, and loses nothing', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path);
    const old = join(folder, 'trace.ndjson.1');
    file.next(event(1));
    await file.flush();
    renameSync(path, old);
    file.next(event(2));
    await file.flush();
    await file.reopen();
    file.next(event(3));
    await file.close();
    expect([await seqsOf([old]), await seqsOf([path])]).toEqual([[1, 2], [3]]);
  });

  it('R-7.1 reopened where nothing was renamed changes nothing; a closed one stays closed', async () => {
    const { path } = fresh();
    const file = await ndjsonSink(path);
    file.next(event(1));
    await file.reopen();
    file.next(event(2));
    await file.close();
    await file.reopen();
    file.next(event(3));
    expect(readFileSync(path, 'utf8').match(/file_started/g)).toHaveLength(1);
    expect(await seqsOf([path])).toEqual([1, 2]);
  });

  it('R-7.1 copied and cut off while it is written: no line is torn, and only what was written between copy and cut is lost', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path);
    const copies: string[] = [];
    let done = false;
    const rotations = (async () => {
      for (let round = 0; round < 20; round++) {
        while ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 2_000) await nextTurn();
        const copy = join(folder, `copy-${round}`);
        copyFileSync(path, copy);
        truncateSync(path);
        copies.push(copy);
      }
      done = true;
    })();
    const last = await writing(file, () => !done);
    await rotations;
    const { written, dropped } = await file.close();
    expect([written, dropped]).toEqual([last, 0]);
    const traces = await Promise.all([...copies, path].map((one) => readNdjson(one)));
    // A copy may have caught a line half written: that is the copier's, and goes with the cut.
    expect(
      traces
        .slice(0, -1)
        .flatMap(({ leftOut }) => leftOut)
        .filter(({ why }) => why !== 'torn'),
    ).toEqual([]);
    expect(traces.at(-1)?.leftOutCount).toBe(0);
    const parts = traces.map(({ events }) => events.map(({ seq }) => seq));
    const seqs = parts.flat();
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    // Within a file nothing is missing: what is lost lies between two.
    for (const part of parts) if (part.length > 0) expect(part).toEqual(numbers(part[0] ?? 0, part.at(-1) ?? 0));
    expect(seqs.at(-1)).toBe(last);
    // Whole; the header, unless the file was cut between the look at its length and the write.
    expect(['file_started', 'breaker_evicted']).toContain((firstLine(path) as { readonly type: string }).type);
  });

  it('R-7.1 cut off in the middle of a line: the next one is whole', async () => {
    const { path } = fresh();
    const file = await ndjsonSink(path);
    for (const seq of numbers(1, 3)) file.next(event(seq));
    await file.flush();
    truncateSync(path, statSync(path).size - 5);
    file.next(event(4));
    await file.close();
    expect(await readNdjson(path)).toMatchObject({
      events: [event(1), event(2), event(4)],
      leftOut: [{ why: 'not_json' }],
    });
  });

  it('R-7.1 deleted: the next event begins a new file', async () => {
    const { path } = fresh();
    const file = await ndjsonSink(path);
    file.next(event(1));
    await file.flush();
    unlinkSync(path);
    file.next(event(2));
    expect(await file.close()).toEqual({ written: 2, dropped: 0 });
    expect(firstLine(path)).toMatchObject(HEADER);
    expect(await seqsOf([path])).toEqual([2]);
  });
});

describe('R-7.1 rotation of its own', () => {
  it('R-7.1 by size: no file is larger, each begins with a header, and together they are everything', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path, { maxFileBytes: 5_000 });
    const last = await writing(file, (seq) => seq < 700);
    expect(await file.close()).toEqual({ written: last, dropped: 0 });
    const files = [...rotated(folder), path];
    expect(files.length).toBeGreaterThan(10);
    expect(Math.max(...files.map((one) => statSync(one).size))).toBeLessThanOrEqual(5_000);
    for (const one of files) expect(firstLine(one)).toMatchObject(HEADER);
    expect(await seqsOf(files)).toEqual(numbers(1, last));
  });

  it('R-7.1 by size, whatever the lines and bursts are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer({ min: 0, max: 6_000 }), { maxLength: 12 }), { maxLength: 8 }),
        fc.boolean(),
        async (bursts, restarts) => {
          const { folder, path } = fresh();
          let file = await ndjsonSink(path, { maxFileBytes: 4_096 });
          let seq = 0;
          for (const burst of bursts) {
            for (const length of burst) file.next(event(++seq, 'x'.repeat(length)));
            await file.flush();
            if (!restarts) continue;
            await file.close();
            file = await ndjsonSink(path, { maxFileBytes: 4_096 });
          }
          await file.close();
          const files = [...rotated(folder), path];
          expect(await seqsOf(files)).toEqual(numbers(1, seq));
          // One that is too large by itself has a file of its own.
          for (const one of files)
            expect(statSync(one).size <= 4_096 || (await readNdjson(one)).events.length === 1).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('R-7.1 by age, which a restart does not begin anew', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const day = 86_400_000;
    let file = await ndjsonSink(path, { runtime, maxFileAgeMs: day });
    file.next(event(1));
    await file.flush();
    await runtime.advance(day / 2);
    await file.close();
    file = await ndjsonSink(path, { runtime, maxFileAgeMs: day });
    file.next(event(2));
    await file.flush();
    expect(rotated(folder)).toEqual([]);
    await runtime.advance(day / 2);
    file.next(event(3));
    await file.flush();
    const [first = ''] = rotated(folder);
    expect(first).toMatch(/trace\.\d{8}T\d{9}Z\.ndjson$/);
    expect([await seqsOf([first]), await seqsOf([path])]).toEqual([[1, 2], [3]]);
    await runtime.advance(day - 1);
    file.next(event(4));
    await file.close();
    expect([rotated(folder).length, await seqsOf([path])]).toEqual([1, [3, 4]]);
  });

  it('R-7.1 names keep the order of the files where the clock stands still or is set back', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    let wallMs = Date.UTC(2026, 10, 22);
    const file = await ndjsonSink(path, {
      runtime: { ...runtime, now: () => runtime.now(), wallNow: () => wallMs },
      maxFileBytes: 4_096,
    });
    for (const seq of numbers(1, 30)) {
      if (seq % 10 === 0) wallMs -= 3_600_000;
      file.next(event(seq, 'x'.repeat(2_900)));
      await file.flush();
    }
    await file.close();
    expect(rotated(folder)).toHaveLength(29);
    expect(await seqsOf([...rotated(folder), path])).toEqual(numbers(1, 30));
  });

  it('R-7.1 the folder never takes more than it may, keeps the newest, and what is not ours stays', async () => {
    const { folder, path } = fresh();
    const others = [
      'trace.ndjson.1',
      'trace.2026.ndjson',
      'trace.a.20261122T232215123Z.ndjson',
      'atrace.20261122T232215123Z.ndjson',
      'trace.20261122T232215123Z.ndjson.gz',
    ];
    for (const name of others) writeFileSync(join(folder, name), 'mine');
    const file = await ndjsonSink(path, { maxFileBytes: 4_096, maxFolderBytes: 20_000 });
    const bytes = (): number =>
      [...rotated(folder), path].reduce((sum, one) => sum + (statSync(one, { throwIfNoEntry: false })?.size ?? 0), 0);
    let most = 0;
    const last = await writing(file, (seq) => {
      most = Math.max(most, bytes());
      return seq < 900;
    });
    expect(await file.close()).toEqual({ written: last, dropped: 0 });
    expect(Math.max(most, bytes())).toBeLessThanOrEqual(20_000);
    expect(bytes()).toBeGreaterThan(10_000);
    const seqs = await seqsOf([...rotated(folder), path]);
    expect(seqs).toEqual(numbers(seqs[0] ?? 0, last));
    for (const name of others) expect(readFileSync(join(folder, name), 'utf8')).toBe('mine');
  });

  it('R-7.1 an event larger than a file has one of its own, for which others go; one larger than the folder is dropped', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path, { maxFileBytes: 4_096, maxFolderBytes: 20_000 });
    for (const seq of numbers(1, 60)) {
      file.next(event(seq, 'x'.repeat(300)));
      await file.flush();
    }
    file.next(event(61, 'x'.repeat(15_000)));
    await file.flush();
    expect([...rotated(folder), path].reduce((sum, one) => sum + statSync(one).size, 0)).toBeLessThanOrEqual(20_000);
    file.next(event(62, 'x'.repeat(21_000)));
    file.next(event(63));
    expect(await file.close()).toEqual({ written: 62, dropped: 1 });
    expect(await seqsOf([path])).toEqual([63]);
    expect((await readNdjson(path)).dropped).toBe(1);
  });

  it('R-7.1 killed while it rotates: the files read back, but for the last line of the last one', async () => {
    const { folder, path } = fresh();
    const child = spawn(process.execPath, [writer, path, 'Infinity', '', '4096'], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    for (let tries = 0; rotated(folder).length < 30 && tries < 4_000; tries++)
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    child.kill('SIGKILL');
    await exited;
    const old = rotated(folder);
    expect(old.length).toBeGreaterThanOrEqual(30);
    const before = await seqsOf(old);
    const last =
      statSync(path, { throwIfNoEntry: false }) === undefined
        ? []
        : (await readNdjson(path)).events.filter((told) => !('again' in told)).map(({ seq }) => seq);
    expect([...before, ...last]).toEqual(numbers(0, before.length + last.length - 1));
  });
});
