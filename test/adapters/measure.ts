import { setTimeout as sleep } from 'node:timers/promises';
import { createHarvest, type GuardedHarvest } from '../../src/adapters/guarded/harvest.ts';
import { CANARY, nothingSeen, tellByHand, type Framework, type ModelCall, type Seen } from './frameworks/kit.ts';

/**
 * A run that has not settled by now hangs: the slow tool takes 10 s, the timeouts are 200 ms. Guarded none should wait
 * so long, and a busy machine has the time it needs.
 */
const BOUND_MS = { alone: 4_000, guarded: 9_000 };
/** Where the caller aborts no timeout comes before, however busy the machine is; a framework's own comes at last. */
const LATE_MS = { alone: 1_500, guarded: 60_000 };
const POLL_MS = 5;

export interface Scenario {
  readonly title: string;
  readonly calls: readonly ModelCall[];
  /** The call whose failure is looked at. */
  readonly failing: string;
  /** A call that succeeds beside it. */
  readonly sibling?: string;
  readonly abort?: true;
}

export const SCENARIOS: readonly Scenario[] = [
  {
    title: 'a tool ignores its signal',
    calls: [
      { id: 'c1', name: 'slow', input: {} },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
  },
  {
    title: 'a tool throws',
    calls: [
      { id: 'c1', name: 'bad', input: {} },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
  },
  {
    title: 'bad arguments',
    calls: [
      { id: 'c1', name: 'strict', input: { n: 'one' } },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
  },
  {
    title: 'an unknown tool',
    calls: [
      { id: 'c1', name: 'nope', input: {} },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
  },
  {
    title: 'the connection breaks after a payment',
    calls: [
      { id: 'c1', name: 'pay', input: {} },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
  },
  {
    title: 'the caller aborts',
    calls: [
      { id: 'c1', name: 'slow', input: {} },
      { id: 'c2', name: 'good', input: {} },
    ],
    failing: 'c1',
    sibling: 'c2',
    abort: true,
  },
];

/** The cases whose call is made with input that cannot be right. */
export const WRONG_CALLS: readonly string[] = ['bad arguments', 'an unknown tool'];

export interface Measured {
  readonly end: 'answers' | 'throws' | 'hangs';
  readonly seen: Seen;
  /** What the run rejected with. */
  readonly error?: unknown;
}

/** The caller's signal, aborted while the slow tool is under way and the other has answered. */
const abortOnce = ({ ran, answered }: Seen): AbortSignal => {
  const controller = new AbortController();
  const watch = async (): Promise<void> => {
    while (!ran.includes('slow') || !answered.includes('good')) await sleep(POLL_MS);
    controller.abort();
  };
  void watch();
  return controller.signal;
};

/** A host waits for what still runs, for as long as the slowest timeout. */
const byHand = async (seen: Seen, harvest: GuardedHarvest, calls: readonly ModelCall[]): Promise<void> => {
  while (harvest.calls.some(({ state }) => state === 'running')) await sleep(POLL_MS);
  tellByHand(seen, harvest, calls);
};

export async function measure(framework: Framework, scenario: Scenario, guarded: boolean): Promise<Measured> {
  const { abort } = scenario;
  // The abort comes while the last one runs.
  const calls = framework.sequential && abort ? scenario.calls.toReversed() : scenario.calls;
  const seen = nothingSeen();
  const limits = abort === true ? { signal: abortOnce(seen), timeoutMs: LATE_MS[guarded ? 'guarded' : 'alone'] } : {};
  const harvest = createHarvest();
  const run = harvest
    .run(() => framework.run({ calls, guarded, ...limits }, seen))
    .then(
      (): Measured => ({ end: 'answers', seen }),
      async (error: unknown): Promise<Measured> => {
        if (guarded) await (framework.resume?.(seen, harvest) ?? byHand(seen, harvest, calls));
        return { end: 'throws', seen, error };
      },
    );
  return Promise.race([run, sleep(BOUND_MS[guarded ? 'guarded' : 'alone'], { end: 'hangs', seen } as const)]);
}

/** What the model reads from a text, asked in this order. */
const MEANINGS: ReadonlyArray<readonly [RegExp, string]> = [
  [/no tool of this name|unavailable tool|not found|not a valid tool|no tool is named/i, 'there is no such tool'],
  [/may have/i, 'it may have taken effect'],
  [/does not fit|malformed|invalid input|validation|did not match/i, 'the input does not fit'],
  [/counted/, 'the tool ran on it'],
  [/did not run|not called/i, 'it did not run'],
  [/ran and failed|it ran/i, 'it ran and failed'],
];

export const toldOf = (text: string | undefined): string =>
  text === undefined ? 'nothing' : (MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? 'something went wrong');

/** A run in a cell of the table: classes, no milliseconds. */
export function worded({ end, seen }: Measured, { failing, sibling }: Scenario, resumed: boolean): string {
  if (end === 'hangs') return '**hangs**';
  const kept = sibling === undefined || seen.told.get(sibling)?.includes('fine') === true;
  const told = end === 'answers' || resumed ? [`the model is told: ${toldOf(seen.told.get(failing))}`] : [];
  const paid = seen.ran.filter((name) => name === 'pay').length;
  const effects = paid === 0 ? [] : [paid === 1 ? 'paid once' : `**paid ${paid} times**`];
  const secret = seen.shown.includes(CANARY) ? ['the secret is shown'] : [];
  return [`**${end}**`, ...effects, kept ? 'sibling kept' : 'sibling lost', ...told, ...secret].join('; ');
}
