import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { TraceEvent } from 'spillway';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { layerOf, reset, stepped } from './kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'spillway-ndjson-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const fresh = (): string => join(folder, `trace-${files++}.ndjson`);
const writer = join(import.meta.dirname, 'ndjson-writer.ts');
const event = (seq: number, toolName = 't'): TraceEvent => ({
  source: 'layer',
  type: 'breaker_evicted',
  seq,
  atMs: seq,
  toolName,
  scope: '',
});

describe('R-7.1 NDJSON', () => {
  it('R-7.1 what is written reads back, event by event', async () => {
    const path = fresh();
    const layer = layerOf([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    const file = await ndjsonSink(path);
    layer.spillway.trace$.subscribe(file);
    await layer.run('shaky');
    expect(await file.close()).toEqual({ written: layer.events.length, dropped: 0 });
    expect(await readNdjson(path)).toEqual({
      events: JSON.parse(JSON.stringify(layer.events)) as unknown,
      leftOut: [],
      leftOutCount: 0,
      dropped: 0,
      lastSeq: layer.events.at(-1)?.seq,
      changed: false,
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('R-7.1 goes on at the end of a file, after a torn line too', async () => {
    const path = fresh();
    writeFileSync(path, `${JSON.stringify(event(1))}\n{"source":"la`);
    for (const seq of [2, 3]) {
      const file = await ndjsonSink(path);
      file.next(event(seq));
      await file.close();
    }
    const { events, leftOut } = await readNdjson(path);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(leftOut).toEqual([{ line: 2, why: 'not_json' }]);
  });

  it('R-7.1 says what it had to leave out, and what the file says it lost', async () => {
    const path = fresh();
    writeFileSync(
      path,
      `{"a":1}\n\nnull\n[1]\n${JSON.stringify(event(1))}\r\n${JSON.stringify(event(2, 'x'.repeat(500)))}\n{"source":"sink","type":"dropped","count":7}\n${JSON.stringify(event(3)).slice(0, -3)}`,
    );
    const { events, leftOut, leftOutCount, dropped } = await readNdjson(path, { maxLineBytes: 400 });
    expect(events.map(({ seq }) => seq)).toEqual([1]);
    expect(leftOut.map(({ line, why }) => `${line} ${why}`)).toEqual([
      '1 not_an_event',
      '3 not_an_event',
      '4 not_an_event',
      '6 too_long',
      '8 torn',
    ]);
    expect([leftOutCount, dropped]).toEqual([5, 7]);
  });

  it('R-7.1 a file cut anywhere loses its last line only', async () => {
    const path = fresh();
    const whole = [0, 1, 2, 3].map((seq) => `${JSON.stringify(event(seq, 'é☃'))}\n`).join('');
    writeFileSync(path, whole);
    const bytes = Buffer.byteLength(whole);
    for (let length = bytes; length >= 0; length -= 7) {
      truncateSync(path, length);
      const { events, leftOutCount } = await readNdjson(path);
      const complete = readFileSync(path, 'utf8').split('\n').length - 1;
      expect(events.length - complete, `${length} bytes`).toBeLessThanOrEqual(1);
      expect(events.length).toBeGreaterThanOrEqual(complete);
      expect(leftOutCount).toBeLessThanOrEqual(1);
    }
  });

  it('R-7.1 reads whatever is in a file', async () => {
    const path = fresh();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        writeFileSync(path, bytes);
        appendFileSync(path, `\n${JSON.stringify(event(9))}\n`);
        expect((await readNdjson(path)).events.at(-1)).toEqual(event(9));
      }),
      { numRuns: 200 },
    );
  });

  it('R-7.1 a full disk loses events and nothing else, and they are counted', async () => {
    const file = await ndjsonSink('/dev/full', { retryMs: 1 });
    const layer = layerOf([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    layer.spillway.trace$.subscribe(file);
    expect(await layer.run('shaky')).toMatchObject({ status: 'success', attempts: 2 });
    await file.flush();
    await layer.run('shaky');
    const { written, dropped, error } = await file.close();
    expect([written, dropped, (error as NodeJS.ErrnoException).code]).toEqual([0, layer.events.length, 'ENOSPC']);
    expect(layer.spillway.droppedEvents).toBe(0);
  });

  it('R-7.1 a file that may grow no further keeps whole lines, and the process lives', async () => {
    const path = fresh();
    // 8 blocks of 512 or 1,024 bytes; the signal that comes with it is ignored, as for a service.
    const { stdout, status, stderr } = spawnSync(
      'sh',
      ['-c', 'trap "" XFSZ; ulimit -f 8; exec "$0" "$@"', process.execPath, writer, path, '200'],
      { encoding: 'utf8' },
    );
    expect(status, stderr).toBe(0);
    const report = JSON.parse(stdout) as { written: number; dropped: number; code: string };
    const { events, leftOutCount } = await readNdjson(path);
    expect(report).toEqual({ written: events.length, dropped: 1 + 200 * 4 - events.length, code: 'EFBIG' });
    expect(events.length).toBeGreaterThan(5);
    expect(leftOutCount).toBeLessThanOrEqual(1);
  });

  it('R-7.1 after a line that arrived in part, and room again, the next one is whole and the loss is told', () => {
    const path = fresh();
    const { stdout, status, stderr } = spawnSync(
      'sh',
      ['-c', 'trap "" XFSZ; ulimit -S -f 8; exec "$0" "$@"', process.execPath, writer, path, '100', 'again'],
      { encoding: 'utf8' },
    );
    expect(status, stderr).toBe(0);
    const report = JSON.parse(stdout) as { written: number; dropped: number; code: string };
    return expect(
      readNdjson(path).then(({ events, leftOut, dropped }) => ({
        written: events.length,
        dropped,
        last: events.at(-1)?.seq,
        torn: leftOut.map(({ why }) => why),
      })),
    ).resolves.toEqual({ written: report.written, dropped: report.dropped, last: 800, torn: ['not_json'] });
  });

  it('R-7.1 what does not fit while the disk is busy is dropped, and the file says what was lost', async () => {
    const path = fresh();
    const file = await ndjsonSink(path, { maxWaitingBytes: 200 });
    for (let seq = 0; seq < 10; seq++) file.next(event(seq));
    await file.flush();
    file.next(event(10));
    const { written, dropped } = await file.close();
    expect(written + dropped).toBe(11);
    const read = await readNdjson(path);
    expect(read.events.map(({ seq }) => seq)).toEqual([0, 1, 10]);
    expect(read.dropped).toBe(8);
    file.next(event(11));
    expect(file.report.dropped).toBe(9);
  });

  it('R-7.1 what is killed reads back but for the last line', async () => {
    const path = fresh();
    const child = spawn(process.execPath, [writer, path], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    for (let tries = 0; size() < 100_000 && tries < 2_000; tries++)
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    child.kill('SIGKILL');
    await exited;
    const { events, leftOut } = await readNdjson(path);
    expect(events.length).toBeGreaterThan(100);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place));
    expect(leftOut.filter(({ why }) => why !== 'torn')).toEqual([]);
  });

  it('R-7.1 an event that is no JSON is dropped and counted', async () => {
    const path = fresh();
    const file = await ndjsonSink(path);
    file.next({ ...event(1), toolName: 1n } as never);
    file.next(event(2));
    expect(await file.close()).toEqual({ written: 1, dropped: 1 });
    expect((await readNdjson(path)).dropped).toBe(1);
  });

  it('R-2.9 refuses what it cannot open, and options out of range', async () => {
    await expect(ndjsonSink(join(folder, 'no', 'such', 'folder'))).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(ndjsonSink(fresh(), { maxWaitingBytes: 0 })).rejects.toThrow('maxWaitingBytes must be an integer');
    await expect(ndjsonSink(fresh(), { retryMs: -1 })).rejects.toThrow('retryMs must be a duration');
    await expect(readNdjson(join(folder, 'nothing'))).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(readNdjson(fresh(), { maxLineBytes: 0 })).rejects.toThrow('maxLineBytes must be an integer');
  });
});
