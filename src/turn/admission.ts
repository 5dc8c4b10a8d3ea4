import type { Subscription } from 'rxjs';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import type { Admission, Breaker, GivenPermit } from '../operators/breaker.ts';
import { circuitOpenError } from '../operators/circuit-breaker.ts';
import { breakerSettings } from '../policy/breaker-settings.ts';
import type { CallRecord } from './call-record.ts';
import type { GuardedTool } from './registry.ts';
import type { SharedBreaker } from './shared-breakers.ts';

/** What a call's breaker is known by: its tool, or what the caller or the host asked for. */
const nameOf = ({ call, layer }: CallRecord, { tool, breakerName }: GuardedTool): string => {
  // What a person ordered goes before what a caller asks for.
  if (call.breakerHint === undefined || layer.breakers.isOrdered(breakerName)) return breakerName;
  if (call.breakerHint === 'global') return '*';
  return call.breakerHint === 'dependency' ? (tool.dependency ?? tool.name) : tool.name;
};

/** The breaker that guards a call of a tool; tenants have each their own. */
export const breakerOf = (record: CallRecord, guarded: GuardedTool): Breaker | undefined => {
  const { call, layer } = record;
  if (guarded.breaker === undefined) return undefined;
  return layer.breakers.get(nameOf(record, guarded), call.tenant, call.breakerHint === 'global' ? undefined : guarded.breaker);
};

/** A probe outlasts the attempt that it is. */
const PROBE_MARGIN_MS = 1_000;

const sharedOf = (record: CallRecord, guarded: GuardedTool): SharedBreaker => ({
  name: nameOf(record, guarded),
  scope: record.call.tenant ?? '',
  settings: breakerSettings(guarded.breaker),
  probeLeaseMs: guarded.timeoutMs + PROBE_MARGIN_MS,
});

/**
 * Asks the breaker of a call for an attempt: tells a permit, none where there is no breaker, or the error of a call that is not admitted.
 * At once, or later where the breaker is shared with other processes.
 */
export function askAdmission(record: CallRecord, guarded: GuardedTool, breaker: Breaker | undefined, atMs: number, told: (answer: GivenPermit | ToolExecutionError | undefined) => void): Subscription | undefined {
  if (breaker === undefined) {
    told(undefined);
    return undefined;
  }
  const { sharedBreakers, switches } = record.layer;
  const answer = (admission: Admission): void => {
    if (admission.admitted) told(admission);
    else told(switches.breakersObserve ? undefined : circuitOpenError(admission.retryAfterMs));
  };
  if (sharedBreakers !== undefined) return sharedBreakers.admit(sharedOf(record, guarded), breaker, answer);
  answer(breaker.admit(atMs));
  return undefined;
}
