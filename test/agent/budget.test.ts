import { of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { runAgent, scriptedModel, type ModelEvent, type ModelUsage, type ScriptedStep } from '../../src/agent/index.ts';
import { World, answers, fails, once } from '../call/kit.ts';
import { marbles } from '../marbles.ts';
import { permanent } from '../support.ts';
import { asked, ran, resultOf, typed } from './kit.ts';

/** A step that reports its tokens, and calls a tool unless it is the last. */
const using = (usage: ModelUsage, name?: string): ModelEvent[] => [
  { type: 'usage', usage },
  ...(name === undefined
    ? [{ type: 'text', text: 'Done.' } as const]
    : [{ type: 'tool_call', id: '', name, input: {} } as const]),
  { type: 'stop', reason: name === undefined ? 'end' : 'tool_calls' },
];

const usd = ({ inputTokens = 0, outputTokens = 0 }: ModelUsage): number => (inputTokens * 3 + outputTokens * 15) / 1e6;

describe('R-12.3 a budget of tokens and of money ends a run', () => {
  it(
    'R-12.3 once the tokens are used the model is not asked again; the calls of its last answer are made and answered',
    marbles((m) => {
      const world = new World(m);
      const search = world.scripted('search', [answers(1)]);
      const script = [
        using({ inputTokens: 60, outputTokens: 10 }, 'search'),
        using({ inputTokens: 25, outputTokens: 5 }, 'search'),
        using({ inputTokens: 1 }),
      ];
      const run = ran(world, script, [search], { limits: { tokens: 100 } });
      expect(run.model.requests).toHaveLength(2);
      expect(search.starts).toHaveLength(2);
      const result = resultOf(run.events);
      expect(result).toMatchObject({ status: 'limit', reason: 'budget', usage: { inputTokens: 85, outputTokens: 15 } });
      expect(result.messages.at(-1)?.role).toBe('tool');
      expect(result.summary).toBe(
        'The run stopped without an answer: its budget of 100 tokens is used up. Of its tool calls, 2 succeeded.',
      );
      expect(result).not.toHaveProperty('costUsd');
    }),
  );

  it(
    'R-12.3 one token less leaves another answer; the answer that completes the run completes it whatever it used',
    marbles((m) => {
      const world = new World(m);
      const search = world.scripted('search', [answers(1)]);
      const script = [using({ inputTokens: 99 }, 'search'), using({ inputTokens: 5_000 })];
      const result = resultOf(ran(world, script, [search], { limits: { tokens: 100 } }).events);
      expect(result).toMatchObject({ status: 'completed', usage: { inputTokens: 5_099 } });
      expect(result.summary).toBe('The model answered after 2 turns. Of its tool calls, 1 succeeded.');
    }),
  );

  it(
    'R-12.3 money is counted by the price of each answer, and told in the result',
    marbles((m) => {
      const world = new World(m);
      const search = world.scripted('search', [answers(1)]);
      const step = using({ inputTokens: 100_000, outputTokens: 10_000 }, 'search');
      const run = ran(world, [step, step, step, step], [search], { limits: { usd: 1 }, price: usd });
      expect(run.model.requests).toHaveLength(3);
      expect(resultOf(run.events)).toMatchObject({ status: 'limit', reason: 'budget' });
      expect(resultOf(run.events).costUsd).toBeCloseTo(1.35, 10);
      expect(resultOf(run.events).summary).toContain('its budget of 1 US dollars is used up');
    }),
  );

  it(
    'R-12.3 tokens of an answer that broke off count, and are not spent a second time where they were the last',
    marbles((m) => {
      const world = new World(m);
      const broken: ScriptedStep = [
        { type: 'usage', usage: { inputTokens: 100 } },
        { type: 'text', text: 'I wi' },
      ];
      const run = ran(world, [broken, using({ inputTokens: 1 })], [], { limits: { tokens: 100 } });
      expect(run.model.requests).toHaveLength(1);
      expect(resultOf(run.events)).toMatchObject({ status: 'limit', reason: 'budget', usage: { inputTokens: 100 } });
      expect(typed(run.events, 'discarded')).toHaveLength(1);
      const enough = ran(world, [broken, using({ inputTokens: 1 })], [], { limits: { tokens: 200 } });
      expect(resultOf(enough.events)).toMatchObject({ status: 'completed', usage: { inputTokens: 101 } });
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it.for<[string, (usage: ModelUsage) => number]>([
    [
      'throws',
      () => {
        throw new Error('no price list');
      },
    ],
    ['is no number', () => 'dear' as unknown as number],
    ['is NaN', () => Number.NaN],
    ['is negative', () => -1],
  ])('R-12.3 a price that %s: nobody knows what the run costs, and it ends before it asks again', ([, price]) =>
    marbles((m) => {
      const world = new World(m);
      const search = world.scripted('search', [answers(1)]);
      const step = using({ inputTokens: 1 }, 'search');
      const run = ran(world, [step, step], [search], { limits: { usd: 1 }, price });
      expect(run.model.requests).toHaveLength(1);
      const result = resultOf(run.events);
      expect(result).toMatchObject({ status: 'limit', reason: 'budget' });
      expect(result).not.toHaveProperty('costUsd');
    })(),
  );

  it('R-12.3 a budget of money without a price is refused, as are budgets that are none', () => {
    const options = { model: scriptedModel([]), messages: asked, spillway: { turn: () => of(), failures$: of() } };
    const starting = (more: object) => () => runAgent({ ...options, ...more });
    expect(starting({ limits: { usd: 5 } })).toThrow(
      new RangeError('limits.usd is 5, but nothing says what an answer costs: give the option price'),
    );
    expect(starting({ limits: { usd: 0 }, price: usd })).toThrow('limits.usd must be a number above 0, or Infinity');
    expect(starting({ limits: { tokens: 0.5 } })).toThrow('limits.tokens must be an integer from 1 to');
    expect(starting({ price: 3 })).toThrow("price must be a function of an answer's usage, not number");
  });
});

describe('R-12.3 a run says honestly how it ended', () => {
  it(
    'R-12.3 it counts what succeeded and failed, and names what may have run',
    marbles((m) => {
      const world = new World(m);
      const good = world.scripted('search', [answers(1)]);
      const bad = world.scripted('book', [fails(1, permanent)], { retry: once });
      const lost = world.scripted('pay', [fails(1, new Error('the line went dead'))], {
        retry: once,
        effects: 'mutating',
      });
      const calls = [good, bad, lost].map(({ tool: { name } }) => ({ name, input: {} }));
      const { summary } = resultOf(ran(world, [{ calls }], [good, bad, lost], { limits: { turns: 1 } }).events);
      expect(summary).toBe(
        'The run stopped without an answer, at its limit of 1 turn. ' +
          'Of its tool calls, 1 succeeded, 1 failed, 1 may have run, with an outcome that nobody knows (pay).',
      );
    }),
  );

  it(
    "R-12.3 no word of it is a model's or an error's",
    marbles((m) => {
      const world = new World(m);
      const secret = 'sk-live-000';
      const broken = throwError(() => new Error(secret));
      const { summary } = resultOf(ran(world, [broken], [], { modelRetry: false }).events);
      expect(summary).toBe('The run failed: the model could not be asked.');
      const refused = ran(world, [{ text: secret, stop: 'refusal' }], []);
      expect(resultOf(refused.events).summary).toBe('The model refused to answer.');
    }),
  );
});
