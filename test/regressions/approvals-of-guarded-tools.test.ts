// Was: guarding an OpenAI tool lost the SDK's parser, kept by the identity of `invoke`: `needsApproval` saw raw JSON
// and waved a payment through. Now: it is asked as alone, or the tool is refused.
import { Agent, run, tool, type Tool } from '@openai/agents-core';
import { guardTool, guardTools } from 'spillway/adapters/openai-agents';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { nothingSeen } from '../adapters/frameworks/kit.ts';
import { scriptedModel } from '../adapters/frameworks/openai-agents.ts';

type Make = typeof tool;
interface Ran {
  readonly asked: unknown[];
  readonly paid: unknown[];
  readonly interruptions: number;
  readonly told: string;
}

/** A definition of `pay`, and what the model writes as its arguments. */
interface Case {
  readonly parameters: z.ZodObject;
  readonly needsApproval: (input: Readonly<Record<string, unknown>>) => boolean;
  readonly written: string;
}

let counted = 0;
const CASES: Readonly<Record<string, Case>> = {
  'a default that the schema fills in': {
    parameters: z.object({ live: z.boolean().default(true) }),
    needsApproval: ({ live }) => live === true,
    written: '{}',
  },
  'a number written as a text': {
    parameters: z.object({ amount: z.coerce.number() }),
    needsApproval: ({ amount }) => typeof amount === 'number' && amount > 100,
    written: '{"amount":"5000"}',
  },
  'a text made small': {
    parameters: z.object({ to: z.string().toLowerCase() }),
    needsApproval: ({ to }) => to === 'mallory',
    written: '{"to":"MALLORY"}',
  },
  'a preprocessed input': {
    parameters: z.object({ amount: z.preprocess((given) => Number(given) * 100, z.number()) }),
    needsApproval: ({ amount }) => Number(amount) > 100,
    written: '{"amount":5}',
  },
  'a value drawn anew each time it is read': {
    parameters: z.object({ n: z.preprocess(() => ++counted, z.number()) }),
    needsApproval: () => true,
    written: '{"n":1}',
  },
  'an input that needs none': {
    parameters: z.object({ amount: z.coerce.number() }),
    needsApproval: ({ amount }) => Number(amount) > 100,
    written: '{"amount":"5"}',
  },
  'an input that does not fit': {
    parameters: z.object({ amount: z.number() }),
    needsApproval: () => false,
    written: '{"amount":"much"}',
  },
  'no JSON': { parameters: z.object({ amount: z.number() }), needsApproval: () => false, written: '{"amount":' },
};

/** Runs until a person is asked, says yes if `approve`, and goes on. */
const ranWith = async (make: Make, { parameters, needsApproval, written }: Case, approve: boolean): Promise<Ran> => {
  const asked: unknown[] = [];
  const paid: unknown[] = [];
  counted = 0;
  const pay = make({
    name: 'pay',
    description: 'pays',
    parameters,
    needsApproval: (_context, input) => {
      asked.push(input);
      return Promise.resolve(needsApproval(input as Readonly<Record<string, unknown>>));
    },
    execute: (input) => {
      paid.push(input);
      return 'paid';
    },
  });
  const seen = nothingSeen();
  const agent = new Agent({
    name: 'test',
    tools: [pay as Tool],
    model: scriptedModel({ calls: [{ id: 'c1', name: 'pay', input: written }], guarded: true }, seen),
  });
  let result = await run(agent, 'go');
  const interruptions = result.interruptions.length;
  if (approve && interruptions > 0) {
    for (const interruption of result.interruptions) result.state.approve(interruption);
    result = await run(agent, result.state);
  }
  return { asked, paid, interruptions, told: seen.told.get('c1') ?? '' };
};

describe('needsApproval of a tool made by a guarded `tool`', () => {
  it.each(Object.entries(CASES))('R-2.5 %s: asked exactly as alone, unapproved and approved', async (_name, one) => {
    for (const approve of [false, true]) {
      const alone = await ranWith(tool, one, approve);
      const guarded = await ranWith(guardTool(tool), one, approve);
      expect({ ...guarded, told: '' }).toEqual({ ...alone, told: '' });
    }
  });

  it('R-2.5 nothing is paid before a person said yes, and what is paid is what was asked about', async () => {
    const before = await ranWith(guardTool(tool), CASES['a default that the schema fills in'] as Case, false);
    expect([before.asked, before.paid, before.interruptions]).toEqual([[{ live: true }], [], 1]);
    const drawn = await ranWith(guardTool(tool), CASES['a value drawn anew each time it is read'] as Case, true);
    expect(drawn.paid).toEqual([drawn.asked[0]]);
  });
});

const made = (needsApproval: unknown): Tool =>
  tool({
    name: 'pay',
    description: 'pays',
    parameters: z.object({ amount: z.coerce.number() }),
    execute: () => 'paid',
    needsApproval: needsApproval as never,
  });

function isLarge(limit: number, _context: unknown, input: { amount: number }): boolean {
  return input.amount > limit;
}

