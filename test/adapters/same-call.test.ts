import type { ToolPolicy } from 'spillway';
import { createHarvest } from 'spillway/adapters/ai-sdk';
import { guardFunction } from 'spillway/adapters/function';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { aiSdk } from './frameworks/ai-sdk.ts';
import { loadAll } from './frameworks/all.ts';
import { anthropic } from './frameworks/anthropic.ts';
import { nothingSeen, type Framework, type ModelCall } from './frameworks/kit.ts';
import { openaiAgents } from './frameworks/openai-agents.ts';

const call = (id: string, name: string, input: unknown = {}): ModelCall => ({ id, name, input });

let frameworks: readonly Framework[];
beforeAll(async () => {
  frameworks = [aiSdk, anthropic, openaiAgents, ...(await loadAll())];
}, SIDE_INSTALL_TIMEOUT_MS);

interface Repeats {
  readonly steps?: number;
  readonly within?: <T>(work: () => T) => T;
}

/** How often tools ran in one step of a model, by framework. */
const timesOf = async (
  calls: readonly ModelCall[],
  guarded: boolean,
  { steps = 1, within = (work) => work() }: Repeats = {},
): Promise<Record<string, number>> => {
  const times: Record<string, number> = {};
  for (const framework of frameworks) {
    const seen = nothingSeen();
    // OpenAI Agents ends a run whose calls have one id and different inputs.
    await within(() => framework.run({ calls, guarded, steps }, seen)).catch(() => undefined);
    times[framework.name.replaceAll(/ \d[\d.]*/g, '')] = seen.ran.length;
  }
  return times;
};

const all = (times: Record<string, number>, count: number): string[] =>
  Object.entries(times).flatMap(([name, ran]) => (ran === count ? [] : [`${name}: ${ran}`]));

describe('R-12.3 a call that its model repeats in one step, under the same id', () => {
  const twice = [call('c1', 'good'), call('c1', 'good')];

  it('R-12.3 alone is made twice, but where the framework looks at ids', async () => {
    expect(all(await timesOf(twice, false), 2)).toEqual(['OpenAI Agents `run`: 1', 'LlamaIndex `agent`: 1']);
  });

  it('R-12.3 guarded is made once, where the framework tells steps or runs apart', async () => {
    expect(all(await timesOf(twice, true), 1)).toEqual([
      // Their tools are given nothing that the calls of one step have in common.
      'Anthropic SDK `toolRunner`: 2',
      'Claude Agent SDK `tool` handlers: 2',
    ]);
  });

  it('R-12.3 and with a harvest around the run it is made once wherever tools are given ids', async () => {
    const times = await timesOf(twice, true, { within: (work) => createHarvest().run(work) });
    expect(all(times, 1)).toEqual([]);
  });

  it.each(['toolu_01A09q90qw90lq917835lq9', 'toolu_bdrk_01A09q90qw90lq917835lq9'])(
    'R-12.3 with an id that Anthropic’s API gives once and never again it is made once in all of them: %s',
    async (id) => {
      const calls = [call(id, 'good'), call('c2', 'good'), call(id, 'good')];
      expect(all(await timesOf(calls, true), 2)).toEqual([]);
    },
  );

  it('R-12.3 with another input it is another call, as some models count from 0', async () => {
    const times = await timesOf([call('c1', 'strict', { n: 1 }), call('c1', 'strict', { n: 2 })], true);
    expect(all(times, 2)).toEqual(['OpenAI Agents `run`: 0', 'LlamaIndex `agent`: 1']);
  });

  it('R-12.3 in its next step it is another call, under whatever id', async () => {
    const again = [call('c1', 'good')];
    const alone = await timesOf(again, false, { steps: 2 });
    // OpenAI Agents takes an id once in a run; of two of them this test’s model has one step.
    expect(Object.values(alone).filter((ran) => ran === 2)).toHaveLength(Object.keys(alone).length - 3);
    expect(await timesOf(again, true, { steps: 2 })).toEqual(alone);
    expect(await timesOf(again, true, { steps: 2, within: (work) => createHarvest().run(work) })).toEqual(alone);
  });

  it('R-12.3 what failed is made again, as frameworks’ own retries do', async () => {
    const times = await timesOf([call('c1', 'bad'), call('c2', 'good'), call('c1', 'bad')], true);
    for (const ran of Object.values(times)) expect(ran).toBeGreaterThanOrEqual(2);
  });
});

