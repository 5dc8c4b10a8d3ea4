import { copyFileSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type Spillway, type Tool, type TraceEvent } from 'spillway';
import { addEvent, emptyTrace } from 'spillway/inspect';
import { replayTrace } from 'spillway/simulate';
import { ndjsonSink, readNdjson, type NdjsonSink, type NdjsonSinkOptions } from 'spillway/sinks/ndjson';
import { virtualRuntime } from 'spillway/testing';
import { event, fresh, numbers, rotated } from './ndjson-kit.ts';

const toolOf = (name: string, timeoutMs: number): Tool<unknown, unknown> =>
  tool({ name, policy: { effects: 'read', timeoutMs, retry: { maxAttempts: 1 } }, execute: () => 'found' });
const listed = toolOf('listed', 1_234);
const brought = toolOf('brought', 2_345);

/** A layer whose events are in a file, and in a list. */
const recording = async (
  path: string,
  options: NdjsonSinkOptions = {},
): Promise<{ layer: Spillway; file: NdjsonSink; heard: TraceEvent[] }> => {
  const layer = createSpillway({ tools: [listed] });
  const file = await ndjsonSink(path, options);
  const heard: TraceEvent[] = [];
  layer.trace$.subscribe((told) => {
    file.next(told);
    heard.push(told);
  });
  return { layer, file, heard };
};
const calls = async (layer: Spillway, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) await layer.execute({ toolName: 'listed', input: n });
};
/** A tool that nobody has registered. */
const bring = async (layer: Spillway): Promise<void> => {
  await lastValueFrom(layer.turn(plan().call('a', brought, 0)));
};
const started = (events: readonly TraceEvent[]): Array<Extract<TraceEvent, { type: 'layer_started' }>> =>
  events.flatMap((told) => (told.type === 'layer_started' ? [told] : []));
/** The limit of each tool that a part tells of by itself. */
const limitsIn = async (path: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    started((await readNdjson(path)).events).flatMap(({ tools }) =>
      tools.map(({ name, policy }) => [name, policy.timeoutMs]),
    ),
  );
const joined = (paths: readonly string[], to: string): string => {
  writeFileSync(to, Buffer.concat(paths.map((path) => readFileSync(path))));
  return to;
};

