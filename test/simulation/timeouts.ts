import type { ToolEvent } from '../../src/contract/event.ts';
import type { CallSurroundings, Running } from './call-place.ts';
import type { ToolSpec } from './scenario.ts';

type Failed = Extract<ToolEvent, { type: 'attempt_failed' }>;
const SLACK_MS = 1e-6;

/** Whether an attempt timed out since it told of no progress. */
export const wentSilent = ({ idleTimeoutMs }: ToolSpec, { timeoutMs, error }: Failed): boolean =>
  timeoutMs === idleTimeoutMs && error.message.includes('no progress');

/**
 * Why an attempt may not have timed out, if so.: what was there when the deadline was found to have passed beats
 * it. What arrives after that, while the deadline gives way to it, is late.
 */
export function whyUntimely(
  { heardMs, startedMs, behaviour }: Running,
  tool: ToolSpec,
  event: Failed,
  around: CallSurroundings,
): string | undefined {
  const { timeoutMs = Infinity } = event;
  const foundMs = around.foundPassedMs((wentSilent(tool, event) ? heardMs : startedMs) + timeoutMs);
  const dueMs = behaviour?.hangs === true ? Infinity : startedMs + (behaviour?.afterMs ?? 0);
  if (dueMs <= foundMs + SLACK_MS)
    return `its answer was there ${foundMs - dueMs} ms before anybody saw that its time was over`;
  return around.now() + SLACK_MS < foundMs ? 'its time was not over' : undefined;
}
