import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { TraceFile } from '../../src/gateway/inspector/trace-file.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { manyCalls } from './many-calls.ts';

const folder = mkdtempSync(join(tmpdir(), 'spillway-growing-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NAME = 'reise_ä€𝄞_旅';
const line = (seq: number): string =>
  `${JSON.stringify({ seq, atMs: seq, source: 'call', callId: `c${seq}`, toolName: NAME, type: 'call_started' })}\n`;
interface Seen {
  readonly seq: number;
  readonly toolName: string;
}

it('SEE-7 a file is followed where it is written byte by byte: no line is torn, nor a character in it', async () => {
  const path = join(folder, 'bytes.ndjson');
  writeFileSync(path, '');
  const file = await TraceFile.open(path, liveRuntime);
  const seen: Seen[] = [];
  let at = 0;
  try {
    const bytes = Buffer.from(line(1) + line(2));
    for (const [index] of bytes.entries()) {
      appendFileSync(path, bytes.subarray(index, index + 1));
      const { nextId, lines, lost } = await file.read(at);
      seen.push(...lines.map((text) => JSON.parse(text) as Seen));
      expect([lost, seen.length]).toEqual([0, bytes.subarray(0, index + 1).filter((byte) => byte === 10).length]);
      at = nextId;
    }
    expect(seen.map(({ seq, toolName }) => [seq, toolName])).toEqual([
      [1, NAME],
      [2, NAME],
    ]);
  } finally {
    await file.close();
  }
});

it('SEE-7 a file that grows by 50 MB while it is followed is told whole, in order, a piece at a time', async () => {
  const path = join(folder, 'grows.ndjson');
  const [calls, chunk] = [65_000, 5_000];
  writeFileSync(path, '');
  const file = await TraceFile.open(path, liveRuntime);
  let at = 0;
  let next = 0;
  let longest = 0;
  const drain = async (): Promise<void> => {
    for (;;) {
      const { nextId, lines, lost } = await file.read(at);
      expect(lost).toBe(0);
      if (nextId === at) return;
      for (const text of lines) {
        // What `manyCalls` numbers has no gap.
        if ((JSON.parse(text) as Seen).seq !== next++) throw new Error(`${text} in place of ${next - 1}`);
      }
      longest = Math.max(longest, nextId - at);
      at = nextId;
    }
  };
  try {
    for (let from = 0; from < calls; from += chunk) {
      // A reader is in its midst while more is written.
      const draining = drain();
      manyCalls(path, chunk, from);
      await draining;
    }
    await drain();
    expect(statSync(path).size).toBeGreaterThan(50 * 10 ** 6);
    expect(next).toBe(calls * 5);
    // A client is never sent all of it at once.
    expect(longest).toBeLessThanOrEqual(2 ** 18);
  } finally {
    await file.close();
  }
});
