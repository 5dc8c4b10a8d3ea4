import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { ReplayRefusal, replayTrace } from '../../../src/simulate/index.ts';
import { folder, spillway, type Folder } from '../../cli/support.ts';
import { recordStorm } from './storm.ts';

/** What is asked of every file. Other numbers come of it as soon as an attempt lasts longer or ends otherwise. */
const SET = ['pay.retry.maxAttempts=2', 'pay.timeoutMs=1500'];

describe('RPL-6 a file that is not as its sink wrote it is refused, or its numbers are those of before', () => {
  let files: Folder;
  let [own, other] = ['', ''];
  let unedited = '';

  /** What is said of the bytes: the numbers, or `refused`; what else is thrown is a defect. */
  const told = async (bytes: string | Uint8Array): Promise<string> => {
    const path = join(files.path, 'edited.ndjson');
    writeFileSync(path, bytes);
    const trace = await readNdjson(path);
    try {
      return JSON.stringify(replayTrace(trace, { set: SET }).candidates.map(({ events: _, ...found }) => found));
    } catch (error) {
      if (error instanceof ReplayRefusal && error.message !== '') return 'refused';
      throw error;
    }
  };

  /** A trace as the sink itself leaves it. */
  const written = async (name: string, seed: number): Promise<string> => {
    const path = join(files.path, name);
    const sink = await ndjsonSink(path);
    for (const event of recordStorm({ calls: 40, outage: [200, 600], seed })) sink.next(event);
    await sink.close();
    return readFileSync(path, 'utf8');
  };

  beforeAll(async () => {
    files = folder();
    own = await written('own.ndjson', 7);
    other = await written('other.ndjson', 8);
    unedited = await told(own);
  });
  afterAll(() => files?.[Symbol.dispose]());

  const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);
  const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
  const shifted = (from: number, byMs: number): string =>
    joined(
      linesOf(own).map((line, index) =>
        index < from ? line : line.replace(/"atMs":(\d+(?:\.\d+)?)/, (_, at: string) => `"atMs":${Number(at) + byMs}`),
      ),
    );

  it('the file itself is replayed, and so is one whose lines end as another system ends them', async () => {
    expect(unedited).toContain('"verdict"');
    expect(await told(own.replaceAll('\n', '\r\n'))).toBe(unedited);
    expect(await told(own.replaceAll('\n', '\n\n'))).toBe(unedited);
  });

  it.each<[string, () => string | Uint8Array]>([
    ['packed', () => gzipSync(own)],
    ['in UTF-16', () => Buffer.from(own, 'utf16le')],
    ['twice', () => own + own],
    ['before another run', () => own + other],
    ['with the lines of another run below its header', () => joined([...linesOf(own).slice(0, 60), ...linesOf(other)])],
    ['of another version', () => own.replaceAll(/"version":"[^"]*"/g, '"version":"99.0.0"')],
    ['of another format', () => own.replace('"format":1', '"format":2')],
    ['whose lines are in another order', () => joined(linesOf(own).toReversed())],
    ['all of whose times are later', () => shifted(1, 86_400_000)],
    ['whose second half is later, by less than clocks may differ', () => shifted(100, 120)],
    ['with an empty trace', () => joined([linesOf(own)[0] ?? '', linesOf(own).at(-1) ?? ''])],
    ['of nothing', () => ''],
  ])('one %s is refused', async (_, edited) => expect(await told(edited())).toBe('refused'));

  it('one with a byte order mark, which is no part of its text, is read as it was', async () => {
    expect(await told(`\uFEFF${own}`)).toBe(unedited);
  });

  it('each time that is moved, by however little, is refused', async () => {
    const count = linesOf(own).length;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: count - 2 }), fc.integer({ min: 1, max: 300 }), async (from, byMs) => {
        expect(await told(shifted(from, byMs))).toBe('refused');
      }),
      { numRuns: 60, seed: 21 },
    );
  });

  it('each bit that flips is refused, but for what only its header says', async () => {
    const bytes = Buffer.from(own);
    const [header, end] = [own.indexOf('\n'), own.lastIndexOf('\n', own.length - 2)];
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
        const flipped = Buffer.from(bytes);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
        const may = at > header && at <= end ? ['refused'] : ['refused', unedited];
        expect(may).toContain(await told(flipped));
      }),
      { numRuns: 400, seed: 22 },
    );
  });

  it('each line, and each piece of one, that is cut, doubled, moved or put in is refused', async () => {
    // Of the other its events: what a sink says of its file is said wherever one went on in it.
    const [lines, strangers] = [linesOf(own), linesOf(other).slice(1, -1)];
    const edits: Readonly<Record<string, (at: number, by: number) => string>> = {
      'a line cut': (at) => joined(lines.toSpliced(at, 1)),
      'a line doubled': (at) => joined(lines.toSpliced(at, 0, lines[at] ?? '')),
      'two lines swapped': (at) => joined(lines.with(at, lines[at + 1] ?? '').with(at + 1, lines[at] ?? '')),
      'a line of another run': (at, by) => joined(lines.toSpliced(at, 0, strangers[by % strangers.length] ?? '')),
      'a line from elsewhere in it': (at, by) => joined(lines.with(at, lines[1 + (by % (lines.length - 2))] ?? '')),
      'some bytes cut': (at, by) => {
        const from = own.indexOf(lines[at] ?? '') + (by % 40);
        return own.slice(0, from) + own.slice(from + 1 + (by % 7));
      },
      'a digit changed': (at, by) =>
        joined(
          lines.with(
            at,
            (lines[at] ?? '').replaceAll(/\d$|\d(?=\D)/g, () => String(by % 10)),
          ),
        ),
      'the rest cut': (at) => joined(lines.slice(0, at)),
      'all before it cut': (at) => joined(lines.slice(at + 1)),
    };
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(edits)),
        fc.integer({ min: 1, max: lines.length - 3 }),
        fc.nat(),
        async (kind, at, by) => {
          const edited = edits[kind]?.(at, by) ?? '';
          expect(await told(edited)).toBe(edited === own ? unedited : 'refused');
        },
      ),
      { numRuns: 300, seed: 23 },
    );
  });

  it('the command says what is wrong, and ends with 2', async () => {
    const path = files.write('changed.ndjson', own.replace('"message":"unavailable"', '"message":"unavailabel"'));
    const ran = await spillway('replay', path, '--set', 'pay.timeoutMs=1500', '--json');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain('changed.ndjson: its lines are not those that were written');
  });
});
