import {
  createSpillway,
  plan,
  type DedupeStore,
  type PlanNode,
  type PlanOptions,
  type Spillway,
  type SpillwayOptions,
  type Tool,
  type ToolContext,
  type ToolPolicy,
  type TraceEvent,
  type TurnEvent,
  type TurnOptions,
  type TurnResult,
} from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

export const never = (): Promise<never> => new Promise(() => undefined);
/** Longer than any lease. */
export const DEAD_MS = 200_000;

/** A turn as its subscriber sees it. */
export interface Watched {
  result: TurnResult | undefined;
  readonly leave: () => void;
}

/** A store whose process can die, or which answers otherwise for a while. */
export interface Gated extends DedupeStore {
  dead: boolean;
}

/** What is done by key, as a ledger of `+key` and `-key`, and processes that share a store. */
export class World {
  readonly runtime: VirtualRuntime = virtualRuntime();
  readonly store: DedupeStore;
  readonly ledger: string[] = [];
  readonly trace: TraceEvent[] = [];

  constructor(maxKeys?: number) {
    this.store = memoryStore({ runtime: this.runtime, ...(maxKeys === undefined ? {} : { maxKeys }) });
  }

  /** A tool that books at once; `verify` looks into the ledger. */
  books(name: string, policy: ToolPolicy = {}, more: Partial<Tool<unknown, unknown>> = {}): Tool {
    return {
      name,
      policy: { effects: 'mutating', ...policy },
      execute: (_: unknown, { callKey }: ToolContext) => {
        this.ledger.push(`+${callKey}`);
        return { key: callKey };
      },
      compensate: (_: unknown, { callKey }: { readonly callKey: string }) => {
        this.ledger.push(`-${callKey}`);
      },
      ...more,
    };
  }

  has(key: string): boolean {
    return (
      this.ledger.filter((line) => line === `+${key}`).length > this.ledger.filter((line) => line === `-${key}`).length
    );
  }

  process(tools: readonly Tool[], options: SpillwayOptions = {}): Spillway {
    const layer = createSpillway({ runtime: this.runtime, store: this.store, tools, ...options });
    layer.trace$.subscribe((event) => this.trace.push(event));
    return layer;
  }

  /** The same store, as a process has it that can die. */
  gated(answers: Partial<DedupeStore> = {}): Gated {
    const base = { ...this.store, ...answers };
    const life = { dead: false };
    const asked =
      <A extends readonly unknown[], T>(question: (...given: A) => T) =>
      (...given: A): T | Promise<never> =>
        life.dead ? never() : question(...given);
    return Object.assign(life, {
      get: asked((key: string) => base.get(key)),
      setIfNotExists: asked((...given: Parameters<DedupeStore['setIfNotExists']>) => base.setIfNotExists(...given)),
      compareAndSet: asked((...given: Parameters<DedupeStore['compareAndSet']>) => base.compareAndSet(...given)),
      renew: asked((...given: Parameters<DedupeStore['renew']>) => base.renew(...given)),
      delete: asked((...given: Parameters<DedupeStore['delete']>) => base.delete(...given)),
      byTool: (name: string) => base.byTool(name),
      bySession: (key: string) => base.bySession(key),
      sweep: () => base.sweep(),
    });
  }

  /** A turn that undoes what it did. */
  turn(layer: Spillway, nodes: readonly PlanNode[], options: TurnOptions & PlanOptions = {}): Watched {
    const { timeoutMs = 300_000, leaseMs = 120_000, onDeadline = 'detach', name, ...turnOptions } = options;
    const own = { timeoutMs, leaseMs, onDeadline, ...(name === undefined ? {} : { name }) };
    const planned = plan.from(nodes, { onFailure: 'compensate', ...own });
    const watched: { result: TurnResult | undefined } = { result: undefined };
    const subscription = layer.turn(planned, turnOptions).subscribe((event: TurnEvent) => {
      if (event.source === 'turn' && event.type === 'settled') watched.result = event.result;
    });
    return Object.assign(watched, { leave: () => subscription.unsubscribe() });
  }

  async resume(layer: Spillway, ms = 600_000): ReturnType<Spillway['resume']> {
    const resumed = layer.resume();
    await this.runtime.advance(ms);
    return resumed;
  }
}

/** A tool that is refused, for good. */
export const refused: Tool = {
  name: 'refused',
  policy: { effects: 'mutating' },
  execute: () => {
    throw Object.assign(new Error('no'), { status: 409 });
  },
};

/** A tool that gives nothing, and can be undone. */
export const hanging: Tool = {
  name: 'hanging',
  policy: { effects: 'mutating', timeoutMs: 60_000, compensate: false },
  execute: never,
};

/** Whether a write is that of a turn's journal. */
export const isJournal = ({ payload = '' }: { readonly payload?: string }): boolean => payload.includes('"turnId"');

export const states = ({ nodes }: TurnResult): Record<string, string> =>
  Object.fromEntries(nodes.map(({ id, state }) => [id, state]));
