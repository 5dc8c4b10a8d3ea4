import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TraceEvent } from 'spillway';
import { readNdjson } from 'spillway/sinks/ndjson';

const root = mkdtempSync(join(tmpdir(), 'spillway-rotation-'));
// Test files share this module, and so the folder: it is there as long as their process.
process.once('exit', () => rmSync(root, { recursive: true, force: true }));
let folders = 0;
/** A folder of its own, and the path of a trace in it. */
export const fresh = (): { readonly folder: string; readonly path: string } => {
  const folder = join(root, String(folders++));
  mkdirSync(folder);
  return { folder, path: join(folder, 'trace.ndjson') };
};

/** One event, told apart from others by its number. */
export const event = (seq: number, toolName = 't'): TraceEvent => ({
  source: 'layer',
  type: 'breaker_evicted',
  seq,
  atMs: seq,
  toolName,
  scope: '',
});
export const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
export const firstLine = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8').split('\n')[0] ?? '');

const ROTATED = /^trace\.\d{8}T\d{9}Z(?:-\d+)?\.ndjson$/;
const order = (name: string): string =>
  name.replace(/Z-(\d+)/, (_, number: string) => `Z-${number.padStart(9, '0')}`).replace(/Z\./, 'Z-000000000.');
/** What was rotated away, oldest first. */
export const rotated = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => ROTATED.test(name))
    .toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
    .map((name) => join(folder, name));
/** The numbers of the events in some files, whose lines must all be whole. */
export const seqsOf = async (paths: readonly string[]): Promise<number[]> => {
  const traces = await Promise.all(paths.map((path) => readNdjson(path)));
  expect(
    traces.map(({ leftOutCount }) => leftOutCount),
    'lines that are torn or are none',
  ).toEqual(paths.map(() => 0));
  // A part begins with what was told before.
  return traces.flatMap(({ events }) => events.filter((told) => !('again' in told)).map(({ seq }) => seq));
};
