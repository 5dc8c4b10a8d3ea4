import type { Observable } from 'rxjs';
import type { Usage } from '../../contract/gate/budget.ts';
import type { Progress, ToolContext, TraceContext, TraceContextSource } from '../../contract/tool.ts';
import type { AttemptSignal } from '../../operators/work/attempt-signal.ts';
import { given } from '../../policy/check.ts';
import { scopedKey } from '../../policy/key/call-key.ts';
import type { CallContext } from '../context.ts';

/**
 * What the source says of an attempt, if it says anything that can go over a wire: neither throwing nor rubbish ends a
 * call.
 */
const asked = (source: TraceContextSource, callId: string, attempt: number): TraceContext | undefined => {
  try {
    const { traceparent, tracestate, baggage } = source(callId, attempt) ?? {};
    if (typeof traceparent !== 'string' || traceparent === '') return undefined;
    return {
      traceparent,
      ...given({
        tracestate: typeof tracestate === 'string' && tracestate !== '' ? tracestate : undefined,
        baggage: typeof baggage === 'object' && baggage !== null ? baggage : undefined,
      }),
    };
  } catch {
    return undefined;
  }
};

/**
 * The context of the attempt itself, else the caller's. A vendor's `tracestate` belongs to its `traceparent`; baggage
 * is carried by all.
 */
export const traceContextOf = ({ call, layer, attempts }: CallContext): Partial<TraceContext> => {
  const own = layer.traceContext === undefined ? undefined : asked(layer.traceContext, call.callId, attempts);
  if (own === undefined) return call;
  return own.baggage === undefined && call.baggage !== undefined ? { ...own, baggage: call.baggage } : own;
};

/** What a resource is to know the call by. */
export const resourceKey = ({ call, callKey }: CallContext): string =>
  call.idempotencyKey === undefined ? callKey : scopedKey(call.tenant, call.idempotencyKey);

/** What a tool is given beside its input. */
export class AttemptContext implements ToolContext {
  declare readonly signal: AbortSignal;
  declare readonly fence?: number;
  declare readonly traceContext?: TraceContext;
  declare readonly traceparent?: string;
  declare readonly baggage?: Readonly<Record<string, string>>;
  declare usage?: (used: Usage) => void;
  readonly attempt: number;
  readonly callKey: string;
  readonly progress: (report: Progress) => void;
  readonly holdWhile: (waiting$: Observable<boolean>) => void;
  readonly #own: AttemptSignal;

  constructor(
    context: CallContext,
    attempt: number,
    own: AttemptSignal,
    progress: (report: Progress) => void,
    holdWhile: (waiting$: Observable<boolean>) => void,
  ) {
    const { lease } = context;
    this.#own = own;
    // An own property, so that `{ ...context }` has it too.
    Object.defineProperty(this, 'signal', AttemptContext.#signal);
    this.attempt = attempt;
    this.callKey = resourceKey(context);
    this.progress = progress;
    this.holdWhile = holdWhile;
    if (lease !== undefined) this.fence = lease.fence;
    const { traceparent, tracestate, baggage } = traceContextOf(context);
    if (traceparent !== undefined) {
      this.traceparent = traceparent;
      this.traceContext = given({ traceparent, tracestate, baggage });
    }
    if (baggage !== undefined) this.baggage = baggage;
  }

  /**
   * One getter for all contexts. With one of its own, as an object literal makes it, each context costs a hidden class,
   * which lives in V8's old space and keeps the whole call alive until the next full collection: a chain of 100,000
   * nodes kept 0.8 KB of every node that way.
   */
  static readonly #signal: PropertyDescriptor = {
    get(this: AttemptContext): AbortSignal {
      return this.#own.signal;
    },
    enumerable: true,
  };
}
