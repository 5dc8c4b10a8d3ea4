import fc from 'fast-check';
import { NEVER, Observable, type Subscription } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import * as spillway from 'spillway';
import type { BreakerOptions, PlanNode, RetryPolicy, Runtime, TurnEvent, TurnResult } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { it } from 'vitest';
import { counting } from '../support.ts';
import { behaviour, guards, meaningOf, nameOf, nameOfMessage, working, type Behaviour } from './attempts.ts';
import { call } from './reference/call.ts';
import { createBreaker } from './reference/breaker.ts';
import type { Node, Settled } from './reference/shapes.ts';
import { turn } from './reference/turn.ts';
import { expectToBeSeen, expectToHold, type Law } from './law.ts';
import { plantedIn } from './planted.ts';
import { IN_TURN } from './plants.ts';

interface Planned {
  /** Which of the nodes before it it needs. */
  readonly needs: readonly boolean[];
  readonly optional: boolean;
  readonly hasDefault: boolean;
  readonly tool: 'search' | 'book';
  /** Its attempts, over and over. */
  readonly attempts: readonly Behaviour[];
}
interface Scenario {
  readonly nodes: readonly Planned[];
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly onDeadline: 'detach' | 'abort';
  readonly cancelMs: number | undefined;
  readonly by: 'leaving' | 'signal';
  readonly policy: {
    readonly timeoutMs: number;
    readonly retry: Partial<RetryPolicy>;
    readonly breaker: BreakerOptions;
  };
  readonly seed: number;
}

const NODES_MAX = 7;
const node: fc.Arbitrary<Planned> = fc.record({
  needs: fc.array(fc.constantFrom(true, false, false), { minLength: NODES_MAX, maxLength: NODES_MAX }),
  optional: fc.boolean(),
  hasDefault: fc.boolean(),
  tool: fc.constantFrom('search', 'book'),
  attempts: fc.array(behaviour, { minLength: 1, maxLength: 3 }),
});
const scenario: fc.Arbitrary<Scenario> = fc.record({
  nodes: fc.array(node, { minLength: 1, maxLength: NODES_MAX, size: 'max' }),
  timeoutMs: fc.constantFrom(50, 100, 150, 400, 10_000),
  concurrency: fc.constantFrom(1, 2, 100),
  onDeadline: fc.constantFrom('detach', 'abort'),
  cancelMs: fc.option(fc.constantFrom(0, 20, 100, 150), { nil: undefined, freq: 4 }),
  by: fc.constantFrom('leaving', 'signal'),
  policy: fc.record(guards),
  seed: fc.nat(),
});

const needsOf = ({ nodes }: Scenario, place: number): number[] =>
  Array.from({ length: place }, (_, need) => need).filter((need) => nodes[place]?.needs[need] === true);
const idOf = (place: number): string => `n${place}`;
const DEFAULT = 'a default';

/** What can be seen of a run, told to a log as `instant what`. */
interface World {
  readonly runtime: Runtime;
  readonly log: (what: string) => void;
  /** What a node's tool does, attempt by attempt. */
  readonly work: (place: number, input: unknown, signal: AbortSignal) => Observable<unknown>;
  readonly hasRun: (place: number) => boolean;
  readonly aborted$: Observable<unknown>;
}
type Way = (given: Scenario, world: World) => Observable<unknown>;

const byReference: Way = (given, { runtime, log, work, hasRun, aborted$ }) => {
  const { timeoutMs, concurrency, onDeadline, policy } = given;
  const breakers = { search: createBreaker(policy.breaker, runtime), book: createBreaker(policy.breaker, runtime) };
  for (const [name, { type$ }] of Object.entries(breakers)) type$.subscribe((type) => log(`${name} is ${type}`));
  const nodes = given.nodes.map(({ optional, hasDefault, tool }, place): Node => {
    const needs = needsOf(given, place);
    return {
      needs,
      optional,
      default: hasDefault && needs.length > 0 ? DEFAULT : undefined,
      hasRun: () => hasRun(place),
      call: (values, deadlineMs) => {
        const input = { place, values: Object.fromEntries(needs.map((need, index) => [idOf(need), values[index]])) };
        return call(
          (signal) => work(place, input, signal),
          { ...policy, breaker: breakers[tool], read: meaningOf, deadlineMs },
          runtime,
        );
      },
    };
  });
  const told = ({ index, state }: Settled): void => log(`${idOf(index)} ${state}`);
  return new Observable((subscriber) => {
    const worded = ({
      status,
      executedTools,
      nodes: settled,
    }: {
      readonly status: string;
      readonly executedTools: number;
      readonly nodes: readonly Settled[];
    }): string =>
      JSON.stringify([
        status,
        executedTools,
        settled.map(({ state, outcome }) => [
          state,
          outcome && (outcome.error === undefined ? [outcome.value] : nameOf(outcome.error)),
        ]),
      ]);
    return turn(nodes, { timeoutMs, concurrency, onDeadline, aborted$, told }, runtime).subscribe((result) =>
      subscriber.next(worded(result)),
    );
  });
};

