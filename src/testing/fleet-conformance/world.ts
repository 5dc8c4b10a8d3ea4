import { firstValueFrom, fromEvent, map, merge, take } from 'rxjs';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { AnyTool, Tool, ToolContext } from '../../contract/tool.ts';
import type { Plan } from '../../contract/turn.ts';
import { liveRuntime } from '../../runtime.ts';

/** What attempts leave in the world: that they began, took effect, were aborted, began to undo, or undid. */
export type FleetMarkKind = 'started' | 'effect' | 'aborted' | 'undoing' | 'undone';

/** One such mark. */
export interface FleetMark {
  /** The key of the call, `turnId/nodeId`. */
  readonly key: string;
  /** The worker that left it. */
  readonly worker: string;
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
}

/** The world outside of a fleet, as a worker's tools reach it. It must outlive workers and engine. */
export interface FleetWorld {
  /** Leaves a mark. */
  mark(kind: FleetMarkKind, mark: FleetMark): Promise<unknown>;
  /**
   * A resource that checks keys: gives true to the first who asks with a key, and leaves the mark in the same step, so
   * that nobody is killed between the two; gives false to all others.
   */
  first(key: string, kind: FleetMarkKind, mark: FleetMark): Promise<boolean>;
}

/** A worker in a process of its own, which serves with `fleetConformanceTools`. */
export interface FleetWorkerProcess {
  /** Ends it as `kill -9` does; resolves once it is gone. */
  kill(): Promise<void>;
  /** Stops it where it stands. */
  freeze(): void;
  /** Lets it go on. */
  thaw(): void;
  /** Closes what `serve` gave, and then the process; resolves once it is gone. */
  drain(): Promise<void>;
}

/** What the cases need of a fleet: an engine in this process, workers in others, and a world to look at. */
export interface FleetHarness {
  /** An engine in this process, which serves nothing. */
  readonly engine: FleetEngine;
  /** Another one, as another machine has it. */
  open(): FleetEngine;
  /** Starts a worker with `drainMs` of 2,000; resolves once it serves. */
  start(worker: string, version?: string): Promise<FleetWorkerProcess>;
  /**
   * Runs a plan in this process, by a layer with the workers' tools and their store: what a node of the fleet is
   * compared with. Absent where there is none.
   */
  runHere?(plan: Plan): Promise<unknown>;
  /** Whether what a worker had that stands still is given to another before it wakes up. Default: it waits. */
  readonly movesFrozen?: boolean;
  /** All marks of a kind so far. */
  marks(kind: FleetMarkKind): Promise<readonly FleetMark[]>;
  /** Kills the engine's server and brings it back, with what it had acknowledged. Absent where there is none. */
  restart?(): Promise<void>;
  /** Ends everything. */
  close(): Promise<void>;
}

/** What the cases' tools are told. */
interface WorkInput {
  readonly ms?: number;
  readonly value?: unknown;
  readonly failures?: number;
  readonly undoMs?: number;
}

const waited = (ms: number, signal: AbortSignal, runtime: Runtime): Promise<boolean> =>
  firstValueFrom(
    merge(runtime.after(ms).pipe(map(() => true)), fromEvent(signal, 'abort').pipe(map(() => false))).pipe(take(1)),
  );

/** `turnId/nodeId`: of a call's key all but the submission, which the cases do not know. */
const nodeKeyOf = ({ callKey }: Pick<ToolContext, 'callKey'>): string => callKey.slice(0, callKey.lastIndexOf('/'));

/** What a worker's calls leave in the world. */
interface Marks {
  readonly mark: (kind: FleetMarkKind, call: Pick<ToolContext, 'callKey'>) => Promise<unknown>;
  /** Only of the first who comes with the key. */
  readonly first: (key: string, kind: FleetMarkKind, call: Pick<ToolContext, 'callKey'>) => Promise<unknown>;
}

const workTool = (worker: string, runtime: Runtime, { mark, first }: Marks): Tool<WorkInput> => ({
  name: 'work',
  policy: {
    effects: 'mutating',
    enforcesKey: true,
    timeoutMs: 60_000,
    retry: { maxTotalTimeMs: 120_000 },
    compensate: { enforcesKey: true },
  },
  execute: async ({ ms = 0, value }, context) => {
    await mark('started', context);
    if (ms > 0 && !(await waited(ms, context.signal, runtime))) {
      await mark('aborted', context);
      throw new ToolExecutionError('canceled', 'it was told to stop');
    }
    await first(context.callKey, 'effect', context);
    return { value: value ?? nodeKeyOf(context), worker };
  },
  compensate: async (_, context) => {
    await mark('undoing', context);
    if (!(await waited(context.input.undoMs ?? 0, context.signal, runtime))) throw new Error('it was told to stop');
    await first(context.undoKey, 'undone', context);
  },
});

const flakyTool = (worker: string, { mark }: Marks): Tool<WorkInput> => ({
  name: 'flaky',
  policy: {
    effects: 'read',
    timeoutMs: 60_000,
    retry: { initialDelayMs: 1_500, maxDelayMs: 1_500, jitterPercent: 0, maxAttempts: 4, maxTotalTimeMs: 60_000 },
  },
  execute: async ({ failures = 1 }, context) => {
    await mark('started', context);
    if (context.attempt <= failures)
      throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET', executed: false });
    return { attempt: context.attempt, worker };
  },
});

const refuse: Tool<WorkInput> = {
  name: 'refuse',
  policy: { effects: 'read', retry: { maxAttempts: 1 } },
  execute: () => {
    throw new ToolExecutionError('execution_error', 'it is never done', { status: 422, executed: false });
  },
};

/**
 * The tools that a worker of the cases serves. `work` takes a while and has an effect, once for each key, which it can
 * undo; `flaky` fails a few times before it works; `refuse` never does.
 *
 * @param world the world outside, which all workers share
 * @param worker the worker's name
 * @param runtime the worker's clock and timers
 */
export function fleetConformanceTools(
  world: FleetWorld,
  worker: string,
  runtime: Runtime = liveRuntime,
): readonly AnyTool[] {
  const of = (call: Pick<ToolContext, 'callKey'>): FleetMark => ({
    key: nodeKeyOf(call),
    worker,
    atMs: runtime.wallNow(),
  });
  const marks: Marks = {
    mark: (kind, call) => world.mark(kind, of(call)),
    first: (key, kind, call) => world.first(key, kind, of(call)),
  };
  return [workTool(worker, runtime, marks), flakyTool(worker, marks), refuse] as readonly AnyTool[];
}