describe('R-7.1 each part of a file says which policies were in force', () => {
  it('R-7.1 rotated by size: the last part alone, and all of them together as one', async () => {
    const { folder, path } = fresh();
    const { layer, file, heard } = await recording(path, { maxFileBytes: 8_192 });
    await calls(layer, 60);
    await bring(layer);
    await calls(layer, 60);
    await layer.close();
    expect(await file.close()).toEqual({ written: heard.length, dropped: 0 });
    const parts = [...rotated(folder), path];
    expect(parts.length).toBeGreaterThan(6);
    for (const part of parts) {
      expect(statSync(part).size).toBeLessThanOrEqual(8_192);
      expect(await limitsIn(part)).toMatchObject({ listed: 1_234 });
    }
    expect(await limitsIn(path)).toEqual({ listed: 1_234, brought: 2_345 });
    const last = await readNdjson(path);
    expect(last).toMatchObject({ leftOutCount: 0, changed: false, lastSeq: heard.at(-1)?.seq });
    // No number is missing at its head, and no time goes back.
    const [again, next] = last.events;
    expect(again).toMatchObject({ type: 'layer_started', again: true, seq: (next?.seq ?? 0) - 1 });
    expect(again?.atMs).toBeLessThanOrEqual(next?.atMs ?? 0);
    expect(() => replayTrace(last)).toThrow(expect.objectContaining({ code: 'late' }));
    const whole = await readNdjson(joined(parts, `${path}.all`));
    expect(whole.events).toEqual(JSON.parse(JSON.stringify(heard)));
    expect(whole).toMatchObject({ leftOutCount: 0, changed: false, dropped: 0 });
    expect(replayTrace(whole, { set: ['listed.timeoutMs=9'] }).candidates).toHaveLength(1);
    const missing = await readNdjson(joined(parts.toSpliced(2, 1), `${path}.less`));
    expect(() => replayTrace(missing)).toThrow(expect.objectContaining({ code: 'incomplete' }));
    expect(whole.events.reduce(addEvent, emptyTrace()).tools.size).toBe(1);
    // As lists, too.
    const lists = (await Promise.all(parts.map((part) => readNdjson(part)))).flatMap(({ events }) => events);
    expect(lists.length).toBeGreaterThan(heard.length);
    expect(replayTrace(lists, { set: ['listed.timeoutMs=9'] }).candidates).toHaveLength(1);
  });

  it('R-7.1 rotated by age, while it waits for nothing', async () => {
    const { folder, path } = fresh();
    const runtime = virtualRuntime();
    const { layer, file } = await recording(path, { runtime, maxFileAgeMs: 1_000 });
    await calls(layer, 1);
    await file.flush();
    await runtime.advance(1_000);
    await calls(layer, 1);
    await layer.close();
    await file.close();
    expect(rotated(folder)).toHaveLength(1);
    expect(await limitsIn(path)).toEqual({ listed: 1_234 });
    expect(await readNdjson(joined([...rotated(folder), path], `${path}.all`))).toMatchObject({ changed: false });
  });

  it.each<[string, (path: string) => void]>([
    ['renamed and reopened', (path) => renameSync(path, `${path}.1`)],
    [
      'copied and cut off',
      (path) => {
        copyFileSync(path, `${path}.1`);
        truncateSync(path);
      },
    ],
  ])('R-7.1 %s', async (_, rotate) => {
    const { path } = fresh();
    const { layer, file, heard } = await recording(path);
    await calls(layer, 2);
    await bring(layer);
    await file.flush();
    rotate(path);
    await file.reopen();
    await calls(layer, 2);
    await layer.close();
    await file.close();
    expect(await limitsIn(path)).toEqual({ listed: 1_234, brought: 2_345 });
    expect(await limitsIn(`${path}.1`)).toEqual({ listed: 1_234 });
    const whole = await readNdjson(joined([`${path}.1`, path], `${path}.all`));
    expect(whole.events).toEqual(JSON.parse(JSON.stringify(heard)));
    expect(whole).toMatchObject({ leftOutCount: 0, changed: false });
    expect(replayTrace(whole, { set: ['listed.timeoutMs=9'] }).candidates).toHaveLength(1);
  });

  it.each([1, 2, 7])(
    'R-7.1 %i events lost between a copy and its cut are missed where the parts meet',
    async (lost) => {
      const { path } = fresh();
      const { layer, file } = await recording(path);
      await calls(layer, 5);
      await file.flush();
      const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
      writeFileSync(`${path}.1`, `${lines.slice(0, -lost).join('\n')}\n`);
      truncateSync(path);
      await calls(layer, 1);
      await layer.close();
      await file.close();
      const whole = await readNdjson(joined([`${path}.1`, path], `${path}.all`));
      expect(() => replayTrace(whole)).toThrow(
        expect.objectContaining({
          code: 'incomplete',
          message: expect.stringContaining(`: ${lost} are missing`) as string,
        }),
      );
    },
  );

  it('R-7.1 a tool told within the burst that fills a file is told again in the next one, not before it', async () => {
    const start: TraceEvent = {
      source: 'layer',
      type: 'layer_started',
      seq: 0,
      atMs: 0,
      version: '1',
      tools: [],
    };
    const told = (seq: number, name: string): TraceEvent =>
      ({ ...event(seq, 'x'.repeat(900)), source: 'call', type: 'call_started', tool: { name } }) as never;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 5, maxLength: 30 }), async (tells) => {
        const { folder, path } = fresh();
        const file = await ndjsonSink(path, { maxFileBytes: 4_096 });
        file.next(start);
        for (const [at, tell] of tells.entries())
          file.next(tell ? told(at + 1, `t${at}`) : event(at + 1, 'x'.repeat(900)));
        await file.close();
        const known = new Set<string>();
        for (const part of [...rotated(folder), path]) {
          const { events } = await readNdjson(part);
          const [head] = started(events);
          expect(head?.tools.map(({ name }) => name)).toEqual([...known]);
          for (const one of events) if (one.type === 'call_started' && one.tool !== undefined) known.add(one.tool.name);
        }
        const all = await readNdjson(joined([...rotated(folder), path], `${path}.all`));
        expect(all.events.map(({ seq }) => seq)).toEqual(numbers(0, tells.length));
        expect(all.changed).toBe(false);
      }),
      { numRuns: 60 },
    );
  });

  it('R-7.1 not where they would take more than a quarter of the file: it is for events', async () => {
    const { folder, path } = fresh();
    const layer = createSpillway({ tools: numbers(1, 20).map((n) => toolOf(`tool-${n}`, n)) });
    const file = await ndjsonSink(path, { maxFileBytes: 16_384 });
    layer.trace$.subscribe(file);
    for (let n = 0; n < 100; n++) await layer.execute({ toolName: 'tool-1', input: n });
    await layer.close();
    await file.close();
    expect(rotated(folder).length).toBeGreaterThan(2);
    expect(started((await readNdjson(path)).events)).toEqual([]);
    expect(await readNdjson(joined([...rotated(folder), path], `${path}.all`))).toMatchObject({ changed: false });
  });

  it('R-7.1 what was told by an event that found no room is told in the next part all the same', async () => {
    const { path } = fresh();
    const { layer, file } = await recording(path, { maxWaitingBytes: 3_500 });
    await file.flush();
    for (let seq = 1; seq < 40; seq++) file.next(event(seq, 'x'.repeat(60)));
    await bring(layer);
    await file.flush();
    expect(await limitsIn(path)).toEqual({ listed: 1_234 });
    expect((await readNdjson(path)).events.filter((told) => 'tool' in told)).toEqual([]);
    renameSync(path, `${path}.1`);
    await file.reopen();
    file.next(event(99));
    await file.close();
    expect(await limitsIn(path)).toEqual({ listed: 1_234, brought: 2_345 });
    await layer.close();
  });

  it('R-7.1 a layer that begins anew in the same sink replaces what the one before told', async () => {
    const { path } = fresh();
    const { layer, file } = await recording(path);
    await bring(layer);
    await layer.close();
    const second = createSpillway({ tools: [toolOf('other', 5)] });
    second.trace$.subscribe(file);
    await file.flush();
    renameSync(path, `${path}.1`);
    await file.reopen();
    await second.execute({ toolName: 'other', input: 0 });
    await second.close();
    await file.close();
    expect(await limitsIn(path)).toEqual({ other: 5 });
  });
});
