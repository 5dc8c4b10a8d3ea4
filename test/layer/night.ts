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
import type { DedupeStore } from '../../src/contract/store.ts';
import { NamedCalls } from './named-calls.ts';

export const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SWITCH = 'TOOL_RELIABILITY_ENABLED';
const reset = (): Error => Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' });
const busy = (ms: number): Error =>
  Object.assign(new Error('too many requests'), { status: 429, headers: { 'retry-after': String(ms / 1_000) } });
const retry = { maxAttempts: 3, initialDelayMs: 100, jitterPercent: 0, maxTotalTimeMs: 60_000 } as const;

/** A store that can stop to answer. */
const failing = (store: DedupeStore): { readonly store: DedupeStore; lost: boolean } => {
  const state = {
    lost: false,
    store: new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]): unknown => {
          if (state.lost) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
          return Reflect.apply(member, target, given);
        };
      },
    }),
  };
  return state;
};

/** A night of ten thousand calls, of which some were of interest; each has a name of ours. */
export class Night extends NamedCalls {
  readonly #behaviours = new Map<string, (attempt: number, context: ToolContext) => unknown>();
  readonly world: ReturnType<typeof failing> = failing(memoryStore({ runtime: this.runtime, sweepMs: Infinity }));
  readonly spillway: Spillway;
  /** Another process, whose calls have a budget. */
  readonly desk: Spillway;
  /** By the names of calls, what each tool was asked. */
  readonly runs: string[] = [];

  constructor() {
    super(11);
    const read: ToolPolicy = { effects: 'read', retry, timeoutMs: 20_000 };
    const once = { ...retry, maxAttempts: 1 };
    const mutating: ToolPolicy = { effects: 'mutating', retry: once, timeoutMs: 1_000 };
    const breaker = { failureThreshold: 3, failureRate: Infinity, cooldownMs: 30_000, successThreshold: 1 };
    const tools = [
      this.#tool('search', read),
      this.#tool('fares', { ...read, breaker }),
      this.#tool('quote', { ...read, retry: once, breaker: false, alternatives: ['quote_b', 'quote_c'] }),
      this.#tool('quote_b', { ...read, retry: once }),
      this.#tool('quote_c', { ...read, retry: once }),
      this.#tool('summarize', { ...read, cost: 0.5 }),
      this.#tool('book', { ...mutating, compensate: { tool: 'unbook', input: {} } }),
      this.#tool('unbook', mutating),
      this.#tool('charge', {
        ...mutating,
        verify: { tool: 'ledger', input: {}, done: { path: 'found', equals: true } },
      }),
      this.#tool('ledger', { ...read, retry: once }),
      this.#tool('transfer', { ...mutating, retry, enforcesKey: true }, true),
    ];
    const approvals = createApprovals({
      ask: ({ input }) =>
        firstValueFrom(
          this.runtime.after(20_000).pipe(
            map(() => {
              const isFine = (input as { order: string }).order !== 'too much';
              return { approved: isFine, by: 'Grace', ...(isFine ? {} : { reason: 'more than the order' }) };
            }),
          ),
        ),
    });
    this.desk = createSpillway({
      runtime: this.runtime,
      tools,
      store: memoryStore({ runtime: this.runtime, sweepMs: Infinity }),
      budget: createBudget({ usd: 2, per: 'tenant' }),
    });
    this.spillway = createSpillway({
      runtime: this.runtime,
      tools,
      store: this.world.store,
      approvals,
      retryBudget: false,
      hooks: {
        prepareCall: ({ input }) =>
          (input as { order?: string }).order === 'blocked' ? { block: 'this customer is suspended' } : undefined,
      },
    });
  }

  #tool(name: string, policy: ToolPolicy, needsApproval = false): AnyTool {
    return tool({
      name,
      policy,
      ...(needsApproval ? { needsApproval } : {}),
      execute: (input: unknown, context: ToolContext) => {
        const { order = name } = (input ?? {}) as { readonly order?: string };
        this.runs.push(`${name} ${order}`);
        const behave = this.#behaviours.get(`${name} ${order}`) ?? this.#behaviours.get(order);
        return behave === undefined ? this.after(5, order) : behave(context.attempt, context);
      },
    });
  }

  does(order: string, behave: (attempt: number, context: ToolContext) => unknown): void {
    this.#behaviours.set(order, behave);
  }

  begin(
    order: string,
    toolName: string,
    more: Partial<ToolCallRequest> = {},
    spillway: Spillway = this.spillway,
  ): void {
    const result$ = spillway.execute({ toolName, input: { order }, ...more });
    void result$.then((result) => this.results.set(order, result));
  }
}

