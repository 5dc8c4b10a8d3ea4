import { createSpillway, tool } from '../src/index.ts';
import { collect, type Question } from './measure.ts';

const PENDING = 100_000;
/** `--long` makes it ten million, which takes two minutes. */
const CALLS = process.argv.includes('--long') ? 10_000_000 : 1_000_000;
const PARTS = 10;

const heapKb = (): number => {
  collect();
  return process.memoryUsage().heapUsed / 1024;
};

/** What calls leave behind once they have ended. */
export async function benchmarkMemory(): Promise<Question> {
  const end: { now: (() => void) | undefined } = { now: undefined };
  const ended = new Promise<void>((resolve) => (end.now = resolve));
  const spillway = createSpillway({
    tools: [
      tool({ name: 'waits', execute: () => ended }),
      tool({ name: 'echo', execute: async (input: unknown) => input }),
    ],
  });
  const echo = async (n: number): Promise<void> => {
    if ((await spillway.execute({ toolName: 'echo', input: n })).output?.content !== n)
      throw new Error('the tool was not run');
  };
  for (let n = 0; n < CALLS / PARTS; n++) await echo(n);
  const before = heapKb();
  const parts: number[] = [];
  for (let part = 0; part < PARTS; part++) {
    for (let n = 0; n < CALLS / PARTS; n++) await echo(n);
    parts.push(heapKb());
  }
  const calls = Array.from({ length: PENDING }, () =>
    spillway.execute({ toolName: 'waits' }).then(({ status }) => status),
  );
  const during = heapKb();
  end.now?.();
  const wrong = (await Promise.all(calls.splice(0))).filter((status) => status !== 'success').length;
  if (wrong > 0) throw new Error(`${wrong} of ${PENDING} calls failed`);
  const after = heapKb();
  await spillway.close();
  return {
    question: `What do ${PENDING} calls at once and ${CALLS} in sequence leave behind?`,
    figures: [],
    ratios: {},
    kilobytes: {
      'the heap before': before,
      [`the heap after ${CALLS} calls in sequence`]: parts.at(-1) ?? Number.NaN,
      [`the heap with ${PENDING} calls pending`]: during,
      'the heap once they have ended': after,
    },
    targets: [
      { name: 'a pending call', value: (during - (parts.at(-1) ?? Number.NaN)) / PENDING, limit: 9, unit: 'KB' },
      {
        name: `the heap after ${PENDING} pending calls have ended / before`,
        value: after / (parts.at(-1) ?? Number.NaN),
        limit: 1.05,
        unit: 'x',
      },
      {
        name: `the heap after ${CALLS} calls in sequence / before`,
        value: Math.max(...parts) / before,
        limit: 1.05,
        unit: 'x',
      },
    ],
  };
}
