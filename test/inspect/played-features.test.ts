import { BehaviorSubject, lastValueFrom } from 'rxjs';
import { createSpillway, plan, tool, ToolExecutionError, type SpillwayOptions, type TraceEvent } from 'spillway';
import { createApprovals, createBudget } from 'spillway/gates';
import { addEvent, emptyTrace, marbleTest } from 'spillway/inspect';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import { ranTests } from '../made-tests.ts';

type Nodes = Parameters<typeof plan.from>[0];
interface Feature {
  readonly tools: (runtime: VirtualRuntime) => NonNullable<SpillwayOptions['tools']>;
  readonly nodes: Nodes;
  readonly options?: SpillwayOptions;
  readonly turn?: Parameters<typeof plan.from>[1];
}

const after = (runtime: VirtualRuntime, ms: number): Promise<string> =>
  new Promise((resolve) => {
    runtime.after(ms).subscribe(() => resolve('fine'));
  });
const failing = (times: number, kind: 'transport_error' | 'not_permitted', uncertain?: true) => {
  let asked = 0;
  return (): string => {
    if (asked++ < times) throw new ToolExecutionError(kind, 'no', uncertain === undefined ? {} : { uncertain });
    return 'fine';
  };
};
const READ = { effects: 'read' } as const;
const retry = {
  strategy: 'constant',
  initialDelayMs: 30,
  jitterPercent: 0,
  maxAttempts: 4,
  maxTotalTimeMs: 900,
} as const;
const slow =
  (name: string, ms: number, timeoutMs = 400) =>
  (runtime: VirtualRuntime) => [
    tool({ name, policy: { ...READ, timeoutMs, retry }, execute: () => after(runtime, ms) }),
  ];

/** A turn of everything that can be in one, each by itself: played again, or refused in words. */
const FEATURES: Readonly<Record<string, Feature>> = {
  retries: {
    tools: () => [tool({ name: 'a', policy: { ...READ, retry }, execute: failing(2, 'transport_error') })],
    nodes: [{ id: 'n', tool: 'a' }],
  },
  timeouts: { tools: slow('a', 1_000, 100), nodes: [{ id: 'n', tool: 'a', optional: true }] },
  alternatives: {
    tools: () => [
      tool({ name: 'a', policy: { ...READ, alternatives: ['b'] }, execute: failing(9, 'not_permitted') }),
      tool({ name: 'b', policy: READ, execute: () => 'fine' }),
    ],
    nodes: [{ id: 'n', tool: 'a' }],
  },
  defaults: {
    tools: () => [
      tool({ name: 'a', policy: READ, execute: failing(9, 'not_permitted') }),
      tool({ name: 'b', policy: READ, execute: () => 'fine' }),
    ],
    nodes: [
      { id: 'n', tool: 'a', optional: true },
      { id: 'm', tool: 'b', needs: ['n'], default: 1 },
      { id: 'skipped', tool: 'b', needs: ['n'], optional: true },
    ],
  },
  concurrency: {
    tools: slow('a', 40),
    nodes: ['x', 'y', 'z'].map((id) => ({ id, tool: 'a' })),
    turn: { concurrency: 1 },
  },
  deadlines: { tools: slow('a', 300), nodes: [{ id: 'n', tool: 'a' }], turn: { timeoutMs: 120, onDeadline: 'detach' } },
  idle: {
    tools: (runtime) => [
      tool({
        name: 'a',
        policy: { ...READ, timeoutMs: 400, idleTimeoutMs: 50, retry },
        execute: () => after(runtime, 200),
      }),
    ],
    nodes: [{ id: 'n', tool: 'a', optional: true }],
  },
  breakers: {
    tools: () => [
      tool({
        name: 'a',
        policy: { ...READ, retry: { ...retry, maxAttempts: 2 }, breaker: { failureThreshold: 2 } },
        execute: failing(99, 'transport_error'),
      }),
    ],
    nodes: [
      { id: 'n', tool: 'a', optional: true },
      { id: 'm', tool: 'a', optional: true, needs: ['n'], default: 1 },
    ],
  },
  invalid: {
    tools: () => [tool({ name: 'a', policy: READ, execute: () => 'fine' })],
    nodes: [{ id: 'n', tool: 'a', optional: true }],
    options: { hooks: { prepareCall: () => ({ block: true, reason: 'not today' }) as never } },
  },
  held: {
    tools: (runtime) => [
      tool({
        name: 'a',
        policy: { ...READ, timeoutMs: 100 },
        execute: async (_, { holdWhile }) => {
          const waiting$ = new BehaviorSubject(true);
          holdWhile?.(waiting$);
          await after(runtime, 300);
          waiting$.next(false);
          return after(runtime, 20);
        },
      }),
    ],
    nodes: [{ id: 'n', tool: 'a' }],
  },
  approvals: {
    tools: () => [tool({ name: 'a', policy: READ, needsApproval: true, execute: () => 'fine' })],
    nodes: [{ id: 'n', tool: 'a' }],
    options: { approvals: createApprovals({ ask: () => ({ approved: true, by: 'Grace' }) }) },
  },
  budgets: {
    tools: () => [tool({ name: 'a', policy: READ, execute: () => 'fine' })],
    nodes: ['x', 'y', 'z'].map((id, index, all) => ({
      id,
      tool: 'a',
      optional: true,
      ...(index === 0 ? {} : { needs: [all[index - 1] ?? ''], default: 1 }),
    })),
    options: { budget: createBudget({ calls: 2, per: 'turn' }) },
  },
  verify: {
    tools: () => [
      tool({
        name: 'a',
        policy: { effects: 'mutating', retry },
        verify: () => 'not_done' as never,
        execute: failing(1, 'transport_error', true),
      }),
    ],
    nodes: [{ id: 'n', tool: 'a' }],
  },
  undoing: {
    tools: () => [
      tool({ name: 'a', policy: { effects: 'mutating' }, compensate: () => 'undone', execute: () => 'done' }),
      tool({ name: 'b', policy: READ, execute: failing(9, 'not_permitted') }),
    ],
    nodes: [
      { id: 'n', tool: 'a' },
      { id: 'm', tool: 'b', needs: ['n'] },
    ],
    turn: { onFailure: 'compensate' },
  },
  keys: {
    tools: (runtime) => slow('a', 40)(runtime),
    nodes: [
      { id: 'n', tool: 'a', idempotencyKey: 'one' },
      { id: 'm', tool: 'a', idempotencyKey: 'one' },
    ],
  },
};

