import { firstValueFrom, lastValueFrom, map } from 'rxjs';
import {
  createSpillway,
  plan,
  tool,
  type AnyTool,
  type Spillway,
  type ToolCallRequest,
  type ToolContext,
  type ToolPolicy,
} from 'spillway';
import { createApprovals, createBudget } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { vi } from 'vitest';
import { NamedCalls } from './named-calls.ts';

const reset = (): Error => Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' });
const gone = (status = 404): Error => Object.assign(new Error('it is not there'), { status });
const never = (): Promise<never> => new Promise(() => undefined);
type Order = { readonly order?: string };
type Behaviour = (context: ToolContext) => unknown;

/** A shift of two processes over one store; each call of interest has a name of ours, its order. */
export class Duty extends NamedCalls {
  readonly here: Spillway;
  readonly there: Spillway;
  readonly #behaviours = new Map<string, Behaviour>();
  #place = 0;

  constructor() {
    super(23);
    const store = memoryStore({ runtime: this.runtime, sweepMs: Infinity });
    const approvals = createApprovals({
      ask: ({ input }) => {
        const minutes = (input as Order).order === 'slow to ask' ? 2 : 1;
        return firstValueFrom(this.runtime.after(minutes * 60_000).pipe(map(() => ({ approved: true, by: 'Ada' }))));
      },
    });
    this.here = createSpillway({
      runtime: this.runtime,
      store,
      approvals,
      tools: this.#tools(),
      retryBudget: false,
      budget: createBudget({ usd: 2, per: 'tenant' }),
      guidance: [{ when: { tools: ['guided'] }, forbid: ['alternative'], reason: 'the backup costs too much' }],
      hooks: {
        prepareCall: ({ input }) => {
          const { order } = (input ?? {}) as Order;
          if (order === 'reworded') return { input: { order: 'plain' } };
          return order === 'held by a hook' ? never() : undefined;
        },
        beforeToolCall: ({ toolName }) => (toolName === 'fenced' ? { block: 'not tonight' } : undefined),
      },
    });
    this.there = createSpillway({ runtime: this.runtime, store, tools: this.#tools(), retryBudget: false });
  }

  #tools(): AnyTool[] {
    const once = { maxAttempts: 1 };
    const read: ToolPolicy = { effects: 'read', retry: once, timeoutMs: 20_000, breaker: false };
    const slowly = { maxAttempts: 4, initialDelayMs: 1_000, maxDelayMs: 60_000, maxTotalTimeMs: 9_000 };
    const ramp = { failureThreshold: 1, cooldownMs: 10_000, successThreshold: 1, rampMs: 60_000 };
    const find = { tool: 'ledger', input: {}, done: { path: 'found', equals: true } };
    return [
      this.#tool('search', read),
      this.#tool('patient', { ...read, retry: { ...slowly, jitterPercent: 20 } }),
      this.#tool('guided', { ...read, alternatives: ['search'] }),
      this.#tool('fenced', { ...read, alternatives: ['search'] }),
      this.#tool('charge', { ...read, effects: 'mutating', alternatives: ['search'] }),
      this.#tool('rates', { ...read, breaker: ramp }),
      this.#tool('stream', { ...read, idleTimeoutMs: 500, timeoutMs: 2_000 }),
      this.#tool('wire', { ...read, effects: 'mutating' }, true),
      this.#tool('pay', { ...read, effects: 'mutating', timeoutMs: 1_000, verify: find }),
      this.#tool('ledger', read),
      this.#tool('summarize', { ...read, cost: 0.5 }),
      this.#tool('book', { ...read, effects: 'mutating', compensate: { tool: 'unbook', input: {} } }),
      this.#tool('unbook', { ...read, effects: 'mutating', retry: slowly }),
    ];
  }

  #tool(name: string, policy: ToolPolicy, needsApproval = false): AnyTool {
    return tool({
      name,
      policy,
      ...(needsApproval ? { needsApproval } : {}),
      execute: (input: unknown, context: ToolContext) => {
        const { order = name } = (input ?? {}) as Order;
        return this.#behaviours.get(order)?.(context) ?? this.after(5, order);
      },
    });
  }

  does(order: string, behave: Behaviour): void {
    this.#behaviours.set(order, behave);
  }

  begin(order: string, toolName: string, more: Partial<ToolCallRequest> = {}, layer: Spillway = this.here): void {
    const name = this.results.has(order) ? `${order} ${++this.#place}` : order;
    void layer.execute({ toolName, input: { order }, ...more }).then((result) => this.results.set(name, result));
  }

  run(turnId: string, nodes: Parameters<typeof plan.from>[0], options: Parameters<typeof plan.from>[1] = {}): void {
    void lastValueFrom(this.here.turn(plan.from(nodes, options), { turnId }), { defaultValue: undefined });
  }

