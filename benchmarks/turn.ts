import { getHeapSpaceStatistics } from 'node:v8';
import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, type Plan, type PlanNode, type TurnEvent } from '../src/index.ts';
import { askedApart, collect, median, timed, type Figure, type Question } from './measure.ts';

/** What a node costs as plans grow: the shapes that are quadratic when joins are made of nested subscriptions. */
const SMALL = 1_000;
const LARGE = 10_000;
/** Both sizes are measured in turn, so that what else the machine does bears on both. */
const ROUNDS = 7;
const SMALL_TURNS = 50;
/** Until the compiler has seen everything: with a colder small plan the ratio would flatter. */
const WARM_UP_TURNS = 200;
/** Nodes in a row of the mesh; each needs two of the row before. */
const MESH_WIDTH = 10;

const echo = tool({ name: 'echo', execute: async (input: unknown) => input });

const node = (place: number, needs: readonly number[]): PlanNode => ({
  id: `n${place}`,
  tool: 'echo',
  input: place,
  needs: needs.map((need) => `n${need}`),
});

const meshNeeds = (place: number): number[] => {
  if (place < MESH_WIDTH) return [];
  const column = place % MESH_WIDTH;
  const rowBefore = place - column - MESH_WIDTH;
  return [rowBefore + column, rowBefore + ((column + 1) % MESH_WIDTH)];
};

const range = (size: number): number[] => Array.from({ length: size }, (_, place) => place);

const shapes: Readonly<Record<string, (size: number) => PlanNode[]>> = {
  chain: (size) => range(size).map((place) => node(place, place === 0 ? [] : [place - 1])),
  'fan out': (size) => range(size).map((place) => node(place, place === 0 ? [] : [0])),
  'fan in': (size) => range(size).map((place) => node(place, place < size - 1 ? [] : range(size - 1))),
  'diamond mesh': (size) => range(size).map((place) => node(place, meshNeeds(place))),
};

const oldSpaceBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? Number.NaN;

/**
 * In a process of its own: V8 puts what it has seen live long into the old space at once, and what other benchmarks
 * have done counts. Behind them more of each node seemed to be promoted, though nothing kept it alive.
 */
export const benchmarkTurn = (): Promise<Question> => askedApart(import.meta.filename);

async function askTurn(): Promise<Question> {
  const spillway = createSpillway({ tools: [echo] });
  const run = async (planned: Plan): Promise<TurnEvent> => {
    const last = await lastValueFrom(spillway.turn(planned));
    const size = planned.nodes.length;
    if (last.source !== 'turn' || last.type !== 'settled' || last.result.executedTools !== size)
      throw new Error(`a plan did not run its ${size} tools`);
    return last;
  };
  const repeat = async (planned: Plan, turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await run(planned);
  };
  const figures: Figure[] = [];
  const ratios: Record<string, number> = {};
  const kilobytes: Record<string, number> = {};
  for (const [shape, nodes] of Object.entries(shapes)) {
    const [small, large] = [plan.from(nodes(SMALL)), plan.from(nodes(LARGE))];
    await repeat(small, WARM_UP_TURNS);
    await repeat(large, 2);
    await repeat(small, WARM_UP_TURNS);
    const [smallUs, largeUs, promoted, kept]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let round = 0; round < ROUNDS; round++) {
      smallUs.push(await timed(SMALL * SMALL_TURNS, () => repeat(small, SMALL_TURNS)));
      collect();
      const [heapBefore, oldBefore] = [process.memoryUsage().heapUsed, oldSpaceBytes()];
      let result: TurnEvent | undefined;
      largeUs.push(await timed(LARGE, async () => void (result = await run(large))));
      promoted.push((oldSpaceBytes() - oldBefore) / 1024 / LARGE);
      collect();
      kept.push((process.memoryUsage().heapUsed - heapBefore) / 1024 / LARGE);
      if (result?.type !== 'settled') throw new Error('the result was not kept');
    }
    figures.push(
      { name: `${shape}, ${SMALL} nodes`, usPerUnit: median(smallUs), runs: ROUNDS },
      { name: `${shape}, ${LARGE} nodes`, usPerUnit: median(largeUs), runs: ROUNDS },
    );
    ratios[`${shape}: a node of ${LARGE} / a node of ${SMALL}`] = median(largeUs) / median(smallUs);
    kilobytes[`${shape}: a node's result, ${LARGE} nodes`] = median(kept);
    kilobytes[`${shape}: promoted a node while it ran, its result included`] = median(promoted);
  }
  return { question: 'What does a node of a turn cost as plans grow?', figures, ratios, kilobytes };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await askTurn()));
