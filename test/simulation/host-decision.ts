import type { FailureNotification, RecoveryDecision } from '../../src/contract/recovery.ts';
import { Dice } from './dice.ts';
import type { Extras } from './extras.ts';
import { fires } from './faults.ts';

const DELAYS_MS = [0, 5, 30, 200] as const;

/**
 * What a host's error handler decides otherwise than the default, allowed or not; `undefined` when it leaves it at
 * that.
 */
export function hostDecision(
  seed: number,
  { handler }: Extras,
  { attempt, toolName, alternatives }: FailureNotification,
  n: number,
): RecoveryDecision | undefined {
  if (handler === undefined) return undefined;
  const dice = new Dice(seed, 35, n, attempt, Number(toolName.slice(1)));
  const common = { code: 'guidance', reason: 'the host decides' } as const;
  if (fires(handler, 'refuse', dice)) return { ...common, strategy: 'fail' };
  // Also what is no alternative, or was tried already.
  if (fires(handler, 'alternative', dice))
    return { ...common, strategy: 'alternative', toolName: alternatives.at(-1) ?? 't0' };
  return fires(handler, 'retry', dice) ? { ...common, strategy: 'retry', delayMs: dice.pick(DELAYS_MS) } : undefined;
}
