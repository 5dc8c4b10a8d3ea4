import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { z } from 'zod';
import { createSpillway, tool, type Spillway } from '../src/index.ts';
import { pinoSink } from '../src/sinks/pino.ts';
import { added } from './guard.ts';
import { sideBySide, type Question } from './measure.ts';

const CALLS = 5_000;
const ROUNDS = 15;

/** What those who watch a layer cost its calls. */
export async function benchmarkTrace(): Promise<Question> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'));
  const file = join(folder, 'trace.log');
  const destination = pino.destination({ dest: file, sync: false });
  await once(destination, 'ready');
  const layer = (): Spillway => createSpillway({ tools: [tool({ name: 'echo', input: z.object({ n: z.number() }), execute: async ({ n }) => n })] });
  const [alone, watched, logged] = [layer(), layer(), layer()];
  let seen = 0;
  watched.trace$.subscribe(() => seen++);
  logged.trace$.subscribe(pinoSink(pino(destination)));
  const calls = (spillway: Spillway): (() => Promise<void>) => added(CALLS, async (n) => (await spillway.execute({ toolName: 'echo', input: { n } })).output?.content);
  const { figures, ratio } = await sideBySide({ 'nobody on trace$': calls(alone), 'one subscriber that ignores it': calls(watched), 'pino to a file': calls(logged) }, CALLS, ROUNDS);
  destination.flushSync();
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').length;
  destination.end();
  rmSync(folder, { recursive: true, force: true });
  if (seen < CALLS * ROUNDS || lines < CALLS * ROUNDS) throw new Error('the trace was not told');
  return {
    question: 'What does watching a call cost?',
    figures,
    ratios: {},
    targets: [
      { name: 'with a subscriber that ignores events / without', value: ratio('one subscriber that ignores it', 'nobody on trace$'), limit: 1.15, unit: 'x' },
      { name: 'with pino to a file / without', value: ratio('pino to a file', 'nobody on trace$'), limit: 1.4, unit: 'x' },
    ],
  };
}
