import { Dice } from './dice.ts';
import type { Rates } from './faults.ts';

/** How often a hook says no, fails, changes the call, answers later, or never. */
export type HookPoint = 'block' | 'fail' | 'change' | 'late' | 'hang';
/** How often a caller's input, or a tool's answer, does not fit its schema. */
export type SchemaPoint = 'input' | 'output';

/** How often the host's error handler refuses to go on, or orders a retry or an alternative, allowed or not. */
export type HandlerPoint = 'refuse' | 'retry' | 'alternative';

/** What some layers have besides tools: drawn from a stream of its own, so that the other seeds stay what they were. */
export interface Extras {
  readonly hooks?: Rates<HookPoint>;
  readonly schemas?: Rates<SchemaPoint>;
  readonly handler?: Rates<HandlerPoint>;
}

const ON = 0.15;

export function drawExtras(seed: number): Extras {
  const dice = new Dice(seed, 30);
  const rate = (): number => dice.pick([0, 0.1, 0.3]);
  const hooks = {
    block: rate(),
    fail: rate(),
    change: dice.pick([0, 0.5]),
    late: rate(),
    hang: dice.pick([0, 0, 0.2]),
  };
  const schemas = { input: rate(), output: rate() };
  const handler = { refuse: rate(), retry: dice.pick([0.3, 0.9]), alternative: rate() };
  return {
    ...(dice.chance(ON) ? { hooks } : {}),
    ...(dice.chance(ON) ? { schemas } : {}),
    ...(dice.chance(ON) ? { handler } : {}),
  };
}
