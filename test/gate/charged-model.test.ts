import { lastValueFrom } from 'rxjs';
import { createSpillway, tool } from 'spillway';
import {
  chargedModel,
  runAgent,
  scriptedModel,
  type AgentResult,
  type ModelEvent,
  type ModelUsage,
} from 'spillway/agent';
import { createBudget, type Budget, type BudgetLimits } from 'spillway/gates';
import { describe, expect, it } from 'vitest';

const run = async (
  limits: BudgetLimits,
  price?: (usage: { readonly outputTokens?: number }) => number,
  usage: ModelUsage = { inputTokens: 60, outputTokens: 40 },
): Promise<{ result: AgentResult; asked: number; budget: Budget }> => {
  const budget = createBudget(limits);
  const look = tool({ name: 'look', policy: { effects: 'read' }, execute: () => 'seen' });
  const spillway = createSpillway({ tools: [look], budget });
  const again: readonly ModelEvent[] = [
    { type: 'tool_call', id: '', name: 'look', input: {} },
    { type: 'usage', usage },
    { type: 'stop', reason: 'tool_calls' },
  ];
  const done: readonly ModelEvent[] = [
    { type: 'text', text: 'done' },
    { type: 'usage', usage },
    { type: 'stop', reason: 'end' },
  ];
  const scripted = scriptedModel([again, again, again, done]);
  let asked = 0;
  const model = chargedModel(
    (...given) => {
      asked++;
      return scripted(...given);
    },
    budget,
    { session: 'ada', ...(price === undefined ? {} : { price }) },
  );
  const last = await lastValueFrom(
    runAgent({ model, spillway, tools: [look], messages: [{ role: 'user', content: 'look' }] }),
  );
  if (last.type !== 'settled') throw new Error('it did not settle');
  return { result: last.result, asked, budget };
};

describe('chargedModel', () => {
  it('R-22.6 a model is not asked once the tokens are used up, and the run says so', async () => {
    const { result, asked, budget } = await run({ tokens: 150, per: 'session' });
    expect(asked).toBe(2);
    expect(result).toMatchObject({ status: 'failed', reason: 'model_error' });
    expect(JSON.stringify(result)).toContain("The session's budget is used up: 0 of 150 tokens left");
    expect(await budget.left({ session: 'ada' })).toMatchObject([{ left: 0 }]);
    expect(await budget.left({ session: 'bob' })).toMatchObject([{ left: 150 }]);
  });

  it('R-22.6 it costs what its price says', async () => {
    const { result, asked, budget } = await run(
      { usd: 1, per: 'session' },
      ({ outputTokens = 0 }) => outputTokens / 200,
    );
    expect([result.status, asked]).toEqual(['completed', 4]);
    expect((await budget.left({ session: 'ada' }))[0]?.left).toBeCloseTo(0.2);
  });

  it.each([
    [
      'throws',
      (): number => {
        throw new Error('no price today');
      },
    ],
    ['is none', (): number => Number.NaN],
  ])('R-22.6 a price that %s takes no token from what is counted', async (_, price) => {
    const { asked, budget } = await run({ tokens: 150, per: 'session' }, price);
    expect(asked).toBe(2);
    expect(await budget.left({ session: 'ada' })).toMatchObject([{ left: 0 }]);
  });

  it.each([
    [
      'throws',
      (): number => {
        throw new Error('no price today');
      },
    ],
    ['is none', (): number => Number.NaN],
    ['is less than nothing', (): number => -1],
  ])('R-22.6 a price that %s ends what dollars were to limit: nobody knows what it costs', async (_, price) => {
    const { result, asked } = await run({ usd: 1, per: 'session' }, price);
    expect([result.status, result.reason, asked]).toEqual(['failed', 'model_error', 1]);
    expect(JSON.stringify(result)).toContain('`price` gave no amount for an answer');
  });

  it('R-22.6 a count of a provider that is none takes nothing from the other', async () => {
    const { asked } = await run({ tokens: 70, per: 'session' }, undefined, {
      inputTokens: Number.NaN,
      outputTokens: 40,
    });
    expect(asked).toBe(2);
  });
});
