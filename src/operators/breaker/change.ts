import type { BreakerStateName } from '../../contract/breaker-state.ts';
import { breakerDueMs, type BreakerInput, type BreakerMemory } from '../../policy/breaker/reducer.ts';
import type { BreakerSettings } from '../../policy/breaker/settings.ts';
import { given } from '../../policy/check.ts';

/** What else there is to say of a change. */
export interface ChangeDetail {
  /** When an open one lets a probe through. */
  readonly untilMs?: number;
  /** Who was admitted, or whose attempt ended, as it was said at admission. */
  readonly by?: string;
  /** It was ordered. */
  readonly ordered?: true;
}

/** Called at a breaker's change of state, with all that there is to say of it. */
export type DetailedChange = (from: BreakerStateName, to: BreakerStateName, detail: ChangeDetail) => void;

const ORDERS: ReadonlySet<BreakerInput['type']> = new Set(['force_open', 'reset', 'disable']);

/** @param now what it knows since the input that changed it */
export const detailOf = (
  { type }: BreakerInput,
  now: BreakerMemory,
  settings: BreakerSettings,
  by: string | undefined,
): ChangeDetail =>
  given({
    untilMs: now.type === 'open' ? breakerDueMs(now, settings) : undefined,
    by,
    ordered: ORDERS.has(type) ? (true as const) : undefined,
  });
