import {
  createSpillway,
  tool,
  type AnyTool,
  type Spillway,
  type SpillwayOptions,
  type Tool,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolPolicy,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

export const reset = (): Error => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
export const notFound = (): Error => Object.assign(new Error('no such airport'), { status: 404 });
/** One retry after 100 ms, without jitter. */
export const onceMore: ToolPolicy = { retry: { maxAttempts: 2, initialDelayMs: 100, jitterPercent: 0 } };

/** A tool that does what its steps say, the last one over and over. */
export const stepped = (name: string, steps: ReadonlyArray<() => unknown>, policy: ToolPolicy = onceMore): Tool => {
  let runs = 0;
  return tool({ name, policy, execute: () => steps[Math.min(runs++, steps.length - 1)]?.() });
};

export interface Layer {
  readonly runtime: VirtualRuntime;
  readonly spillway: Spillway;
  readonly events: TraceEvent[];
  /** Makes a call and lets so much time pass. */
  run(request: ToolCallRequest | ToolCallEnvelope | string, ms?: number): Promise<ToolResultEnvelope>;
}

export function layerOf(tools: readonly AnyTool[], options: SpillwayOptions = {}): Layer {
  const runtime = virtualRuntime();
  const spillway = createSpillway({ tools, runtime, ...options });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => events.push(event));
  return {
    runtime,
    spillway,
    events,
    run: async (request, ms = 10_000) => {
      const result = spillway.execute(typeof request === 'string' ? { toolName: request } : request);
      await runtime.advance(ms);
      return result;
    },
  };
}
