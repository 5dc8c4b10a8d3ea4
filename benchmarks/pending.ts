import { z } from 'zod';
import { createSpillway, tool } from '../src/index.ts';
import { collect, median, timed, type Question } from './measure.ts';

const CALLS = 100_000;
const ROUNDS = 3;

/** What calls hold while they wait for their tools. */
export async function benchmarkPending(): Promise<Question> {
  const kilobytes: number[] = [];
  const micros: number[] = [];
  // The first round warms up: what it compiles is no call's.
  for (let round = 0; round <= ROUNDS; round++) {
    const never = tool({
      name: 'never',
      input: z.object({ n: z.number() }),
      execute: () => new Promise<never>(() => undefined),
    });
    const spillway = createSpillway({ tools: [never] });
    collect();
    const before = process.memoryUsage().heapUsed;
    let ended = 0;
    const us = await timed(CALLS, async () => {
      for (let n = 0; n < CALLS; n++) void spillway.execute({ toolName: 'never', input: { n } }).then(() => ended++);
    });
    collect();
    const after = process.memoryUsage().heapUsed;
    await spillway.close();
    await Promise.resolve();
    if (ended !== CALLS) throw new Error(`${CALLS - ended} of ${CALLS} calls were not pending`);
    if (round === 0) continue;
    micros.push(us);
    kilobytes.push((after - before) / 1024 / CALLS);
  }
  return {
    question: `What does each of ${CALLS} pending calls hold?`,
    figures: [{ name: 'to begin one', usPerUnit: median(micros), runs: ROUNDS }],
    ratios: {},
    kilobytes: { 'a pending call': median(kilobytes) },
  };
}