/** Calls all along: most go well, some at the second attempt. */
export const traffic = async (night: Night, calls: number): Promise<void> => {
  for (let n = 0; n < calls; n++) {
    const order = `plain ${night.results.size} ${n}`;
    if (n % 50 === 0) night.does(order, (attempt) => (attempt === 1 ? Promise.reject(reset()) : 'ok'));
    night.begin(order, 'search');
    if (n % 100 === 99) await night.pass(200);
  }
  await night.pass(1_000);
};

export const incidents = async (night: Night): Promise<void> => {
  const { spillway } = night;
  // A person, a failure, and a wait that the tool asked for: 31 seconds.
  night.does('long', (attempt) =>
    attempt === 1 ? night.after(1_000, 0).then(() => Promise.reject(busy(9_000))) : night.after(1_000, 'ok'),
  );
  night.begin('long', 'transfer', { idempotencyKey: 'k1' });
  await night.pass(21_500);
  night.begin('second', 'transfer', { idempotencyKey: 'k1', input: { order: 'long' } });
  await night.pass(15_000);
  night.begin('third', 'transfer', { idempotencyKey: 'k1', input: { order: 'long' } });
  night.begin('too much', 'transfer');
  await night.pass(25_000);
  // Three failures in a row open the breaker of `fares`, while a fourth call waits for its retry.
  night.does('patient', (attempt) => Promise.reject(attempt === 1 ? busy(5_000) : reset()));
  for (const order of ['fare 1', 'fare 2'])
    night.does(order, () => Promise.reject(Object.assign(reset(), { retryAfterMs: 1 })));
  night.begin('patient', 'fares', { traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01` });
  await night.pass(100);
  night.begin('fare 1', 'fares', { traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` });
  await night.pass(10);
  night.begin('fare 2', 'fares');
  await night.pass(10_000);
  // Of two alternatives the first is closed to all.
  await spillway.orderBreakers('force_open', { tool: 'quote_b' });
  night.does('quote elsewhere', () => Promise.reject(reset()));
  night.does('quote_c elsewhere', () => 'a quote');
  night.begin('elsewhere', 'quote');
  await night.pass(1_000);
  // A tenant spends its two dollars.
  night.does('dear', (_, { usage }) => {
    usage?.({ usd: 1.6 });
    return 'long text';
  });
  for (const order of ['dear', 'cheap', 'refused']) {
    night.begin(order, order === 'cheap' ? 'search' : 'summarize', { tenant: 'acme' }, night.desk);
    await night.pass(100);
  }
  night.begin('blocked', 'search');
  // In doubt, and looked into.
  night.does('doubtful', () => new Promise(() => undefined));
  night.does('ledger', () => ({ found: true }));
  night.begin('doubtful', 'charge');
  await night.pass(10_000);
  // The switch is thrown for ten calls.
  vi.stubEnv(SWITCH, 'false');
  for (let n = 0; n < 10; n++) {
    night.begin(`bare ${n}`, 'search');
    await night.pass(100);
  }
  vi.unstubAllEnvs();
  // The store is away.
  night.world.lost = true;
  night.begin('unstored', 'search', { idempotencyKey: 'k2' });
  await night.pass(7_000);
  night.world.lost = false;
  night.begin('stored', 'search', { idempotencyKey: 'k3' });
  await night.pass(1_000);
};

export const turns = async (night: Night): Promise<void> => {
  const { spillway } = night;
  const run = (
    turnId: string,
    nodes: Parameters<typeof plan.from>[0],
    options: Parameters<typeof plan.from>[1] = {},
  ): void => void lastValueFrom(spillway.turn(plan.from(nodes, options), { turnId }));
  const node = (id: string, name: string, order: string, needs: readonly string[] = []) => ({
    id,
    tool: name,
    input: { order },
    needs,
  });
  night.does('gone', () => Promise.reject(Object.assign(new Error('no such place'), { status: 404 })));
  night.does('slow', () => night.after(3_000, 'slow'));
  run('early', [
    node('place', 'search', 'gone'),
    node('route', 'search', 'r', ['place']),
    node('map', 'search', 'm', ['route']),
  ]);
  run('narrow', [node('a', 'search', 'slow'), node('b', 'search', 'slow'), node('c', 'search', 'c')], {
    concurrency: 2,
  });
  run('late', [node('a', 'search', 'slow'), node('b', 'search', 'b')], { timeoutMs: 1_000 });
  night.does('declined', () => Promise.reject(Object.assign(new Error('declined'), { status: 402 })));
  let unbooked = 0;
  night.does('unbook', () =>
    ++unbooked === 1 ? 'gone' : Promise.reject(Object.assign(new Error('too late'), { status: 409 })),
  );
  run(
    'undone',
    [node('hotel', 'book', 'h'), node('car', 'book', 'c2', ['hotel']), node('pay', 'transfer', 'declined', ['car'])],
    { onFailure: 'compensate' },
  );
  await night.pass(60_000);
};