  /** What is loaded with the first call takes real time, in which nothing else happens. */
  async warmUp(): Promise<void> {
    for (const toolName of ['search', 'stream']) this.begin(`first ${toolName}`, toolName);
    await vi.waitFor(async () => {
      await this.pass(5);
      return [this.id('first search'), this.id('first stream')];
    });
  }

  async traffic(calls: number): Promise<void> {
    for (let n = 0; n < calls; n++) {
      const order = `plain ${this.results.size} ${n}`;
      if (n % 50 === 0) this.does(order, () => Promise.reject(gone()));
      this.begin(order, 'search', { tenant: n % 2 === 0 ? 'acme' : 'zeta' });
      if (n % 100 === 99) await this.pass(200);
    }
    await this.pass(1_000);
  }

  /** What an on-call engineer will ask about. */
  async failures(): Promise<void> {
    this.does('no guide', () => Promise.reject(gone()));
    this.does('in doubt', () => Promise.reject(reset()));
    this.begin('no guide', 'guided');
    this.begin('no gate', 'fenced');
    this.begin('in doubt', 'charge');
    this.does('gives up', () => Promise.reject(reset()));
    this.begin('gives up', 'patient');
    this.does('silent', never);
    this.does('slow', async (context) => {
      for (let n = 1; ; n++) {
        await this.after(400, n);
        context.progress({ progress: n });
      }
    });
    this.begin('silent', 'stream');
    this.begin('slow', 'stream');
    await this.pass(30_000);
    this.does('opens it', () => Promise.reject(reset()));
    this.does('probes it', () => this.after(1_000, 'well'));
    this.begin('opens it', 'rates');
    await this.pass(10);
    this.begin('while open', 'rates');
    await this.pass(10_000);
    this.begin('probes it', 'rates');
    await this.pass(10);
    this.begin('while probed', 'rates');
    await this.pass(1_000);
    for (let n = 0; n < 10; n++) this.begin(`while ramping ${n}`, 'rates');
    await this.pass(100_000);
    await this.here.orderBreakers('force_open', { tool: 'rates' });
    for (let n = 0; n < 3; n++) this.begin(`ordered away ${n}`, 'rates');
    await this.pass(5_000);
    await this.here.orderBreakers('reset', { tool: 'rates' });
    this.does('opens for zeta', () => Promise.reject(reset()));
    this.begin('opens for zeta', 'rates', { tenant: 'zeta' });
    await this.pass(1_000);
  }

  /** What an auditor will ask about. */
  async keys(): Promise<void> {
    this.does('kept', () => this.after(700, 'done'));
    this.begin('kept', 'search', { idempotencyKey: 'a', session: 's' });
    await this.pass(100);
    this.results.delete('kept again');
    this.begin('kept again', 'search', { idempotencyKey: 'a', session: 's', input: { order: 'kept' } });
    this.begin('kept there', 'search', { idempotencyKey: 'a', session: 's', input: { order: 'kept' } }, this.there);
    await this.pass(5_000);
    this.does('fails', () => Promise.reject(gone()));
    this.begin('fails', 'search', { idempotencyKey: 'b', session: 's' });
    await this.pass(1_000);
    this.begin('fails again', 'search', { idempotencyKey: 'b', session: 's', input: { order: 'fails' } });
    this.begin('reworded', 'search', { toolCallId: 'toolu_1' });
    this.does('doubtful', never);
    this.does('ledger', () => ({ found: true }));
    this.begin('doubtful', 'pay');
    this.does('dear', ({ usage }) => {
      usage?.({ usd: 1.8 });
      return 'text';
    });
    this.begin('dear', 'summarize', { tenant: 'oslo' });
    await this.pass(10_000);
    this.begin('too dear', 'summarize', { tenant: 'oslo' });
    await this.pass(1_000);
  }

  async turns(): Promise<void> {
    const node = (id: string, name: string, order: string, needs: readonly string[] = []) => ({
      id,
      tool: name,
      input: { order },
      needs,
    });
    this.does('takes long', never);
    this.run(
      'cut',
      [
        node('runs', 'search', 'takes long'),
        node('hooked', 'search', 'held by a hook'),
        node('next', 'search', 'plain', ['runs']),
      ],
      { timeoutMs: 1_500, onDeadline: 'abort' },
    );
    await this.pass(5_000);
    this.run('held', [node('ask', 'wire', 'slow to ask'), node('then', 'search', 'plain', ['ask'])], {
      timeoutMs: 90_000,
    });
    await this.pass(200_000);
    let tries = 0;
    this.does('unbook', () => (++tries === 1 ? Promise.reject(gone(503)) : 'undone'));
    this.does('fails for good', () => Promise.reject(gone()));
    this.run('undone', [node('hotel', 'book', 'h'), node('pay', 'search', 'fails for good', ['hotel'])], {
      onFailure: 'compensate',
    });
    await this.pass(60_000);
    this.does('at the end', never);
    this.begin('at the end', 'search');
    await this.pass(1_000);
    await this.here.close();
    await this.there.close();
    await this.pass(10);
  }
}
