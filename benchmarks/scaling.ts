import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool } from '../src/index.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { median, type Question } from './measure.ts';

const ROUNDS = 3;
/** Work of one run, at least: small sizes are run more than once. */
const UNITS = 5_000;
const WARM_UP_UNITS = 20_000;
const FILE = join(import.meta.dirname, 'scaling.svg');

interface Line {
  readonly name: string;
  readonly sizes: readonly number[];
  /** Makes what is measured at one size; each run gives how many units it did. */
  readonly prepare: (size: number) => Promise<() => Promise<number>>;
}

const echo = tool({ name: 'echo', execute: async (input: unknown) => input });
const succeed = (status: string): void => {
  if (status !== 'success') throw new Error(`a call ended with ${status}`);
};

const lines: readonly Line[] = [
  {
    name: 'calls at once',
    sizes: [1, 10, 100, 1_000, 10_000, 100_000],
    prepare: async (size) => {
      const spillway = createSpillway({ tools: [echo] });
      return async () => {
        for (const { status } of await Promise.all(
          Array.from({ length: size }, (_, input) => spillway.execute({ toolName: 'echo', input })),
        ))
          succeed(status);
        return size;
      };
    },
  },
  {
    name: 'tools registered',
    sizes: [1, 10, 100, 1_000, 10_000],
    prepare: async (size) => {
      const spillway = createSpillway({
        tools: Array.from({ length: size }, (_, place) => ({ ...echo, name: `echo${place}` })),
      });
      let call = 0;
      return async () => {
        for (let n = 0; n < UNITS; n++)
          succeed((await spillway.execute({ toolName: `echo${call++ % size}`, input: n })).status);
        return UNITS;
      };
    },
  },
  {
    name: 'keys in the memory store',
    sizes: [100, 1_000, 10_000, 20_000],
    prepare: async (size) => {
      const spillway = createSpillway({ tools: [echo], store: memoryStore() });
      let key = 0;
      const claim = async (): Promise<void> =>
        succeed(
          (await spillway.execute({ toolName: 'echo', input: 1, idempotencyKey: `key-${key++}`, session: 'bench' }))
            .status,
        );
      for (let n = 0; n < size; n++) await claim();
      return async () => {
        for (let n = 0; n < UNITS / 10; n++) await claim();
        return UNITS / 10;
      };
    },
  },
  {
    name: 'nodes of a plan',
    sizes: [1, 10, 100, 1_000, 10_000, 100_000],
    prepare: async (size) => {
      const spillway = createSpillway({ tools: [echo] });
      const planned = plan.from(
        Array.from({ length: size }, (_, place) => ({
          id: `n${place}`,
          tool: 'echo',
          input: place,
          needs: place < 2 ? [] : [`n${place - 1}`, `n${place >> 1}`].slice(0, place === 2 ? 1 : 2),
        })),
      );
      return async () => {
        const last = await lastValueFrom(spillway.turn(planned));
        if (last.source !== 'turn' || last.type !== 'settled' || last.result.executedTools !== size)
          throw new Error('a turn did not run its tools');
        return size;
      };
    },
  },
];

const COLOURS = ['#1b6ca8', '#c8553d', '#2a8a57', '#8a4fa0'];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 380, 60, 50, 30];

/** A plot with sizes on a logarithmic axis: cost that grows with size would rise from left to right. */
const plot = (
  drawn: ReadonlyArray<{ readonly name: string; readonly points: ReadonlyArray<readonly [size: number, us: number]> }>,
): string => {
  const topUs = Math.ceil(Math.max(...drawn.flatMap(({ points }) => points.map(([, us]) => us))) / 10) * 10;
  const x = (size: number): number => LEFT + (Math.log10(size) / 5) * (WIDTH - LEFT - 30);
  const y = (us: number): number => HEIGHT - BOTTOM - (us / topUs) * (HEIGHT - BOTTOM - TOP);
  const label = (at: readonly [number, number], text: string, more = ''): string =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" ${more}>${text}</text>`;
  const grid = [0, 1, 2, 3, 4].map((part) => {
    const us = (topUs / 4) * part;
    return `<line x1="${LEFT}" x2="${WIDTH - 30}" y1="${y(us)}" y2="${y(us)}" stroke="#ddd"/>${label([LEFT - 8, y(us) + 4], `${us}`, 'text-anchor="end"')}`;
  });
  const ticks = [0, 1, 2, 3, 4, 5].map((power) =>
    label([x(10 ** power), HEIGHT - BOTTOM + 18], (10 ** power).toLocaleString('en'), 'text-anchor="middle"'),
  );
  const curves = drawn.map(({ name, points }, place) => {
    const colour = COLOURS[place] ?? '#000';
    const dots = points
      .map(([size, us]) => `<circle cx="${x(size).toFixed(1)}" cy="${y(us).toFixed(1)}" r="3" fill="${colour}"/>`)
      .join('');
    const path = points.map(([size, us]) => `${x(size).toFixed(1)},${y(us).toFixed(1)}`).join(' ');
    return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${label([LEFT + 12 + place * 165, TOP - 10], name, `fill="${colour}"`)}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...grid,
    ...ticks,
    ...curves,
    label([WIDTH / 2, HEIGHT - 10], 'how many there are', 'text-anchor="middle"'),
    label(
      [14, HEIGHT / 2],
      'microseconds a call or node',
      `text-anchor="middle" transform="rotate(-90 14 ${HEIGHT / 2})"`,
    ),
    '</svg>\n',
  ].join('\n');
};

/** What one call or node costs as calls, tools, keys and plans grow; draws `benchmarks/scaling.svg`. */
export async function benchmarkScaling(): Promise<Question> {
  const drawn: Array<{ name: string; points: Array<readonly [number, number]> }> = [];
  const ratios: Record<string, number> = {};
  for (const { name, sizes, prepare } of lines) {
    const points: Array<readonly [number, number]> = [];
    // Until the compiler has seen the code: the smallest size comes first.
    const warmUp = await prepare(sizes[2] ?? 1);
    for (let units = 0; units < WARM_UP_UNITS; units += await warmUp());
    for (const size of sizes) {
      const run = await prepare(size);
      const times: number[] = [];
      for (let round = -1; round < ROUNDS; round++) {
        const startedAtMs = performance.now();
        let units = 0;
        while (units < UNITS / 10) units += await run();
        if (round >= 0) times.push(((performance.now() - startedAtMs) * 1000) / units);
      }
      points.push([size, median(times)]);
    }
    drawn.push({ name, points });
    const [first, last] = [points.find(([size]) => size >= 100), points.at(-1)];
    if (first !== undefined && last !== undefined)
      ratios[`${name}: one of ${last[0].toLocaleString('en')} / one of ${first[0].toLocaleString('en')}`] =
        last[1] / first[1];
  }
  writeFileSync(FILE, plot(drawn));
  const figures = drawn.flatMap(({ name, points }) =>
    points.map(([size, us]) => ({ name: `${name}: ${size.toLocaleString('en')}`, usPerUnit: us, runs: ROUNDS })),
  );
  return { question: 'What does a call or a node cost as things grow?', figures, ratios };
}
