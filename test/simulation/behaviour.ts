import type { Classification } from '../../src/contract/error-kind.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import type { ScriptedStep } from '../../src/testing/scripted-tool.ts';
import { Dice } from './dice.ts';
import { fires, type Faults } from './faults.ts';
import type { ToolSpec } from './scenario.ts';

/** What a tool answers with: which call, tool and attempt it was. */
export interface Answer {
  readonly n: number;
  readonly tool: string;
  readonly attempt: number;
}

/** What one attempt will do, and what the layer must make of it. */
export interface Behaviour extends ScriptedStep {
  readonly expected?: Classification;
  /** Its answer is none that the tool's schema allows. */
  readonly spoilt?: true;
}

type ErrorMaker = () => unknown;
/** Said by structure, so that there is no doubt about the class. */
const TRANSIENT: readonly [ErrorMaker, ...ErrorMaker[]] = [
  () => Object.assign(new Error('unavailable'), { status: 503 }),
  () => Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
  () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
  () => new ToolExecutionError('transport_error', 'the connection was lost', { uncertain: true }),
  () => 'a string',
  () => undefined,
];
const PERMANENT: readonly [ErrorMaker, ...ErrorMaker[]] = [
  () => Object.assign(new Error('no such thing'), { status: 404 }),
  () => new ToolExecutionError('execution_error', 'it will not fit', { classification: 'permanent' }),
  () => Object.assign(new Error('quota'), { code: 'insufficient_quota' }),
  () => new ToolExecutionError('not_permitted', 'never'),
];
const HINTS = [-1, 0, 5, 30, 120, 100_000, Number.NaN] as const;

const failing = (
  dice: Dice,
  faults: Faults,
  atMs: number,
  tool: ToolSpec,
): Pick<Behaviour, 'error' | 'expected'> | undefined => {
  const { outage } = tool;
  const down = outage !== undefined && atMs >= outage[0] && atMs < outage[1];
  if (down || fires(faults, 'transient', dice)) return { error: dice.pick(TRANSIENT)(), expected: 'transient' };
  if (fires(faults, 'permanent', dice)) {
    return { error: dice.pick(PERMANENT)(), expected: 'permanent' };
  }
  if (!fires(faults, 'retry_after', dice)) return undefined;
  return {
    error: new ToolExecutionError('execution_error', 'later', { status: 429, retryAfterMs: dice.pick(HINTS) }),
    expected: 'transient',
  };
};

/** Times on a grid, the timeouts' own among them, so that much falls on one instant. */
const LATENCIES = [0, 5, 5, 10, 10, 15, 20, 25, 30, 40] as const;
const LONG = [40, 60, 100, 150, 200, 400] as const;

/** The fate of one attempt: a function of the run, the call, the tool and the attempt alone. */
export function behave(
  seed: number,
  faults: Faults,
  tool: ToolSpec,
  n: number,
  attempt: number,
  atMs: number,
): Behaviour {
  const dice = new Dice(seed, 1, n, tool.index, attempt);
  const value: Answer = { n, tool: tool.name, attempt };
  const sync = fires(faults, 'sync', dice);
  const slow = fires(faults, 'slow', dice);
  const common: Behaviour = {
    afterMs: slow ? dice.pick(LONG) : dice.pick(LATENCIES),
    as: sync ? ('value' as const) : dice.pick(['promise', 'promise', 'observable', 'iterable'] as const),
    earlierValues: dice.int(0, 2),
    ...(tool.idleTimeoutMs !== undefined && !fires(faults, 'silence', dice)
      ? { progressAtMs: [5, 15, 25, 35, 45, 60, 75, 90] }
      : {}),
    ...(fires(faults, 'ignore_signal', dice) ? { ignoresSignal: true } : {}),
  };
  if (fires(faults, 'hang', dice)) return { ...common, hangs: true };
  const failure = failing(dice, faults, atMs, tool);
  if (failure === undefined) return { ...common, value };
  // A value that is given at once cannot fail but by throwing.
  return { ...common, ...failure, ...(sync || fires(faults, 'throw', dice) ? { throws: true } : {}) };
}

/** What every tool does once the faults have stopped. */
export const healthy = (tool: ToolSpec, n: number, attempt: number): Behaviour => ({
  afterMs: 5,
  value: { n, tool: tool.name, attempt } satisfies Answer,
});

/** The same, with an answer that does not fit the tool's schema: it ran, and asking again would not help. */
export const spoilt = (behaviour: Behaviour): Behaviour =>
  'error' in behaviour || behaviour.hangs === true
    ? behaviour
    : { ...behaviour, value: { ...(behaviour.value as Answer), misfit: true }, spoilt: true, expected: 'permanent' };
