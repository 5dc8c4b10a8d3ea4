import type { Subscription } from 'rxjs';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Admission, Breaker, GivenPermit } from '../../operators/breaker/breaker.ts';
import { circuitOpenError } from '../../operators/circuit-breaker.ts';
import type { CallContext } from '../context.ts';
import type { GuardedTool } from '../../layer/registry.ts';

/** What a call's breaker is known by: its tool, or what the caller or the host asked for. */
const nameOf = ({ call, layer }: CallContext, { tool, breakerName }: GuardedTool): string => {
  // What a person ordered goes before what a caller asks for.
  if (call.breakerHint === undefined || layer.breakers.isOrdered(breakerName)) return breakerName;
  if (call.breakerHint === 'global') return '*';
  return call.breakerHint === 'dependency' ? (tool.dependency ?? tool.name) : tool.name;
};

/** The breaker that guards a call of a tool; tenants have each their own. */
export const breakerOf = (record: CallContext, guarded: GuardedTool): Breaker | undefined => {
  const { call, layer } = record;
  if (guarded.breaker === undefined) return undefined;
  return layer.breakers.get(nameOf(record, guarded), call.tenant, call.breakerHint === 'global' ? undefined : guarded.breaker);
};

/**
 * Asks the breaker of a call for an attempt: tells a permit, none where there is no breaker, or the error of a call that is not admitted.
 * At once, or later where the breaker is shared with other processes.
 */
export function askAdmission(
  { layer }: CallContext,
  breaker: Breaker | undefined,
  atMs: number,
  told: (answer: GivenPermit | ToolExecutionError | undefined) => void,
): Subscription | undefined {
  if (breaker === undefined) {
    told(undefined);
    return undefined;
  }
  const { sharedBreakers, switches } = layer;
  const answer = (admission: Admission): void => {
    if (admission.admitted) told(admission);
    else told(switches.breakersObserve ? undefined : circuitOpenError(breaker, admission.retryAfterMs));
  };
  if (sharedBreakers !== undefined) return sharedBreakers.admit(breaker, answer);
  answer(breaker.admit(atMs));
  return undefined;
}
