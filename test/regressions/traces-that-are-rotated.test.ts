// Was: a trace file that was rotated away was followed under its old name for ever, and of one that was cut off only
// the first reader was told. Now: the file of that name is followed, the old one is read to its end, and each reader is
// told what nobody can read any more.
import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { liveRuntime } from '../../src/runtime.ts';
import { TraceFile } from '../../src/gateway/inspector/trace-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'spillway-rotated-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const line = (seq: number): string =>
  `${JSON.stringify({ seq, atMs: seq, source: 'call', callId: `c${seq}`, toolName: 'a', type: 'call_started' })}\n`;

/** All that is there from a place on. */
const drained = async (file: TraceFile, from = 0): Promise<{ at: number; seqs: number[]; lost: number }> => {
  const seqs: number[] = [];
  let lost = 0;
  for (let at = from; ;) {
    const piece = await file.read(at);
    seqs.push(...piece.lines.map((text) => (JSON.parse(text) as { seq: number }).seq));
    lost += piece.lost;
    if (piece.nextId === at) return { at, seqs, lost };
    at = piece.nextId;
  }
};

it('SEE-7 a file that is rotated away is read to its end, and then the one that has its name', async () => {
  const path = join(folder, 'rotated.ndjson');
  writeFileSync(path, line(1));
  const file = await TraceFile.open(path, liveRuntime);
  try {
    const first = await drained(file);
    expect(first.seqs).toEqual([1]);
    appendFileSync(path, line(2));
    renameSync(path, join(folder, 'rotated.1.ndjson'));
    // Between both there is none of that name, and then an empty one: what comes may still go to the old one.
    expect((await drained(file, first.at)).seqs).toEqual([2]);
    writeFileSync(path, '');
    appendFileSync(join(folder, 'rotated.1.ndjson'), line(3));
    expect((await drained(file, first.at)).seqs).toEqual([2, 3]);
    appendFileSync(path, line(4));
    expect(await drained(file, first.at)).toMatchObject({ seqs: [2, 3, 4], lost: 0 });
    expect(await drained(file)).toMatchObject({ seqs: [1, 2, 3, 4], lost: 0 });
  } finally {
    await file.close();
  }
});

it('SEE-7 of a file that is cut off each reader is told of a loss, and then what is in it now', async () => {
  const path = join(folder, 'cut.ndjson');
  writeFileSync(path, line(1) + line(2) + line(3));
  const file = await TraceFile.open(path, liveRuntime);
  try {
    const one = await drained(file);
    truncateSync(path);
    appendFileSync(path, line(4));
    expect(await drained(file, one.at)).toMatchObject({ seqs: [4], lost: 1 });
    expect(await drained(file, one.at)).toMatchObject({ seqs: [4], lost: 1 });
    expect(await drained(file, 0)).toMatchObject({ seqs: [4], lost: 1 });
    for (let round = 0; round < 8; round++) {
      truncateSync(path);
      await drained(file);
      appendFileSync(path, line(5 + round));
      await drained(file);
    }
    // Of those that came and went meanwhile nothing is kept open for ever, and who comes back late is told.
    const late = await drained(file, one.at);
    expect([late.seqs, late.lost > 0]).toEqual([[12], true]);
  } finally {
    await file.close();
  }
});

it('SEE-7 one that is cut off and has grown past its old end before anybody looks is no file that grew', async () => {
  const path = join(folder, 'cut-and-grown.ndjson');
  writeFileSync(path, line(1) + line(2));
  const file = await TraceFile.open(path, liveRuntime);
  try {
    const one = await drained(file);
    expect(one.seqs).toEqual([1, 2]);
    truncateSync(path);
    appendFileSync(path, line(3) + line(4) + line(5));
    expect(await drained(file, one.at)).toMatchObject({ seqs: [3, 4, 5], lost: 1 });
    appendFileSync(path, line(6));
    expect(await drained(file, 0)).toMatchObject({ seqs: [3, 4, 5, 6], lost: 1 });
    truncateSync(path);
    appendFileSync(path, line(7) + line(8) + line(9) + line(10));
    expect(await drained(file, 0)).toMatchObject({ seqs: [7, 8, 9, 10], lost: 2 });
  } finally {
    await file.close();
  }
});
