import { array, assert, constantFrom, integer, oneof, property, string, uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineReader, type LongLine } from '../../../../src/providers/mcp/stdio/line-reader.ts';
import { longAnswer, refusalOfLong } from '../../../../src/providers/mcp/stdio/long-message.ts';

const MAX_BYTES = 2_000;

const linesOf = (chunks: readonly Buffer[], maxBytes = MAX_BYTES): Array<string | LongLine> => {
  const reader = new LineReader(maxBytes);
  return chunks.flatMap((chunk) =>
    Array.from(reader.read(chunk), (line) => (Buffer.isBuffer(line) ? line.toString('utf8') : line)),
  );
};

/** The same bytes in pieces of these sizes, over and over. */
const cut = (bytes: Buffer, sizes: readonly number[]): Buffer[] => {
  const chunks: Buffer[] = [];
  for (let from = 0, turn = 0; from < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    chunks.push(bytes.subarray(from, from + size));
    from += size;
  }
  return chunks;
};

const LINE = oneof(
  string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll(/[\n\r]/g, ' ')),
  constantFrom('', 'é'.repeat(900), 'x'.repeat(MAX_BYTES), 'y'.repeat(MAX_BYTES + 1), 'z'.repeat(9_000)),
);

describe('R-12.2 the lines of a server', () => {
  it('R-12.2 are the same however they were cut, and of one that is too long the ends are there', () => {
    assert(
      property(
        array(LINE, { maxLength: 12 }),
        array(integer({ min: 1, max: 700 }), { minLength: 1 }),
        (lines, sizes) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          const expected = lines.map((line) =>
            Buffer.byteLength(line) <= MAX_BYTES
              ? line
              : { bytes: line.length, head: line.slice(0, 512), tail: line.slice(-512) },
          );
          expect(linesOf(cut(bytes, sizes))).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('R-12.2 any bytes at all are taken', () => {
    assert(property(array(uint8Array({ maxLength: 3_000 })), (chunks) => void linesOf(chunks.map(Buffer.from))));
  });

  it('R-12.2 a long line in many chunks costs a few times what joining them once does', () => {
    const chunks = cut(Buffer.alloc(32 * 2 ** 20, 'x'), [8_192]);
    const usedMs = (work: () => unknown): number => {
      const before = process.cpuUsage();
      work();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    const best = (work: () => unknown): number => Math.min(...[1, 2, 3, 4, 5].map(() => usedMs(work)));
    const once = best(() => Buffer.concat(chunks).toString('utf8'));
    // Joined anew with each chunk it would be some two thousand times as much.
    expect(best(() => linesOf([...chunks, Buffer.from('\n')], 2 ** 30))).toBeLessThan(once * 20);
  });
});

describe('R-12.2 a message that is too long to be read', () => {
  const TEXT = 'x'.repeat(9_000);
  const longOf = (line: string): LongLine => {
    const [long] = linesOf([Buffer.from(`${line}\n`)]);
    if (typeof long !== 'object') throw new Error('it is not long');
    return long;
  };

  it.each([
    ['TypeScript, id last', `{"result":{"content":[{"text":"${TEXT}"}]},"jsonrpc":"2.0","id":7}`, 7],
    ['Python, id second', `{"jsonrpc":"2.0","id":7,"result":{"text":"${TEXT}"}}`, 7],
    ['with blanks', `{"jsonrpc": "2.0", "id": "a\\"b", "result": {"text": "${TEXT}"}}`, 'a"b'],
    ['version last', `{"result":"${TEXT}","id":"s","jsonrpc":"2.0"}\r`, 's'],
    ['an error', `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"${TEXT}"}}`, 7],
  ])('R-12.2 an answer is one to its request: %s', (_as, line, id) => {
    expect(longAnswer(longOf(line), MAX_BYTES)).toMatchObject({ jsonrpc: '2.0', id, error: { code: -32_603 } });
    expect(refusalOfLong(longOf(line), MAX_BYTES)).toBeUndefined();
  });

  it.each([
    ['TypeScript', `{"method":"tools/call","params":{"text":"${TEXT}"},"jsonrpc":"2.0","id":7}`],
    ['Python', `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"${TEXT}"}}`],
  ])('R-12.2 a request is refused, and is no answer: %s', (_as, line) => {
    expect(refusalOfLong(longOf(line), MAX_BYTES)).toMatchObject({ id: 7, error: { code: -32_600 } });
    expect(longAnswer(longOf(line), MAX_BYTES)).toBeUndefined();
  });

  it.each([
    ['a notification', `{"jsonrpc":"2.0","method":"notifications/message","params":{"text":"${TEXT}"}}`],
    ['an id within its result', `{"jsonrpc":"2.0","result":{"text":"${TEXT}","id":7}}`],
    ['an id within its text', `{"jsonrpc":"2.0","result":{"text":"${TEXT},\\"id\\":7}"}`],
    ['an id in its params', `{"jsonrpc":"2.0","method":"x","params":{"text":"${TEXT}","id":7}}`],
    ['an id that is none', `{"jsonrpc":"2.0","id":007,"result":"${TEXT}"}`],
    ['an id with a wrong escape', `{"jsonrpc":"2.0","id":"\\q","method":"${TEXT}"}`],
    ['a server’s own print', `loading ${TEXT},"id":7}`],
  ])('R-12.2 of %s nobody is told', (_as, line) => {
    expect(longAnswer(longOf(line), MAX_BYTES)).toBeUndefined();
    expect(refusalOfLong(longOf(line), MAX_BYTES)).toBeUndefined();
  });
});
