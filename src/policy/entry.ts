import type { BreakerPolicyEntry, RetryEntry } from '../contract/formats/policy-entry.ts';
import type { CompensateEntry, VerifyEntry } from '../contract/formats/settle-entry.ts';
import type { BreakerOptions, RetryPolicy, ToolPolicy } from '../contract/policy.ts';
import { given } from './check.ts';

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
export type CamelKeys<T> = { [K in keyof T as Camel<K & string>]: T[K] };

/** An entry's keys as options spell them: `timeout_ms` is `timeoutMs`. */
export const camelKeys = <T extends object>(entry: T): CamelKeys<T> =>
  // Key by key what the type says.
  Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [
      key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      value as unknown,
    ]),
  ) as CamelKeys<T>;

/** The retry policy that a file spells in the seeds' words. */
export const retryOf = ({ strategy, ...entry }: RetryEntry): Partial<RetryPolicy> => ({
  ...camelKeys(entry),
  // The seeds' word for it.
  ...given({ strategy: strategy === 'exponential_backoff' ? 'exponential' : strategy }),
});

const orInfinity = (value: number | 'off' | undefined): number | undefined => (value === 'off' ? Infinity : value);

/** The options of a breaker that a file spells in the seeds' words. */
export const breakerOf = ({
  timeout_ms,
  failure_threshold,
  failure_rate,
  ...entry
}: BreakerPolicyEntry): BreakerOptions => ({
  ...camelKeys(entry),
  ...given({
    cooldownMs: timeout_ms,
    failureThreshold: orInfinity(failure_threshold),
    failureRate: orInfinity(failure_rate),
  }),
});

/** How a file says what became of uncertain calls, and how calls are undone. @param named the full name of a tool */
export const settlingOf = (
  { verify, compensate }: { readonly verify?: VerifyEntry; readonly compensate?: CompensateEntry | false },
  named: (tool: string) => string = (tool) => tool,
): Pick<ToolPolicy, 'verify' | 'compensate'> =>
  given({
    verify: verify && { ...camelKeys(verify), tool: named(verify.tool) },
    compensate: compensate && { ...compensate, tool: named(compensate.tool) },
  });
