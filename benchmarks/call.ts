import { z } from 'zod';
import { createSpillway, tool } from '../src/index.ts';
import { measure, type Question } from './measure.ts';

const CALLS = 20_000;

/** What the layer costs on the path of success, against the bare tool. */
export async function benchmarkCall(): Promise<Question> {
  const execute = async ({ n }: { n: number }): Promise<number> => n;
  const add = tool({ name: 'add', input: z.object({ n: z.number() }), execute });
  const spillway = createSpillway({ tools: [add] });
  const watched = createSpillway({ tools: [add] });
  watched.trace$.subscribe();
  const sum = async (call: (n: number) => Promise<unknown>): Promise<void> => {
    let total = 0;
    for (let n = 0; n < CALLS; n++) total += Number(await call(n));
    if (total !== (CALLS * (CALLS - 1)) / 2) throw new Error('the tool was not run');
  };
  const bare = await measure('bare await', CALLS, 7, () => sum((n) => execute({ n })));
  const guarded = await measure('execute, nobody on trace$', CALLS, 7, () =>
    sum(async (n) => (await spillway.execute({ toolName: 'add', input: { n } })).output?.content),
  );
  const traced = await measure('execute, one subscriber on trace$', CALLS, 7, () =>
    sum(async (n) => (await watched.execute({ toolName: 'add', input: { n } })).output?.content),
  );
  return {
    question: 'What does a validated call with retry, breaker and timeout armed cost?',
    figures: [bare, guarded, traced],
    ratios: { 'traced / untraced': traced.usPerUnit / guarded.usPerUnit },
  };
}