describe('needsApproval of a finished tool', () => {
  it.each<[string, unknown]>([
    ['a function of its input', (_context: unknown, { amount }: { amount: number }) => amount > 100],
    ['one that takes all', (...given: unknown[]) => given.length > 0],
    [
      'one that uses `arguments`',
      function () {
        return arguments.length > 0;
      },
    ],
    ['one with a default', (_context = {}, input = { amount: 0 }) => input.amount > 100],
    ['one that is bound', isLarge.bind(undefined, 100)],
    [
      'a method',
      {
        needsApproval(_context: unknown, input: { amount: number }) {
          return input.amount > 100;
        },
      }.needsApproval,
    ],
  ])('R-2.5 %s: refused at guardTools, naming the tool and what to do', (_name, needsApproval) => {
    expect(() => guardTools([made(needsApproval)])).toThrow(
      /needsApproval of the tool pay is a function.*guardTool\(tool, options\)\(\{ name: "pay", \.\.\. \}\).*needsApproval: true/,
    );
  });

  it.each<[string, unknown, number]>([
    ['true', true, 1],
    ['false', false, 0],
    ['none', undefined, 0],
    ['a function that looks at nothing', () => Promise.resolve(true), 1],
  ])('R-2.5 %s: the run is as alone', async (_name, needsApproval, interruptions) => {
    const tools = [[made(needsApproval)], guardTools([made(needsApproval)])];
    for (const each of tools) {
      const model = scriptedModel(
        { calls: [{ id: 'c1', name: 'pay', input: { amount: '5000' } }], guarded: true },
        nothingSeen(),
      );
      const result = await run(new Agent({ name: 'test', tools: each, model }), 'go');
      expect(result.interruptions.length).toBe(interruptions);
    }
  });
});

describe('what else the SDK knows of a tool', () => {
  const guards = (log: string[]): object => ({
    isEnabled: () => {
      log.push('enabled?');
      return true;
    },
    inputGuardrails: [{ name: 'in', run: () => Promise.resolve((log.push('input'), { behavior: { type: 'allow' } })) }],
    outputGuardrails: [
      {
        name: 'out',
        run: ({ output }: { output: unknown }) =>
          Promise.resolve(
            (log.push(`output ${String(output)}`), { behavior: { type: 'rejectContent', message: 'withheld' } }),
          ),
      },
    ],
  });
  const define = (make: Make, log: string[]): Tool =>
    make({
      name: 'pay',
      description: 'pays',
      parameters: z.object({ amount: z.coerce.number() }),
      execute: ({ amount }) => {
        log.push(`paid ${typeof amount} ${String(amount)}`);
        return 'secret';
      },
      ...guards(log),
    });
  const logged = async (toolsOf: (log: string[]) => Tool[]): Promise<string[]> => {
    const log: string[] = [];
    const seen = nothingSeen();
    await run(
      new Agent({
        name: 'test',
        tools: toolsOf(log),
        model: scriptedModel({ calls: [{ id: 'c1', name: 'pay', input: { amount: '5' } }], guarded: true }, seen),
      }),
      'go',
    );
    return [...log, seen.told.get('c1') ?? ''];
  };

  it('R-2.5 guardrails and isEnabled are asked as alone, of a finished tool and of one made guarded', async () => {
    const alone = await logged((log) => [define(tool, log)]);
    expect(alone).toContain('output secret');
    expect(await logged((log) => guardTools([define(tool, log)]))).toEqual(alone);
    expect(await logged((log) => [define(guardTool(tool), log)])).toEqual(alone);
  });

  it('R-2.5 a nested agent’s approval interrupts the run through the guarded tool as alone', async () => {
    const runs = async (guard: (tools: Tool[]) => Tool[]): Promise<[number, unknown[], number]> => {
      const paid: unknown[] = [];
      const pay = tool({
        name: 'pay',
        description: 'pays',
        parameters: z.object({ amount: z.number() }),
        needsApproval: true,
        execute: (input) => paid.push(input),
      });
      const inner = new Agent({
        name: 'inner',
        tools: [pay as Tool],
        model: scriptedModel(
          { calls: [{ id: 'i1', name: 'pay', input: { amount: 5 } }], guarded: true },
          nothingSeen(),
        ),
      });
      const outer = inner.asTool({ toolName: 'delegate', toolDescription: 'delegates' }) as unknown as Tool;
      const agent = new Agent({
        name: 'outer',
        tools: guard([outer]),
        model: scriptedModel(
          { calls: [{ id: 'c1', name: 'delegate', input: { input: 'pay 5' } }], guarded: true },
          nothingSeen(),
        ),
      });
      const first = await run(agent, 'go');
      const { interruptions } = first;
      const paidBefore = paid.length;
      for (const interruption of interruptions) first.state.approve(interruption);
      if (interruptions.length > 0) await run(agent, first.state);
      return [interruptions.length, paid, paidBefore];
    };
    const alone = await runs((tools) => tools);
    expect(alone).toEqual([1, [{ amount: 5 }], 0]);
    expect(await runs((tools) => guardTools(tools))).toEqual(alone);
  });
});
