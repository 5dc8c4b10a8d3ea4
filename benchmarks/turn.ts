import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, type PlanNode } from '../src/index.ts';
import { measure, type Figure, type Question } from './measure.ts';

/** What a node costs as plans grow: the shapes that are quadratic when joins are made of nested subscriptions. */
const SMALL = 1_000;
const LARGE = 100_000;

const echo = tool({ name: 'echo', execute: async (input: unknown) => input });

const node = (place: number, needs: readonly string[]): PlanNode => ({ id: `n${place}`, tool: 'echo', input: place, needs });

const shapes: Readonly<Record<string, (size: number) => PlanNode[]>> = {
  chain: (size) => Array.from({ length: size }, (_, place) => node(place, place === 0 ? [] : [`n${place - 1}`])),
  'fan out': (size) => Array.from({ length: size }, (_, place) => node(place, place === 0 ? [] : ['n0'])),
  'fan in': (size) => Array.from({ length: size }, (_, place) => node(place, place < size - 1 ? [] : Array.from({ length: size - 1 }, (__, need) => `n${need}`))),
};

export async function benchmarkTurn(): Promise<Question> {
  const spillway = createSpillway({ tools: [echo] });
  const figures: Figure[] = [];
  const ratios: Record<string, number> = {};
  for (const [shape, nodes] of Object.entries(shapes)) {
    const cost = async (size: number, turns: number, runs: number): Promise<Figure> => {
      const compiled = plan.from(nodes(size));
      const figure = await measure(`${shape}, ${size} nodes`, size * turns, runs, async () => {
        for (let turn = 0; turn < turns; turn++) {
          const last = await lastValueFrom(spillway.turn(compiled));
          if (last.source !== 'turn' || last.type !== 'settled' || last.result.executedTools !== size) throw new Error(`${shape} did not run ${size} tools`);
        }
      });
      figures.push(figure);
      return figure;
    };
    const small = await cost(SMALL, 20, 5);
    const large = await cost(LARGE, 1, 3);
    ratios[`${shape}: a node of ${LARGE} / a node of ${SMALL}`] = large.usPerUnit / small.usPerUnit;
  }
  return { question: 'What does a node of a turn cost as plans grow?', figures, ratios };
}
