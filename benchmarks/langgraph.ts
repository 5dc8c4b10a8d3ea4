import { lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool } from '../src/index.ts';
import { sideInstall } from '../test/side-install.ts';
import { sideBySide, type Question, type Target, type Ways } from './measure.ts';

const NODES = 1_000;
const ROUNDS = 5;
/** A turn of LangGraph.js takes 0.3 to 0.5 s. */
const ROUND_MS = 1_000;

/** As much of LangGraph's types as is used here: it is not in the main install. */
interface Graph {
  addNode(name: string, run: (state: { readonly ran: number }) => Promise<{ readonly ran: number }>): unknown;
  addEdge(from: string, to: string): unknown;
  compile(): {
    invoke(
      input: { readonly ran: number },
      config: { readonly recursionLimit: number },
    ): Promise<{ readonly ran: number }>;
  };
}
interface LangGraph {
  readonly StateGraph: new (channels: object) => Graph;
  readonly Annotation: { Root(fields: object): object } & ((field: object) => object);
  readonly START: string;
  readonly END: string;
}

const shapes: Readonly<Record<string, (place: number) => number[]>> = {
  chain: (place) => (place === 0 ? [] : [place - 1]),
  'fan out': (place) => (place === 0 ? [] : [0]),
};

/** The same graph of nodes that do nothing, as a turn and in LangGraph.js. */
export async function benchmarkLangGraph(): Promise<Question> {
  const load = await sideInstall(
    'langchain',
    [
      'langchain@1.4.0',
      '@langchain/core@1.2.13',
      '@langchain/langgraph@1.3.1',
      '@langchain/langgraph-checkpoint@1.1.5',
    ],
    ['--legacy-peer-deps'],
  );
  const { StateGraph, Annotation, START, END } = (await load('@langchain/langgraph')) as LangGraph;
  const spillway = createSpillway({ tools: [tool({ name: 'echo', execute: async (input: unknown) => input })] });
  const ways: Record<string, () => Promise<void>> = {};
  for (const [shape, needs] of Object.entries(shapes)) {
    const planned = plan.from(
      Array.from({ length: NODES }, (_, place) => ({
        id: `n${place}`,
        tool: 'echo',
        input: place,
        needs: needs(place).map((need) => `n${need}`),
      })),
    );
    ways[`spillway, ${shape}`] = async () => {
      const last = await lastValueFrom(spillway.turn(planned));
      if (last.type !== 'settled' || last.source !== 'turn' || last.result.executedTools !== NODES)
        throw new Error('the turn did not run its tools');
    };
    const graph = new StateGraph(
      Annotation.Root({ ran: Annotation({ reducer: (a: number, b: number) => a + b, default: () => 0 }) }),
    );
    for (let place = 0; place < NODES; place++) graph.addNode(`n${place}`, async () => ({ ran: 1 }));
    for (let place = 0; place < NODES; place++) for (const need of needs(place)) graph.addEdge(`n${need}`, `n${place}`);
    graph.addEdge(START, 'n0');
    graph.addEdge(`n${NODES - 1}`, END);
    const compiled = graph.compile();
    ways[`LangGraph.js, ${shape}`] = async () => {
      const { ran } = await compiled.invoke({ ran: 0 }, { recursionLimit: NODES + 10 });
      if (ran !== NODES) throw new Error(`LangGraph ran ${ran} nodes`);
    };
  }
  const { figures, ratio } = await sideBySide(ways satisfies Ways, NODES, ROUNDS, ROUND_MS);
  await spillway.close();
  const targets = Object.keys(shapes).map((shape): Target => ({
    name: `LangGraph.js / a turn, ${shape} of ${NODES} nodes`,
    value: ratio(`LangGraph.js, ${shape}`, `spillway, ${shape}`),
    limit: 30,
    atLeast: true,
    unit: 'x',
  }));
  return { question: `What does a node of a graph of ${NODES} cost?`, figures, ratios: {}, targets };
}
