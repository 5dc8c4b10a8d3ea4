import fc from 'fast-check';
import { Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type NodeState, type PlanNode, type TurnResult } from '../../src/index.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/index.ts';

/** A turn against a model of a page: which nodes run and how each ends, whatever order their tools answer in. */
const DEADLINE_MS = 100;

interface Shape {
  readonly concurrency: number;
  /** By node: which of the nodes before it it needs, and what becomes of it when one of them has no value. */
  readonly nodes: ReadonlyArray<{ readonly needs: readonly boolean[]; readonly optional: boolean; readonly hasDefault: boolean }>;
}

const idOf = (place: number): string => `n${place}`;
const needsOf = ({ nodes }: Shape, place: number): number[] => Array.from({ length: place }, (_, need) => need).filter((need) => nodes[place]?.needs[need] === true);

class Model {
  readonly shape: Shape;
  readonly states: Array<NodeState | 'running' | undefined>;
  readonly stoodIn: boolean[];
  readonly ready: number[] = [];
  nowMs = 0;

  constructor(shape: Shape) {
    this.shape = shape;
    this.states = shape.nodes.map(() => undefined);
    this.stoodIn = shape.nodes.map(() => false);
    this.#advance();
  }

  get running(): number[] {
    return this.states.flatMap((state, place) => (state === 'running' ? [place] : []));
  }

  get over(): boolean {
    return this.states.every((state) => state !== undefined && state !== 'running');
  }

  answers(place: number, good: boolean): void {
    this.states[place] = good ? (this.stoodIn[place] === true ? 'defaulted' : 'succeeded') : 'failed';
    this.#advance();
  }

  cut(state: 'timed_out' | 'canceled'): void {
    this.states.forEach((now, place) => {
      if (now === undefined || now === 'running') this.states[place] = state;
    });
  }

  /** What has become ready starts in the order in which it did, while there are places. */
  #advance(): void {
    for (;;) {
      this.shape.nodes.forEach((_, place) => {
        const settled = needsOf(this.shape, place).every((need) => this.states[need] !== undefined && this.states[need] !== 'running');
        if (settled && this.states[place] === undefined && !this.ready.includes(place)) this.ready.push(place);
      });
      // One at a time: a skip makes others ready before the next one is looked at.
      const next = this.running.length < this.shape.concurrency ? this.ready.shift() : undefined;
      if (next === undefined) return;
      this.#arrives(next);
    }
  }

  #arrives(place: number): void {
    const node = this.shape.nodes[place];
    const lacks = needsOf(this.shape, place).some((need) => this.states[need] !== 'succeeded' && this.states[need] !== 'defaulted');
    if (lacks && node?.hasDefault !== true) this.states[place] = 'skipped';
    else {
      this.stoodIn[place] = lacks;
      this.states[place] = 'running';
    }
  }
}

class Real {
  readonly runtime: VirtualRuntime = virtualRuntime();
  readonly caller: AbortController = new AbortController();
  readonly answers = new Map<number, Subject<string>>();
  result: TurnResult | undefined;

  constructor(shape: Shape) {
    const work = tool({
      name: 'work',
      policy: { breaker: false, retry: { maxAttempts: 1 } },
      execute: (place: unknown) => {
        const answer = new Subject<string>();
        this.answers.set(Number(place), answer);
        return answer;
      },
    });
    const nodes = shape.nodes.map(({ optional, hasDefault }, place): PlanNode => {
      const needs = needsOf(shape, place).map(idOf);
      // A default on a node without needs is refused.
      return { id: idOf(place), tool: 'work', input: place, needs, optional, ...(hasDefault && needs.length > 0 ? { default: 'none' } : {}) };
    });
    createSpillway({ tools: [work], runtime: this.runtime })
      .turn(plan.from(nodes, { timeoutMs: DEADLINE_MS, concurrency: shape.concurrency, onDeadline: 'abort' }), { signal: this.caller.signal })
      .subscribe((event) => {
        if (event.source === 'turn' && event.type === 'settled') this.result = event.result;
      });
  }

  agrees(model: Model): void {
    const started = [...this.answers.keys()];
    expect(started.filter((place) => model.states[place] === 'running').toSorted((a, b) => a - b)).toStrictEqual(model.running);
    expect(started.filter((place) => model.states[place] === undefined || model.states[place] === 'skipped')).toStrictEqual([]);
    expect(this.result?.nodes.map(({ state }) => state)).toStrictEqual(model.over ? model.states : undefined);
    if (model.over) expect(this.runtime.pending).toBe(0);
  }
}

type Command = fc.AsyncCommand<Model, Real>;
const command = (name: string, run: (model: Model, real: Real) => Promise<void> | void): Command => ({
  check: ({ over }) => !over,
  run: async (model, real) => {
    await run(model, real);
    real.agrees(model);
  },
  toString: () => name,
});
const settles = (pick: number, good: boolean): Command =>
  command(`${good ? 'succeed' : 'fail'} ${pick}`, (model, real) => {
    const place = model.running[pick % Math.max(1, model.running.length)];
    if (place === undefined) return;
    const pending = real.answers.get(place);
    model.answers(place, good);
    if (good) {
      pending?.next('done');
      pending?.complete();
    } else pending?.error(Object.assign(new Error('no'), { status: 404 }));
  });
const pass = (ms: number): Command =>
  command(`pass ${ms}`, async (model, real) => {
    model.nowMs += ms;
    if (model.nowMs >= DEADLINE_MS) model.cut('timed_out');
    await real.runtime.advance(ms);
  });
const cancel = command('cancel', (model, real) => {
  model.cut('canceled');
  real.caller.abort();
});

const shape: fc.Arbitrary<Shape> = fc.record({
  concurrency: fc.constantFrom(1, 2, 100),
  nodes: fc.array(fc.record({ needs: fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), optional: fc.boolean(), hasDefault: fc.boolean() }), { minLength: 1, maxLength: 6 }),
});
const answered = fc.tuple(fc.nat({ max: 5 }), fc.boolean()).map(([pick, good]) => settles(pick, good));
const commands = fc.commands([answered, answered, answered, answered, fc.constantFrom(0, 20, 50).map(pass), fc.constant(cancel)], { maxCommands: 16 });

it('R-5 a turn does what its model does', async () => {
  const law = fc.asyncProperty(shape, commands, async (given, run) => {
    const setup = (): { model: Model; real: Real } => ({ model: new Model(given), real: new Real(given) });
    await fc.asyncModelRun(setup, run);
  });
  await fc.assert(law, { numRuns: 400 });
}, 60_000);
