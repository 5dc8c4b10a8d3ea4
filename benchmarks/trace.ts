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
  const logger = pino(destination);
  /** What the sink writes for a call, by pino alone: less than that no sink can cost. */
  const lines = async (): Promise<void> => {
    for (let n = 0; n < CALLS; n++) {
      const call = { requestId: '0199c1f2-3c4d-7e5f-8a6b-123456789abc', toolName: 'echo' };
      logger.info({ event: 'tool_call_start', ...call, elapsedMs: 0, state: 'inflight' }, 'tool_call_start echo');
      logger.info({ event: 'tool_call_end', ...call, elapsedMs: n / 7, status: 'success', fromCache: false, attempt: 1, state: 'done' }, 'tool_call_end echo');
    }
  };
  const bare = 'pino alone, the two lines of a call';
  const { figures, ratio } = await sideBySide({ 'nobody on trace$': calls(alone), 'one subscriber that ignores it': calls(watched), 'pino to a file': calls(logged), [bare]: lines }, CALLS, ROUNDS);
  destination.flushSync();
  const written = readFileSync(file, 'utf8').trimEnd().split('\n').length;
  destination.end();
  rmSync(folder, { recursive: true, force: true });
  if (seen < CALLS * ROUNDS || written < 4 * CALLS * ROUNDS) throw new Error('the trace was not told');
  return {
    question: 'What does watching a call cost?',
    figures,
    ratios: { 'pino’s two lines alone / a call that nobody watches': ratio(bare, 'nobody on trace$') },
    targets: [
      { name: 'with a subscriber that ignores events / without', value: ratio('one subscriber that ignores it', 'nobody on trace$'), limit: 1.15, unit: 'x' },
      { name: 'with pino to a file / without', value: ratio('pino to a file', 'nobody on trace$'), limit: 1.4, unit: 'x' },
    ],
  };
}
