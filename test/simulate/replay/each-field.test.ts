import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NEVER, of, throwError, type Observable } from 'rxjs';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { ndjsonSink, readNdjson } from 'spillway/sinks/ndjson';
import { memoryStore } from 'spillway/stores/memory';
import { afterAll, describe, expect, it } from 'vitest';
import type { AnyTool } from '../../../src/contract/tool.ts';
import type { TraceInFile } from '../../../src/simulate/index.ts';
import { ReplayRefusal } from '../../../src/simulate/replay/refusal.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';

const folder = mkdtempSync(join(tmpdir(), 'each-field-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A little of everything: turns, an alternative, a timeout, a breaker that opens, keys, a default, a deadline. */
const recorded = (): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  let asked = 0;
  const once = { maxAttempts: 1 };
  const failsAtTimes = (): Observable<unknown> =>
    asked++ % 2 === 0 ? throwError(() => Object.assign(new Error('down'), { status: 503 })) : of('well');
  const main = { effects: 'read', alternatives: ['spare'], breaker: { failureThreshold: 2 }, retry: once } as const;
  const tools: AnyTool[] = [
    { name: 'main', policy: { ...main, timeoutMs: 200 }, execute: () => NEVER },
    { name: 'spare', policy: { effects: 'read', retry: { maxAttempts: 2 } }, execute: failsAtTimes },
    {
      name: 'pay',
      policy: { effects: 'mutating', enforcesKey: true, retry: { maxAttempts: 2 } },
      execute: failsAtTimes,
    },
  ];
  const store = memoryStore({ runtime: time, sweepMs: Infinity });
  const layer = createSpillway({ tools, runtime: time, store });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  const nodes = [
    { id: 'a', tool: 'main' },
    { id: 'b', tool: 'spare', needs: ['a'], optional: true, default: 'none' },
  ];
  const turn = plan.from(nodes, { timeoutMs: 350 });
  for (const atMs of [0, 1_000]) time.at(1_000_000 + atMs, 0, () => void layer.turn(turn).subscribe());
  for (const atMs of [2_000, 3_000])
    time.at(1_000_000 + atMs, 0, () => {
      layer.call({ toolName: 'pay', input: {}, idempotencyKey: 'k' }).subscribe();
    });
  time.run(1_100_000);
  return events;
};

/** What is said of a trace: its numbers, or `refused`. What else is thrown is a defect. */
const told = (trace: readonly TraceEvent[] | TraceInFile): string => {
  try {
    const { candidates } = replayTrace(trace, { set: ['*.retry.maxAttempts=3', 'main.timeoutMs=150'] });
    return JSON.stringify(candidates.map(({ events: _, ...found }) => found));
  } catch (error) {
    if (error instanceof ReplayRefusal && error.message !== '') return 'refused';
    throw error;
  }
};

type Path = ReadonlyArray<string | number>;
const pathsIn = (value: unknown, path: Path = []): Path[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, part]) => [[...path, key], ...pathsIn(part, [...path, key])])
    : [];

/** The value with a part of it replaced, or taken out by `undefined`. */
const edited = (value: unknown, [key, ...rest]: Path, by: unknown): unknown => {
  if (key === undefined) return by;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<string, unknown>;
  copy[key] = edited(copy[key], rest, by);
  return JSON.parse(JSON.stringify(copy));
};

const VALUES = [undefined, null, 'x', 0, -1, 2, 1e9, true, [], {}];

describe('RPL-6 a short trace', { timeout: 900_000 }, () => {
  const events = JSON.parse(JSON.stringify(recorded())) as TraceEvent[];
  const file = join(folder, 'trace.ndjson');
  const written = async (): Promise<Buffer> => {
    rmSync(file, { force: true });
    const sink = await ndjsonSink(file);
    for (const event of events) sink.next(event);
    await sink.close();
    return readFileSync(file);
  };

  it('has a little of everything, and is replayed', () => {
    expect(told(events)).toContain('"verdict"');
    const types = new Set(events.map(({ type }) => type));
    for (const type of [
      'alternative_used',
      'breaker_changed',
      'dedupe',
      'decision',
      'node_settled',
      'settled',
    ] as const)
      expect([...types]).toContain(type);
  });

  it('each field of each event, in the place of which there is another or none: the file is refused', async () => {
    const wrong: string[] = [];
    const lines = (await written()).toString().split('\n');
    for (const [index, event] of events.entries())
      for (const path of pathsIn(event))
        for (const value of VALUES) {
          const line = JSON.stringify(edited(event, path, value));
          // Below the header.
          if (line === lines[index + 1]) continue;
          writeFileSync(file, lines.with(index + 1, line).join('\n'));
          const name = `${event.type} ${path.join('.')} ${JSON.stringify(value)}`;
          try {
            if (told(await readNdjson(file)) !== 'refused') wrong.push(name);
          } catch (error) {
            wrong.push(`${name}: ${String(error)}`);
          }
        }
    expect(wrong).toEqual([]);
  });

  it('cut off after each of its bytes: refused, but for the last end of a line', async () => {
    const bytes = await written();
    const numbers: number[] = [];
    for (let length = 0; length < bytes.length; length++) {
      writeFileSync(file, bytes.subarray(0, length));
      if (told(await readNdjson(file)) !== 'refused') numbers.push(length);
    }
    expect(numbers).toEqual([bytes.length - 1]);
  });
});
