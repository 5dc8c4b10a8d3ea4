import { readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { event, fresh, numbers, rotated } from './ndjson-kit.ts';

/** What a process writes that appends to a file; one that is killed does not close it. */
const written = async (path: string, seqs: readonly number[], killed = false): Promise<void> => {
  const file = await ndjsonSink(path);
  for (const seq of seqs) file.next(event(seq));
  await (killed ? file.flush() : file.close());
};
const changedOf = async (path: string): Promise<boolean | undefined> => (await readNdjson(path)).changed;
const linesOf = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n');
const write = (path: string, lines: readonly string[]): void => writeFileSync(path, `${lines.join('\n')}\n`);
const CHANGES = [
  (lines: readonly string[], at: number) => lines.toSpliced(at, 1),
  (lines: readonly string[], at: number) => lines.toSpliced(at, 0, lines[at] ?? ''),
  (lines: readonly string[], at: number) => lines.with(at, (lines[at] ?? '').replace(/.$/, ' }')),
  (lines: readonly string[], at: number) => lines.with(at, (lines[at] ?? '').replace('":"', '": "')),
];

describe('R-7.1 a file knows whether its lines are those that were written', () => {
  it('R-7.1 also where a restarted process has gone on in it: each part is looked at', async () => {
    const { path } = fresh();
    await written(path, numbers(1, 3));
    await written(path, numbers(4, 6));
    expect(await readNdjson(path)).toMatchObject({ lastSeq: 6, changed: false });
    const lines = linesOf(path);
    for (const [at, line] of lines.entries()) {
      write(path, lines.with(at, line.replace('"scope":""', '"scope":"a"').replace(/"time":"\d/, '"time":"9')));
      expect([at, await changedOf(path)]).toEqual([at, !line.includes('file_ended')]);
    }
  });

  it('R-7.1 it cannot say so of a process that was killed, and says neither', async () => {
    const { path } = fresh();
    await written(path, numbers(1, 3), true);
    expect(await changedOf(path)).toBeUndefined();
    await written(path, numbers(4, 6));
    expect(await readNdjson(path)).toMatchObject({ leftOutCount: 0, lastSeq: 6 });
    expect(await changedOf(path)).toBeUndefined();
    truncateSync(path, 20);
    await written(path, numbers(7, 9));
    expect(await changedOf(path)).toBeUndefined();
  });

  it('R-7.1 it cannot where two processes write at once, either', async () => {
    const { path } = fresh();
    const files = [await ndjsonSink(path), await ndjsonSink(path)];
    for (const seq of numbers(1, 6)) {
      files[seq % 2]?.next(event(seq));
      await files[seq % 2]?.flush();
    }
    for (const file of files) await file.close();
    expect(await readNdjson(path)).toMatchObject({ leftOutCount: 0, events: numbers(1, 6).map((seq) => event(seq)) });
    expect(await changedOf(path)).toBeUndefined();
  });

  const RENAMED = (path: string): void => renameSync(path, `${path}.1`);
  const CUT = (path: string): void => truncateSync(path);
  it.each<[string, (path: string) => void, firstName: string, order: readonly number[]]>([
    ['renamed, and the first goes on', RENAMED, 'a', [0, 1]],
    ['renamed, and the second goes on', RENAMED, 'a', [1, 0]],
    ['cut off, and the first goes on', CUT, 'a', [0, 1]],
    ['cut off, and the second goes on with more than there was', CUT, 'a', [1, 1, 1, 0]],
    ['cut off, and the second goes on with less than there was', CUT, 'a'.repeat(2_000), [1, 0]],
  ])('R-7.1 nor where the file of two is %s', async (_, rotate, firstName, order) => {
    const { path } = fresh();
    const files = [await ndjsonSink(path), await ndjsonSink(path)];
    const write = async (writers: readonly number[]): Promise<void> => {
      for (const [at, writer] of writers.entries()) {
        files[writer]?.next(event(at, writer === 0 ? firstName : 'b'));
        await files[writer]?.flush();
      }
    };
    await write([0, 1]);
    rotate(path);
    for (const file of files) await file.reopen();
    await write(order);
    expect(await changedOf(path)).toBeUndefined();
    for (const [writer, file] of files.entries()) {
      await file.close();
      expect(await readNdjson(path)).toMatchObject({ leftOutCount: 0, lastSeq: order.lastIndexOf(writer) });
      expect(await changedOf(path)).toBeUndefined();
    }
  });

  it.each([
    ['a byte-order mark', (text: string) => `\uFEFF${text}`],
    ['other ends of lines', (text: string) => text.replaceAll('\n', '\r\n')],
    ['both', (text: string) => `\uFEFF${text.replaceAll('\n', '\r\n')}`],
    ['empty lines', (text: string) => text.replaceAll('\n', '\n \n')],
  ])('R-7.1 %s, which an editor puts in, is no change', async (_, edited) => {
    const { path } = fresh();
    await written(path, numbers(1, 3));
    writeFileSync(path, edited(readFileSync(path, 'utf8')));
    const { events, ...rest } = await readNdjson(path);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(rest).toEqual({ leftOut: [], leftOutCount: 0, dropped: 0, lastSeq: 3, changed: false });
  });

  it('R-7.1 of a file with nothing in it nobody can say so', async () => {
    const { path } = fresh();
    writeFileSync(path, '\n');
    expect(await changedOf(path)).toBeUndefined();
  });

  it('R-7.1 the last part of a rotated file is right by itself, and all parts together', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 4, maxLength: 20 }),
        fc.nat(),
        fc.nat(CHANGES.length - 1),
        async (lengths, place, kind) => {
          const { folder, path } = fresh();
          const file = await ndjsonSink(path, { maxFileBytes: 4_096 });
          for (const [index, length] of lengths.entries()) file.next(event(index, 'x'.repeat(length)));
          await file.close();
          expect(await readNdjson(path)).toMatchObject({ changed: false, lastSeq: lengths.length - 1 });
          const parts = [...rotated(folder), path].flatMap(linesOf);
          write(path, parts);
          expect(await changedOf(path)).toBe(false);
          write(path, CHANGES[kind]?.(parts, 1 + (place % (parts.length - 2))) ?? []);
          expect(await changedOf(path)).not.toBe(false);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('R-7.1 a last line that finds its file full begins another, and is right there', async () => {
    const { folder, path } = fresh();
    const file = await ndjsonSink(path, { maxFileBytes: 4_096 });
    file.next(event(1, 'x'.repeat(3_850)));
    await file.close();
    expect([rotated(folder).length, linesOf(path).length]).toEqual([1, 2]);
    expect(await readNdjson(path)).toMatchObject({ events: [], lastSeq: 1, changed: false });
  });

  it('R-7.1 where its end was cut off while it was written, a number is missing', async () => {
    const { path } = fresh();
    const file = await ndjsonSink(path);
    for (const seq of numbers(1, 4)) file.next(event(seq));
    await file.flush();
    const { length } = linesOf(path).at(-1) ?? '';
    truncateSync(path, readFileSync(path).length - length - 1);
    file.next(event(5));
    await file.close();
    const { events, leftOutCount, changed } = await readNdjson(path);
    expect([events.map(({ seq }) => seq), leftOutCount, changed]).toEqual([[1, 2, 3, 5], 0, undefined]);
  });
});
