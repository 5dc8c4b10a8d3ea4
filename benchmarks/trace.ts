import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { z } from 'zod';
import { createSpillway, tool, type Spillway } from '../src/index.ts';
import { pinoSink } from '../src/sinks/pino.ts';
import { added } from './guard.ts';
import { askedApart, sideBySide, type Question, type Ways } from './measure.ts';

/** So many that each run has its share of collections. */
const CALLS = 20_000;
const ROUNDS = 15;
/** Short ones, whose ratio is close to 1. */
const WATCHING_ROUNDS = 41;

/** A line of a call as pino writes it. */
const READY = `${JSON.stringify({ level: 30, time: 1_785_000_000_000, pid: 12_345, hostname: 'localhost', event: 'tool_call_start', requestId: '0199c1f2-3c4d-7e5f-8a6b-123456789abc', toolName: 'echo', elapsedMs: 0, state: 'inflight', msg: 'tool_call_start echo' })}\n`;

/**
 * What those who watch a layer cost its calls. In a process of its own: no peer takes part, so nothing that peers
 * taught V8 need bear on it.
 */
export const benchmarkTrace = (): Promise<Question> => askedApart(import.meta.filename);

async function askTrace(): Promise<Question> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'));
  const fileOf = (name: string): string => join(folder, `${name}.log`);
  const open = async (name: string): Promise<ReturnType<typeof pino.destination>> => {
    const destination = pino.destination({ dest: fileOf(name), sync: false });
    await once(destination, 'ready');
    return destination;
  };
  const [ofSink, ofPino, ofNobody] = [await open('sink'), await open('pino'), await open('ready')];
  const layer = (): Spillway =>
    createSpillway({
      tools: [tool({ name: 'echo', input: z.object({ n: z.number() }), execute: async ({ n }) => n })],
    });
  const [alone, watched, made, logged] = [layer(), layer(), layer(), layer()];
  let seen = 0;
  const count = (): void => void seen++;
  watched.trace$.subscribe(count);
  made.trace$.subscribe(pinoSink({ info: count, warn: count, error: count }));
  logged.trace$.subscribe(pinoSink(pino(ofSink)));
  const calls = (spillway: Spillway): (() => Promise<void>) =>
    added(CALLS, async (n) => (await spillway.execute({ toolName: 'echo', input: { n } })).output?.content);
  /** Until it is in the file: calls that never wait leave all writing to whoever is measured next. */
  const written =
    (destination: ReturnType<typeof pino.destination>, work: () => Promise<void>) => async (): Promise<void> => {
      const drained = once(destination, 'drain');
      await work();
      await drained;
    };
  const logger = pino(ofPino);
  const names = {
    alone: 'nobody on trace$',
    watched: 'one subscriber that ignores it',
    made: 'the pino sink, to a logger that ignores it',
    logged: 'pino to a file',
    pino: 'pino alone, the two lines of a call',
    ready: 'pino’s destination alone, two lines that are ready',
  } as const;
  const watching: Ways = { [names.alone]: calls(alone), [names.watched]: calls(watched) };
  const writing: Ways = {
    [names.alone]: calls(alone),
    [names.logged]: written(ofSink, calls(logged)),
    // What the sink writes for a call: less than that no sink can cost.
    [names.pino]: written(ofPino, async () => {
      for (let n = 0; n < CALLS; n++) {
        const requestId = `0199c1f2-3c4d-7e5f-8a6b-${100_000_000_000 + n}`;
        logger.info(
          { event: 'tool_call_start', requestId, toolName: 'echo', elapsedMs: 0, state: 'inflight' },
          'tool_call_start echo',
        );
        logger.info(
          {
            event: 'tool_call_end',
            requestId,
            toolName: 'echo',
            elapsedMs: n / 7,
            status: 'success',
            fromCache: false,
            attempt: 1,
            state: 'done',
          },
          'tool_call_end echo',
        );
      }
    }),
    [names.ready]: written(ofNobody, async () => {
      for (let line = 0; line < 2 * CALLS; line++) ofNobody.write(READY);
    }),
  };
  // Apart: the lines that wait to be written are old by the time they are, and collecting them goes on beside whatever
  // is measured next.
  const inMemory = await sideBySide(watching, CALLS, WATCHING_ROUNDS);
  const sinking = await sideBySide({ [names.made]: calls(made) }, CALLS, ROUNDS);
  const { figures, us, ratio } = await sideBySide(writing, CALLS, ROUNDS);
  const lines = readFileSync(fileOf('sink'), 'utf8').trimEnd().split('\n').length;
  for (const destination of [ofSink, ofPino, ofNobody]) destination.end();
  rmSync(folder, { recursive: true, force: true });
  if (seen < CALLS * ROUNDS || lines < 2 * CALLS * ROUNDS) throw new Error('the trace was not told');
  return {
    question: 'What does watching a call cost?',
    figures: [...inMemory.figures, ...sinking.figures, ...figures.filter(({ name }) => name !== names.alone)],
    ratios: {
      'pino’s two lines alone / a call that nobody watches': ratio(names.pino, names.alone),
      'what pino to a file adds to a call / pino’s two lines alone':
        (us(names.logged) - us(names.alone)) / us(names.pino),
    },
    targets: [
      {
        name: 'with a subscriber that ignores events / without',
        value: inMemory.ratio(names.watched, names.alone),
        limit: 1.15,
        unit: 'x',
      },
      { name: 'with pino to a file / without', value: ratio(names.logged, names.alone), limit: 1.4, unit: 'x' },
    ],
  };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await askTrace()));