const made = async ({ tools, nodes, options = {}, turn = {} }: Feature) => {
  const runtime = virtualRuntime();
  const spillway = createSpillway({ ...options, tools: tools(runtime), runtime });
  const trace: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => trace.push(structuredClone(event)));
  const over = lastValueFrom(spillway.turn(plan.from(nodes, turn)));
  await runtime.advance(20_000);
  await over;
  const model = trace.reduce(addEvent, emptyTrace());
  const [told] = model.turns.values();
  if (told === undefined) throw new Error('there is no turn');
  return marbleTest(model, told);
};

it(
  'SEE-5 a turn of each feature becomes a test that passes, and fails with a frame moved, or is refused',
  { timeout: 300_000 },
  async () => {
    const tests = await Promise.all(
      Object.entries(FEATURES).map(async ([name, feature]) => [name, await made(feature)] as const),
    );
    const codes = tests.flatMap(([name, test]) => ('code' in test ? [[name, test.code] as const] : []));
    const refused = Object.fromEntries(
      tests.flatMap(([name, test]) => ('refused' in test ? [[name, test.refused]] : [])),
    );
    expect(refused).toEqual({
      held: 'an attempt of n took longer than its limit, whose clock stood still',
      approvals: 'a person was asked whether n may run',
      verify: expect.stringContaining('was asked, and not only seen') as string,
      undoing: 'what n did was undone',
      keys: expect.stringContaining('was shared with another call') as string,
    });
    const moved = codes.map(([name, code]) => {
      const later = code.replace(/^( {2}\["turn", ")/m, '$11ms ');
      expect(later).not.toBe(code);
      return [`${name}-moved`, later] as const;
    });
    const { passed, failed } = ranTests(Object.fromEntries([...codes, ...moved]));
    expect(passed.toSorted()).toEqual(codes.map(([name]) => name).toSorted());
    expect(failed.toSorted()).toEqual(moved.map(([name]) => name).toSorted());
  },
);
