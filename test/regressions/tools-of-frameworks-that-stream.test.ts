// Was: a Strands tool that gives a generator did nothing and was told as a success, and a VoltAgent one ran after its
// call had ended. Now: both run under the layer, to the result that they give alone, and their values are shown.
import { createSpillway } from 'spillway';
import { guardTool as guardStrands } from 'spillway/adapters/strands';
import { guardTool as guardVolt } from 'spillway/adapters/voltagent';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { PAY_SCRIPT, nothingSeen, onePolicy } from '../adapters/frameworks/kit.ts';
import { loadStrands, scriptedStrands } from '../adapters/frameworks/strands.ts';
import { agentOf, loadVoltAgent, olderModel } from '../adapters/frameworks/voltagent.ts';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

beforeAll(async () => {
  await loadStrands();
  await loadVoltAgent();
}, SIDE_INSTALL_TIMEOUT_MS);

type Execute = () => unknown;
/** Runs an agent whose model calls the tool once: what the model was told, and what the tool streamed. */
type Run = (
  execute: Execute,
  guard?: GuardLayerOptions,
) => Promise<{ readonly told: string; readonly shown: unknown[] }>;

const strands: Run = async (callback, guard) => {
  const loaded = await loadStrands();
  const make = guard === undefined ? loaded.tool : guardStrands(loaded.tool, onePolicy(guard, 'pay'));
  const pay = make({ name: 'pay', description: 'pays', inputSchema: z.object({}), callback });
  const seen = nothingSeen();
  const model = scriptedStrands(loaded, PAY_SCRIPT, seen);
  const agent = new loaded.Agent({ model, tools: [pay], printer: false });
  const shown: unknown[] = [];
  for await (const event of agent.stream('go'))
    if (event.type === 'toolStreamUpdateEvent') shown.push(event.event?.data);
  return { told: seen.told.get('c1') ?? '', shown };
};

const voltAgent: Run = async (execute, guard) => {
  const loaded = await loadVoltAgent();
  const make = guard === undefined ? loaded.createTool : guardVolt(loaded.createTool, onePolicy(guard, 'pay'));
  const pay = make({ name: 'pay', description: 'pays', parameters: z.object({}), execute });
  const seen = nothingSeen();
  await agentOf(loaded, olderModel(PAY_SCRIPT, seen), [pay]).generateText('go');
  return { told: seen.shown, shown: [] };
};

const fast = { defaults: { timeoutMs: 50, retry: { maxAttempts: 1 } } };

describe.each([
  ['Strands', strands],
  ['VoltAgent', voltAgent],
])('a tool of %s', (_name, run) => {
  const order: string[] = [];
  const steps = async function* (): AsyncGenerator<string, string> {
    yield await Promise.resolve('half');
    yield 'nearly';
    order.push('worked');
    return 'whole';
  };

  it.each<[string, Execute]>([
    ['that is a generator', steps],
    ['that gives a generator', () => steps()],
    ['that promises a generator', () => Promise.resolve(steps())],
  ])('R-12.3 %s gives what it gives alone, within its call', async (title, execute) => {
    const spillway = createSpillway();
    spillway.trace$.subscribe(({ type }) => order.push(type));
    order.length = 0;
    const guarded = await run(execute, { spillway });
    expect(order.indexOf('worked')).toBeLessThan(order.indexOf('settled'));
    expect(order.filter((each) => each === 'worked')).toHaveLength(1);
    // Alone Strands takes a promised generator for a value, and does not run it.
    if (title !== 'that promises a generator') expect(guarded.told).toBe((await run(execute)).told);
    expect(guarded.told).toMatch(/whole|nearly/);
  });

  it('R-4.1 one that hangs on the way settles at its timeout', async () => {
    let ran = 0;
    const stuck = async function* (): AsyncGenerator<string, string> {
      ran++;
      yield 'half';
      await new Promise(() => undefined);
      return 'never';
    };
    expect((await run(stuck, fast)).told).toContain('did not answer in time');
    expect(ran).toBe(1);
  });

  it('R-2.5 one whose connection breaks on the way is not begun again', async () => {
    let ran = 0;
    const broken = async function* (): AsyncGenerator<string, string> {
      ran++;
      yield await Promise.resolve('half');
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    };
    expect((await run(broken, {})).told).toContain('may have run');
    expect(ran).toBe(1);
  });
});

describe('what a generator of Strands yields', () => {
  it('R-12.3 is told as it comes, as alone', async () => {
    const steps = async function* (): AsyncGenerator<string, string> {
      yield await Promise.resolve('half');
      yield 'nearly';
      return 'whole';
    };
    const alone = await strands(steps);
    expect(alone.shown).toEqual(['half', 'nearly']);
    expect(await strands(steps, {})).toEqual(alone);
  });
});
