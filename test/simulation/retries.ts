import type { RetryRecord } from '../../src/contract/envelope.ts';
import type { RetryPolicy } from '../../src/contract/policy.ts';
import type { CallOperation, ToolSpec } from './scenario.ts';

/** Times are added up in floating point. */
const SLACK_MS = 1e-6;

/**
 * Where a policy's wait before a retry lies, worked out here once more.
 * @param retry 0 before the first one
 * @param previousTopMs the upper end of the wait before: `decorrelated` grows from it
 */
export function delayInterval(
  { strategy, initialDelayMs, maxDelayMs, multiplier, jitterPercent }: RetryPolicy,
  retry: number,
  previousTopMs: number | undefined,
): readonly [number, number] {
  const grownMs = Math.min(maxDelayMs, initialDelayMs * multiplier ** retry);
  const flatMs = Math.min(maxDelayMs, initialDelayMs);
  const spread = jitterPercent / 100;
  switch (strategy) {
    case 'exponential':
      return [grownMs * (1 - spread), grownMs * (1 + spread)];
    case 'constant':
      return [flatMs * (1 - spread), flatMs * (1 + spread)];
    case 'full_jitter':
      return [0, grownMs];
    case 'decorrelated':
      return [flatMs, Math.min(maxDelayMs, 3 * (previousTopMs ?? initialDelayMs))];
  }
}

const near = (a: number, b: number): boolean => Math.abs(a - b) < SLACK_MS;

/** Whether a result tells of the same retries as the trace. */
export const sameRecords = (told: readonly RetryRecord[], traced: readonly RetryRecord[]): boolean =>
  told.length === traced.length &&
  told.every((record, index) => {
    const other = traced[index];
    return (
      other !== undefined &&
      record.attempt === other.attempt &&
      near(record.delayMs, other.delayMs) &&
      record.reasonCode === other.reasonCode &&
      near(record.latencyMs, other.latencyMs)
    );
  });

/** Whether doing it again does no harm, by what its author and its caller say. */
export const isRetrySafe = (
  { effects, enforcesKey, safetyCritical }: ToolSpec,
  hints: CallOperation['envelope'],
): boolean =>
  effects === 'read' ||
  (!safetyCritical && hints?.safetyCritical !== true && (enforcesKey || hints?.retrySafe === true));
