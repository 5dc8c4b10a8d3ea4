import { NEVER, type Observable } from 'rxjs';
import {
  createSpillway,
  tool,
  type AnyTool,
  type DedupeStore,
  type Spillway,
  type SpillwayOptions,
  type ToolCallRequest,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { createApprovals, type Approvals, type ApprovalRequest, type ApprovalsOptions } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

/** A layer in virtual time with one tool that moves money, and what was seen of it. */
export interface Scene {
  readonly runtime: VirtualRuntime;
  readonly store: DedupeStore;
  readonly approvals: Approvals;
  readonly spillway: Spillway;
  readonly tool: AnyTool;
  /** When the tool ran, and with what. */
  readonly runs: Array<readonly [atMs: number, input: unknown]>;
  readonly asked: ApprovalRequest[];
  readonly trace: TraceEvent[];
  /** Makes a call; what it came to is there once it has settled. */
  pay(request?: Partial<ToolCallRequest>): { result?: ToolResultEnvelope; cancel(): void };
  /** Lets time pass, and what is due happen. */
  pass(ms: number): Promise<void>;
}

export interface SceneOptions extends Omit<SpillwayOptions, 'approvals' | 'tools'> {
  readonly approvals?: ApprovalsOptions;
  readonly tool?: Partial<AnyTool>;
  readonly more?: readonly AnyTool[];
  readonly execute?: AnyTool['execute'];
}

export const scene = ({ approvals: options, tool: own, more = [], execute, ...rest }: SceneOptions = {}): Scene => {
  const runtime = (rest.runtime as VirtualRuntime | undefined) ?? virtualRuntime();
  const store = rest.store ?? memoryStore({ runtime });
  const runs: Scene['runs'] = [];
  const asked: ApprovalRequest[] = [];
  const trace: TraceEvent[] = [];
  const { ask, ...terms } = options ?? {};
  const approvals = createApprovals({
    ...terms,
    ...(ask === undefined
      ? {}
      : {
          ask: (request: ApprovalRequest) => {
            asked.push(request);
            return ask(request);
          },
        }),
  });
  const pay = tool({
    name: 'pay',
    needsApproval: true,
    policy: { effects: 'mutating', retry: { initialDelayMs: 100, jitterPercent: 0 } },
    ...(own as object),
    execute: (input: unknown, context) => {
      runs.push([runtime.now(), input]);
      return execute === undefined ? 'paid' : execute(input as never, context);
    },
  });
  const spillway = createSpillway({ ...rest, tools: [pay, ...more], approvals, store, runtime });
  spillway.trace$.subscribe((event) => trace.push(event));
  return {
    runtime,
    store,
    approvals,
    spillway,
    tool: pay,
    runs,
    asked,
    trace,
    pay: (request = {}) => {
      const seen: { result?: ToolResultEnvelope; cancel(): void } = { cancel: () => subscription.unsubscribe() };
      const events$ = spillway.call({ toolName: 'pay', input: { amount: 7 }, ...request });
      const subscription = events$.subscribe((event) => {
        if (event.type === 'settled') seen.result = event.result;
      });
      return seen;
    },
    pass: async (ms) => {
      await runtime.advance(ms);
    },
  };
};

/** A person who never says anything. */
export const silent = (): Observable<never> => NEVER;

/** The events of one type, as the trace has them. */
export const typed = <T extends TraceEvent['type']>(
  trace: readonly TraceEvent[],
  type: T,
): Array<Extract<TraceEvent, { readonly type: T }>> =>
  trace.filter((event): event is Extract<TraceEvent, { readonly type: T }> => event.type === type);
