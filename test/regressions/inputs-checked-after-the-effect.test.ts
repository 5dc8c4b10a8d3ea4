// Was: what a finished tool of ADK or Strands threw was held against the tool's schema once it had run: one that had
// coerced, filled in or changed its input, or whose schema saw the payment, was said not to have run, and was paid
// again. Now: input is held against the tool's own schema before it runs, and proves nothing afterwards.
import { guardTools as guardAdk } from 'spillway/adapters/google-adk';
import { guardTools as guardStrands } from 'spillway/adapters/strands';
import { createSpillway, tool } from 'spillway';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { loadAdk, runAdk, scriptedLlm } from '../adapters/frameworks/google-adk.ts';
import { nothingSeen, type Script } from '../adapters/frameworks/kit.ts';
import { loadStrands, scriptedStrands } from '../adapters/frameworks/strands.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

beforeAll(async () => {
  await Promise.all([loadAdk(), loadStrands()]);
}, SIDE_INSTALL_TIMEOUT_MS);

type Execute = (input: unknown) => unknown;
/** An agent whose model calls the one tool that it has; gives what the model was told. */
type Run = (schema: unknown, input: unknown, execute: Execute, guard: GuardLayerOptions) => Promise<string>;

const calling = (input: unknown): Script => ({ calls: [{ id: 'c1', name: 'pay', input }], guarded: true });

const strands: Run = async (inputSchema, input, callback, guard) => {
  const loaded = await loadStrands();
  const seen = nothingSeen();
  const own = loaded.tool({ name: 'pay', description: 'pays', inputSchema, callback });
  const model = scriptedStrands(loaded, calling(input), seen);
  await new loaded.Agent({ model, tools: guardStrands([own], guard), printer: false }).invoke('go');
  return seen.shown;
};

const adk: Run = async (parameters, input, execute, guard) => {
  const loaded = await loadAdk();
  const seen = nothingSeen();
  const own = new loaded.FunctionTool({ name: 'pay', description: 'pays', parameters, execute });
  await runAdk(loaded, scriptedLlm(loaded, calling(input), seen), guardAdk([own], guard));
  return seen.shown;
};

const jsonSchema = { type: 'object', properties: { cents: { type: 'number' } }, required: ['cents'] };

describe.each([
  ['Strands', strands],
  ['Google ADK', adk],
] as const)('a finished tool of %s that pays and then fails', (_name, run) => {
  let paid = 0;
  const seesPayments = z.object({ order: z.string().refine(() => paid === 0, 'already paid') });

  it.each<readonly [string, unknown, unknown]>([
    ['whose schema coerces', z.object({ cents: z.coerce.number() }), { cents: '300' }],
    ['whose schema fills in', z.object({ cents: z.number(), currency: z.string().default('EUR') }), { cents: 300 }],
    ['whose JSON Schema nobody asks', jsonSchema, { cents: '300' }],
    ['whose schema sees what was paid', seesPayments, { order: 'o1' }],
    ['that changes its input', jsonSchema, { cents: 300 }],
  ])('R-2.5 %s: it may have run, and nothing is done in its place', async (_what, schema, input) => {
    paid = 0;
    let paidElsewhere = 0;
    const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => `paid ${++paidElsewhere}` });
    const told = await run(
      schema,
      input,
      (given) => {
        paid++;
        Object.assign(given as object, { cents: 'three euros' });
        throw new Error('could not write the receipt');
      },
      { spillway: createSpillway({ tools: [other] }), policies: { pay: { alternatives: ['other'] } } },
    );
    expect(told).toMatch(/may have/);
    expect(told).not.toMatch(/malformed/);
    expect([paid, paidElsewhere]).toEqual([1, 0]);
  });

  it('R-2.5 runs where it takes what its schema does not check', async () => {
    let ran = 0;
    const told = await run(undefined, { cents: 300 }, () => `paid ${++ran}`, {});
    expect(told).toMatch(/paid 1/);
  });
});