describe('R-12.3 a repeated call of any function', () => {
  interface Context {
    readonly id: string;
  }
  const counted = (
    made: string[],
    work: Promise<string>,
  ): ((input: { n: number }, context: Context) => Promise<string>) =>
    guardFunction(
      'pay',
      async ({ n }: { n: number }, { id }: Context) => {
        made.push(`${id} ${n}`);
        return work;
      },
      { idOf: (_input, { id }) => id },
    );

  it('R-12.3 is the same one while it runs, within one run, and never between two', async () => {
    const made: string[] = [];
    const { promise, resolve } = Promise.withResolvers<string>();
    const pay = counted(made, promise);
    const [one, other] = [createHarvest(), createHarvest()];
    const asked = [
      one.run(() => pay({ n: 1 }, { id: 'call_0' })),
      one.run(() => pay({ n: 1 }, { id: 'call_0' })),
      one.run(() => pay({ n: 2 }, { id: 'call_0' })),
      other.run(() => pay({ n: 1 }, { id: 'call_0' })),
      pay({ n: 1 }, { id: 'call_0' }),
    ];
    resolve('paid');
    expect(await Promise.all(asked)).toEqual(['paid', 'paid', 'paid', 'paid', 'paid']);
    expect(made).toEqual(['call_0 1', 'call_0 2', 'call_0 1', 'call_0 1']);
    expect(one.calls).toHaveLength(2);
    // The next step of a model that counts from 0.
    await one.run(() => pay({ n: 1 }, { id: 'call_0' }));
    expect(made).toHaveLength(5);
  });

  describe('R-12.3 under an id of Anthropic’s, outside of a run,', () => {
    const ID = { id: 'toolu_01A09q90qw90lq917835lq9' };
    const guarded = (
      policy: ToolPolicy,
      work: () => unknown,
    ): ((input: object, context: Context) => Promise<unknown>) =>
      guardFunction('pay', async (_: object, _context: Context) => work(), { policy, idOf: (_, { id }) => id });

    it('R-12.3 is made once, in whatever order its input is written', async () => {
      let made = 0;
      const pay = guarded({}, () => ++made);
      expect([await pay({ a: 1, b: 2 }, ID), await pay({ b: 2, a: 1 }, ID), await pay({ a: 2 }, ID)]).toEqual([
        1, 1, 2,
      ]);
    });

    it('R-12.3 is not made again where it may have taken effect', async () => {
      let made = 0;
      const pay = guarded({ retry: { maxAttempts: 1 } }, () => {
        made++;
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
      });
      await expect(pay({}, ID)).rejects.toThrow('may have');
      await expect(pay({}, ID)).rejects.toThrow('may have');
      expect(made).toBe(1);
    });

    it('R-12.3 is made again where it only reads: whoever asks now may see something else', async () => {
      let made = 0;
      const look = guarded({ effects: 'read' }, () => ++made);
      expect([await look({}, ID), await look({}, ID)]).toEqual([1, 2]);
    });

    it('R-12.3 is not let go of while it runs, however many come after it', async () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      let hung = 0;
      const pay = guardFunction(
        'pay',
        async ({ n }: { n: number }, _: Context) => {
          if (n > 0) return 'paid';
          hung++;
          return promise;
        },
        { idOf: (_, { id }) => id },
      );
      const first = pay({ n: 0 }, ID);
      for (let n = 1; n <= 1_001; n++) await pay({ n }, ID);
      const again = pay({ n: 0 }, ID);
      resolve('late');
      expect([await first, await again, hung]).toEqual(['late', 'late', 1]);
    });
  });
});
