import { Observable, map, of } from 'rxjs';
import type { BreakerAtStart } from '../../contract/event.ts';
import type { Breaker } from '../../operators/breaker/breaker.ts';
import type { Admission, GivenPermit } from '../../operators/breaker/permit.ts';
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
export const breakerOf = (context: CallContext, guarded: GuardedTool): Breaker | undefined => {
  const { call, layer } = context;
  if (guarded.breaker === undefined) return undefined;
  return layer.breakers.get(
    nameOf(context, guarded),
    call.tenant,
    call.breakerHint === 'global' ? undefined : guarded.breaker,
  );
};

/** How the breaker of a call's tool stands, for who only looks: none is made for that. */
export const breakerAtStart = (context: CallContext, guarded: GuardedTool): BreakerAtStart | undefined => {
  const { call, layer } = context;
  if (guarded.breaker === undefined) return undefined;
  const key = nameOf(context, guarded);
  return { key, state: layer.breakers.stateOf(key, call.tenant, guarded.breaker) };
};

/**
 * The permit that the breaker of a call gives to an attempt; none where there is no breaker, or where breakers only
 * observe.
 * @throws ToolExecutionError for an attempt that is not admitted
 */
export const permitAtOnce = (
  context: CallContext,
  breaker: Breaker | undefined,
  atMs: number,
): GivenPermit | undefined =>
  breaker === undefined ? undefined : permitOf(context, breaker, breaker.admit(atMs, context.call.callId));

/**
 * Asks a breaker that may be shared with other processes, and so may answer later. A permit that comes when nobody
 * waits any more is given back.
 */
export const permit = (
  context: CallContext,
  breaker: Breaker | undefined,
  atMs: number,
): Observable<GivenPermit | undefined> => {
  const { sharedBreakers } = context.layer;
  if (breaker === undefined) return of(undefined);
  return new Observable<Admission>((subscriber) => {
    const answered = (admission: Admission): void => {
      // Also of our own breaker: whoever heard of its change may have ended the call.
      if (subscriber.closed) return void (admission.admitted && admission.release());
      subscriber.next(admission);
      subscriber.complete();
    };
    const by = context.call.callId;
    return sharedBreakers === undefined
      ? answered(breaker.admit(atMs, by))
      : sharedBreakers.admit(breaker, answered, by);
  }).pipe(map((admission) => permitOf(context, breaker, admission)));
};

const permitOf = ({ layer }: CallContext, breaker: Breaker, admission: Admission): GivenPermit | undefined => {
  if (admission.admitted) return admission;
  if (layer.switches.breakersObserve) return undefined;
  throw circuitOpenError(breaker, admission.retryAfterMs);
};