/** What makes a layer, and the plan that brings along what runs its turn. */
type Made = Pick<typeof spillway, 'createSpillway' | 'plan'>;

const byLayer =
  ({ createSpillway, plan }: Made): Way =>
  (given, { runtime, log, work, aborted$ }) => {
    const { timeoutMs, concurrency, onDeadline, policy } = given;
    const execute = (
      { place, ...input }: { readonly place: number },
      { signal }: { readonly signal: AbortSignal },
    ): Observable<unknown> => work(place, { place, ...input }, signal);
    const layer = createSpillway({
      runtime,
      retryBudget: false,
      tools: ['search', 'book'].map((name) => ({ name, policy, execute: execute as never })),
    });
    for (const name of ['search', 'book'])
      layer.breakers.get(name).state$.subscribe(({ type }) => log(`${name} is ${type}`));
    const nodes = given.nodes.map(({ optional, hasDefault, tool }, place): PlanNode => {
      const needs = needsOf(given, place).map(idOf);
      // A default on a node without needs is refused.
      return {
        id: idOf(place),
        tool,
        needs,
        optional,
        input: (values: unknown) => ({ place, values }),
        ...(hasDefault && needs.length > 0 ? { default: DEFAULT } : {}),
      };
    });
    const worded = ({ status, executedTools, nodes: settled }: TurnResult): string =>
      JSON.stringify([
        status,
        executedTools,
        settled.map(({ state, result }) => [
          state,
          result &&
            (result.error === undefined
              ? [result.output?.content]
              : nameOfMessage(result.error.message, result.error.code)),
        ]),
      ]);
    return new Observable((subscriber) => {
      const caller = new AbortController();
      subscriber.add(aborted$.subscribe(() => caller.abort()));
      const hear = (event: TurnEvent): void => {
        if (event.source !== 'turn') return;
        if (event.type === 'node_settled') log(`${event.nodeId} ${event.state}`);
        if (event.type === 'settled') subscriber.next(worded(event.result));
      };
      subscriber.add(
        layer.turn(plan.from(nodes, { timeoutMs, concurrency, onDeadline }), { signal: caller.signal }).subscribe(hear),
      );
    });
  };

const observe = (given: Scenario, way: Way): readonly string[] => {
  const seen: string[] = [];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(({ flush }) => {
    const runtime = counting(runtimeOn(scheduler, given.seed));
    const log = (what: string): void => void seen.push(`${runtime.now()} ${what}`);
    const attempts = new Map<number, number>();
    const work = (place: number, input: unknown, signal: AbortSignal): Observable<unknown> => {
      const attempt = attempts.get(place) ?? 0;
      attempts.set(place, attempt + 1);
      const name = `${idOf(place)}.${attempt}`;
      log(`attempt ${name} starts with ${JSON.stringify(input)}`);
      signal.addEventListener('abort', () => log(`attempt ${name} is aborted`));
      const all = given.nodes[place]?.attempts ?? [];
      return working(all[attempt % all.length] as Behaviour, name, { runtime, log });
    };
    const canceled$ = given.cancelMs === undefined ? NEVER : runtime.after(given.cancelMs);
    const bySignal = given.by === 'signal';
    const world: World = {
      runtime,
      log,
      work,
      hasRun: (place) => attempts.has(place),
      aborted$: bySignal ? canceled$ : NEVER,
    };
    const subscription: Subscription = way(given, world).subscribe((result) => log(`settled: ${String(result)}`));
    if (!bySignal) canceled$.subscribe(() => subscription.unsubscribe());
    flush();
    seen.push(`${runtime.timers} timers left, next die ${runtime.random()}`);
  });
  return seen;
};

/**
 * What happens at one instant, one thing after the other: no rule says in which order the nodes of a turn act that act
 * at the same instant. Each node keeps its own order, as does what is no node's.
 */
const byThing = (lines: readonly string[]): readonly string[] =>
  [...Map.groupBy(lines, (line) => line.split(' ')[0]).values()].flatMap((instant) =>
    [...Map.groupBy(instant, (line) => /\bn\d+\b/.exec(line.slice(0, 24))?.[0] ?? '')]
      .toSorted(([one], [other]) => one.localeCompare(other))
      .flatMap(([, own]) => own),
  );

const law =
  (made: Made): Law<Scenario> =>
  (given) => ({
    actual: { turn: byThing(observe(given, byLayer(made))) },
    expected: byThing(observe(given, byReference)),
  });
const ENDS = [
  'timed_out',
  'canceled',
  'skipped',
  'defaulted',
  'is aborted',
  'is open',
  '"completed"',
  '"partial"',
  '"escalated"',
  '"failed"',
];

it('R-5 R-4.4 a turn is the join of its nodes until its deadline, in states, values, instants and result', () => {
  expectToHold(scenario, law(spillway), ENDS);
}, 240_000);

it.each(IN_TURN)('R-5 the law of turns sees a mistake: $mistake', async (plant) => {
  const planted = (await import(/* @vite-ignore */ plantedIn('index.ts', plant))) as Made;
  expectToBeSeen(scenario, law(planted));
});
