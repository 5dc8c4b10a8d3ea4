import { describe, expect, it } from 'vitest';
import { scene, type SceneOptions } from './kit.ts';

/** How many questions two calls ask whose inputs are these. */
const asked = async (first: unknown, second: unknown, options: SceneOptions = {}): Promise<number> => {
  const at = scene(options);
  at.pay({ input: first });
  at.pay({ input: second });
  await at.pass(0);
  return (await at.approvals.pending()).length;
};

describe('whether an approval of one input is one of another', () => {
  it.each<[string, unknown, unknown]>([
    [
      'members in another order, at any depth',
      { to: { name: 'ada', bank: [1, { b: 2, a: 1 }] } },
      JSON.parse('{"to":{"bank":[1,{"a":1,"b":2}],"name":"ada"}}'),
    ],
    ['a number written otherwise', JSON.parse('{"amount":1.0,"fee":1e2}'), { amount: 1, fee: 100 }],
    ['a zero with a sign', { amount: 0 }, { amount: -0 }],
    [
      'a member that is undefined, at any depth',
      { amount: 7, to: { name: 'ada' } },
      { amount: 7, note: undefined, to: { name: 'ada', bank: undefined } },
    ],
    ['what changes from one sending to the next', { amount: 7, clientTs: 1 }, { amount: 7, clientTs: 2 }],
  ])('R-22.2 %s is the same', async (_, first, second) => {
    expect(await asked(first, second)).toBe(1);
  });

  it.each<[string, unknown, unknown]>([
    ['another amount', { amount: 7 }, { amount: 7.000_000_000_000_001 }],
    ['a number and a text', { amount: 7 }, { amount: '7' }],
    ['another form of the same letter', { to: 'caf\u00E9' }, { to: 'cafe\u0301' }],
    ['a letter that looks the same', { to: 'ada' }, { to: '\u0430da' }],
    ['white space', { to: 'ada' }, { to: 'ada ' }],
    ['null and nothing', { amount: 7, to: null }, { amount: 7 }],
    ['a list and an object', { to: ['ada'] }, { to: { 0: 'ada' } }],
    ['a list in another order', { to: ['ada', 'grace'] }, { to: ['grace', 'ada'] }],
    ['a member in another place', { to: { amount: 7 } }, { amount: 7, to: {} }],
    ['a member below the outermost that would be left out there', { to: { clientTs: 1 } }, { to: { clientTs: 2 } }],
    ['a setting that keys leave out', { amount: 7, retryCount: 3 }, { amount: 7, retryCount: 50 }],
    ['a member named __proto__', JSON.parse('{"amount":7,"__proto__":{"to":"ada"}}'), { amount: 7 }],
  ])('R-22.2 %s is another', async (_, first, second) => {
    expect(await asked(first, second)).toBe(2);
  });

  it('R-22.2 what the policy of a tool names as volatile is left out, by whatever name', async () => {
    const policy = { dedupe: { volatile: ['retryCount', 'sentBy'] } };
    const inputs = [1, 2].map((n) => ({ amount: 7, retryCount: n, sentBy: n }));
    expect(await asked(inputs[0], inputs[1], { tool: { policy } })).toBe(1);
  });

  it.each<[string, unknown]>([
    ['nothing in a list', { to: [undefined] }],
    ['no number', { amount: Number.NaN }],
    ['a number of which others are the same', { amount: 2 ** 53 }],
    ['half a letter', { to: '\uD800' }],
  ])('R-22.2 of %s nobody can approve anything', async (_, input) => {
    const at = scene({ approvals: { ask: () => true } });
    const call = at.pay({ input });
    await at.pass(0);
    expect([at.asked, at.runs]).toEqual([[], []]);
    expect(call.result).toMatchObject({ status: 'error', error: { code: 'invalid_parameters' } });
  });
});
