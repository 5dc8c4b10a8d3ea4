import { lastValueFrom } from 'rxjs';
import {
  createSpillway,
  plan,
  tool,
  type AnyTool,
  type PlanOptions,
  type Spillway,
  type SpillwayOptions,
  type ToolCallEnvelope,
  type ToolCallRequest,
  type ToolContext,
  type ToolPolicy,
} from 'spillway';
import { createApprovals } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import type { DedupeStore } from '../../src/contract/store.ts';
import { NamedCalls } from './named-calls.ts';

type Behaviour = (attempt: number, context: ToolContext) => unknown;
type Nodes = Parameters<typeof plan.from>[0];

export const reset = (): Error => Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' });
export const answered = (status: number, retryAfterMs?: number): Error =>
  Object.assign(new Error(`it answered ${status}`), { status }, retryAfterMs === undefined ? {} : { retryAfterMs });

/** What traffic is made of: numbers in [0, 1) that a seed decides. */
export const drawn = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

const retry = { maxAttempts: 3, initialDelayMs: 100, jitterPercent: 0, maxTotalTimeMs: 60_000 } as const;
const once = { ...retry, maxAttempts: 1 };
const read: ToolPolicy = { effects: 'read', retry, timeoutMs: 5_000, breaker: false };
const mutating: ToolPolicy = { effects: 'mutating', retry, timeoutMs: 1_000, breaker: false };
const RATES_BREAKER = {
  failureThreshold: 3,
  failureRate: Infinity,
  cooldownMs: 5_000,
  cooldownMultiplier: 2,
  cooldownMaxMs: 60_000,
  successThreshold: 1,
} as const;

/** The policies of the house's tools; `errand` is brought along by plans. */
const POLICIES: Readonly<Record<string, ToolPolicy>> = {
  search: read,
  rates: { ...read, retry: once, breaker: RATES_BREAKER },
  quote: { ...read, retry: once, alternatives: ['quote_b'] },
  quote_b: { ...read, retry: once },
  legacy: { ...read, classification: { 503: 'permanent' } },
  pay: mutating,
  wire: { ...mutating, enforcesKey: true },
  refund: { ...mutating, verify: { tool: 'ledger', input: {}, done: { path: 'found', equals: true } } },
  ledger: { ...read, retry: once },
  wipe: { ...mutating, needsApproval: true },
  trial: { ...read, mode: 'shadow' },
  unsaid: { retry, timeoutMs: 5_000, breaker: false },
};

/** Two processes over one store, and what was asked of them; what their tools saw is what answers are held against. */
export class Audit extends NamedCalls {
  readonly east: Spillway;
  readonly west: Spillway;
  /** Which tool ran for which order, when, and until when. */
  readonly runs: Array<{ readonly tool: string; readonly order: string; readonly atMs: number; endMs: number }> = [];
  /** Whose each call of the traffic is. */
  readonly tenants: Map<string, string> = new Map();
  /** West can no longer reach the store: as good as dead to all others. */
  isCutOff = false;
  readonly #behaviours = new Map<string, Behaviour>();

  constructor(seed: number) {
    super(seed);
    const store = memoryStore({ runtime: this.runtime, sweepMs: Infinity });
    const common: SpillwayOptions = {
      runtime: this.runtime,
      tools: Object.entries(POLICIES).map(([name, policy]) => this.tool(name, policy)),
      shareBreakers: true,
      retryBudget: { ratio: 0.05, minPerSecond: 0.5, windowMs: 10_000 },
      approvals: createApprovals({ ask: ({ input }) => this.#decided(input) }),
      hooks: { prepareCall: ({ input }) => this.#prepared(input) },
    };
    this.east = createSpillway({ ...common, store });
    this.west = createSpillway({ ...common, store: this.#cuttable(store) });
  }

  tool(name: string, policy: ToolPolicy): AnyTool {
    const own = { name, policy };
    return tool({ ...own, execute: (input: unknown, context: ToolContext) => this.#run(name, input, context) });
  }

  async #run(name: string, input: unknown, context: ToolContext): Promise<unknown> {
    const { order = name } = (input ?? {}) as { readonly order?: string };
    const run = { tool: name, order, atMs: this.runtime.now(), endMs: Infinity };
    this.runs.push(run);
    const behave = this.#behaviours.get(`${name} ${order}`) ?? this.#behaviours.get(order);
    try {
      return await (behave === undefined ? this.after(5, order) : behave(context.attempt, context));
    } finally {
      run.endMs = this.runtime.now();
    }
  }

  #prepared(input: unknown): Promise<undefined> | { block: string } | undefined {
    const { order = '' } = (input ?? {}) as { readonly order?: string };
    if (order === 'screened' || order === 'screened again') return this.after(4_000, undefined);
    return order === 'embargo' ? { block: 'the country is under embargo' } : undefined;
  }

  #decided(input: unknown): Promise<{ approved: boolean; by: string }> {
    const { order } = input as { readonly order: string };
    return this.after(3_000, { approved: order !== 'wipe it all', by: order.startsWith('wipe a') ? 'Ada' : 'Grace' });
  }

  #cuttable(store: DedupeStore): DedupeStore {
    return new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]): unknown =>
          this.isCutOff ? new Promise(() => undefined) : Reflect.apply(member, target, given);
      },
    });
  }

  does(order: string, behave: Behaviour): void {
    this.#behaviours.set(order, behave);
  }

  /** A call that is known by its order; of several of one order, by what it is called here. */
  begin(
    order: string,
    toolName: string,
    more: Partial<ToolCallRequest> & { readonly as?: string } = {},
    layer: Spillway = this.east,
  ): void {
    const { as = order, ...own } = more;
    void layer.execute({ toolName, input: { order }, ...own }).then((result) => this.results.set(as, result));
  }

  beginEnvelope(order: string, envelope: ToolCallEnvelope): void {
    void this.east.execute(envelope).then((result) => this.results.set(order, result));
  }

  turn(turnId: string, nodes: Nodes, options: PlanOptions = {}): void {
    void lastValueFrom(this.east.turn(plan.from(nodes, options), { turnId }));
  }
}

/** Calls of three tenants, of which one in forty needs a second attempt, and the tenant `loud` three times as often. */
export const traffic = async (audit: Audit, calls: number, draw: () => number): Promise<void> => {
  const tenants = ['calm', 'still', 'loud'] as const;
  for (let n = 0; n < calls; n++) {
    const tenant = tenants[Math.floor(draw() * tenants.length)] ?? 'calm';
    const order = `plain ${audit.results.size} ${n}`;
    if (draw() < (tenant === 'loud' ? 0.045 : 0.015))
      audit.does(order, (attempt) => (attempt === 1 ? Promise.reject(reset()) : 'ok'));
    audit.tenants.set(order, tenant);
    audit.begin(order, 'search', { tenant });
    if (n % 100 === 99) await audit.pass(200);
  }
  await audit.pass(1_000);
};
