import { createSpillway } from 'spillway';
import { guardTools as guardAdk } from 'spillway/adapters/google-adk';
import { guardTools as guardLlama } from 'spillway/adapters/llamaindex';
import { guardTools as guardStrands } from 'spillway/adapters/strands';
import { guardTools as guardVolt } from 'spillway/adapters/voltagent';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { loadAdk, runAdk, scriptedLlm } from './frameworks/google-adk.ts';
import { CANARY, nothingSeen, type Script, type Seen } from './frameworks/kit.ts';
import { loadLlamaIndex, scriptedLlama, type LlamaTool } from './frameworks/llamaindex.ts';
import { loadStrands, scriptedStrands, type StrandsContext } from './frameworks/strands.ts';
import { agentOf, loadVoltAgent, olderModel } from './frameworks/voltagent.ts';

beforeAll(async () => {
  await Promise.all([loadAdk(), loadLlamaIndex(), loadStrands(), loadVoltAgent()]);
}, SIDE_INSTALL_TIMEOUT_MS);

const schema = z.object({ cents: z.number().overwrite((cents) => cents / 100) });
type Execute = (input: unknown, context?: unknown) => unknown;
/** An agent with one tool, whose model calls it once. */
type Run = (script: Script, execute: Execute, seen: Seen, guard?: GuardLayerOptions) => Promise<unknown>;

const strands: Run = async (script, callback, seen, guard) => {
  const loaded = await loadStrands();
  const own = loaded.tool({ name: 'pay', description: 'pays', inputSchema: schema, callback });
  const tools = guard === undefined ? [own] : guardStrands([own], guard);
  return new loaded.Agent({ model: scriptedStrands(loaded, script, seen), tools, printer: false }).invoke('go');
};

const adk: Run = async (script, execute, seen, guard) => {
  const loaded = await loadAdk();
  const own = new loaded.FunctionTool({ name: 'pay', description: 'pays', parameters: schema, execute });
  return runAdk(loaded, scriptedLlm(loaded, script, seen), guard === undefined ? [own] : guardAdk([own], guard));
};

const llamaIndex: Run = async (script, execute, seen, guard) => {
  const llama = await loadLlamaIndex();
  const own = llama.tool({ name: 'pay', description: 'pays', parameters: schema, execute });
  const tools = guard === undefined ? [own] : guardLlama([own], guard);
  return llama.agent({ llm: scriptedLlama(script, seen), tools }).run('go');
};

const voltAgent: Run = async (script, execute, seen, guard) => {
  const loaded = await loadVoltAgent();
  const own = loaded.createTool({ name: 'pay', description: 'pays', parameters: schema, execute });
  const tools = guard === undefined ? [own] : guardVolt([own], guard);
  return agentOf(loaded, olderModel(script, seen), tools).generateText('go');
};

const RUNS: ReadonlyArray<readonly [string, Run]> = [
  ['Strands', strands],
  ['Google ADK', adk],
  ['LlamaIndex', llamaIndex],
  ['VoltAgent', voltAgent],
];
const calling = (input: unknown): Script => ({ calls: [{ id: 'c1', name: 'pay', input }], guarded: true });
const reset = (): Error => Object.assign(new Error(`read ECONNRESET ${CANARY}`), { code: 'ECONNRESET' });
const retry = { initialDelayMs: 0, maxAttempts: 3 };

describe.each(RUNS)('finished tools of %s', (_name, run) => {
  const tried = async (
    execute: (time: number) => unknown,
    guard?: GuardLayerOptions,
    input: unknown = { cents: 500 },
  ): Promise<{ readonly inputs: unknown[]; readonly seen: Seen }> => {
    const inputs: unknown[] = [];
    const seen = nothingSeen();
    const pay: Execute = (given) => {
      inputs.push(given);
      return execute(inputs.length);
    };
    await run(calling(input), pay, seen, guard);
    return { inputs, seen };
  };

  it('R-12.3 what succeeds is told as alone, from the same input', async () => {
    const alone = await tried(() => ({ paid: true }));
    const guarded = await tried(() => Promise.resolve({ paid: true }), {});
    expect([guarded.inputs, guarded.seen.shown]).toEqual([alone.inputs, alone.seen.shown]);
  });

  it('R-2.5 what may have taken effect happens once; a read is tried again, from the same input', async () => {
    const paying = await tried(() => Promise.reject(reset()), { defaults: { retry } });
    expect(paying.inputs).toEqual([{ cents: 5 }]);
    expect(paying.seen.shown).toMatch(/may have (run and )?taken effect/);
    expect(paying.seen.shown).not.toContain(CANARY);
    const reading = await tried((time) => (time < 3 ? Promise.reject(reset()) : 'read'), {
      policies: { pay: { effects: 'read', retry } },
    });
    expect(reading.inputs).toEqual([{ cents: 5 }, { cents: 5 }, { cents: 5 }]);
    expect(reading.seen.shown).toContain('read');
  });

  it('R-4.1 one that hangs settles at its timeout', async () => {
    const { seen } = await tried(() => new Promise(() => undefined), { defaults: { timeoutMs: 50 } });
    expect(seen.shown).toContain('did not answer in time');
  });

  it('R-3.8 a breaker opens, and the tool is not called', async () => {
    const spillway = createSpillway({ defaults: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } } });
    await tried(() => Promise.reject(reset()), { spillway });
    expect((await tried(() => 'paid', { spillway })).inputs).toEqual([]);
  });

  it('R-2.9 a policy for a tool that is not there is refused', async () => {
    await expect(tried(() => 'paid', { policies: { typo: {} } })).rejects.toThrow(/no option "typo"/);
  });
});

describe.each(RUNS.slice(0, 2))('input that does not fit a finished tool of %s', (_name, run) => {
  it('R-2.5 R-12.4 did not run: the model is told what does not fit, and the breaker nothing', async () => {
    const spillway = createSpillway();
    const seen = nothingSeen();
    let ran = 0;
    await run(calling({ cents: 'five' }), () => ++ran, seen, { spillway });
    expect([ran, spillway.breakers.get('pay')?.state.consecutiveFailures ?? 0]).toEqual([0, 0]);
    expect(seen.shown).toContain('cents');
    expect(seen.shown).not.toContain('may have');
  });
});

describe('what stays of finished tools', () => {
  it('R-12.3 Strands interrupts from within a tool, and goes on once it is answered', async () => {
    const loaded = await loadStrands();
    let paid = 0;
    const callback = (_input: unknown, context: StrandsContext): number => {
      context.interrupt({ name: 'approval' });
      return ++paid;
    };
    const own = loaded.tool({ name: 'pay', description: 'pays', inputSchema: schema, callback });
    const model = scriptedStrands(loaded, calling({ cents: 1 }), nothingSeen());
    const agent = new loaded.Agent({ model, tools: guardStrands([own]), printer: false });
    const { interrupts = [] } = await agent.invoke('go');
    expect([interrupts.length, paid]).toEqual([1, 0]);
    await agent.invoke(interrupts.map(({ id }) => ({ interruptResponse: { interruptId: id, response: 'yes' } })));
    expect(paid).toBe(1);
  });

  it('R-12.3 a bound tool of LlamaIndex is guarded, and gets what it is bound to', async () => {
    const { tool } = await loadLlamaIndex();
    let ran = 0;
    const execute = (_input: unknown, additional?: object): unknown =>
      ++ran < 3 ? Promise.reject(reset()) : JSON.stringify(additional);
    const own = tool({ name: 'look', description: 'looks', parameters: z.object({}), execute });
    const [guarded] = guardLlama<LlamaTool>([own], { policies: { look: { effects: 'read', retry } } });
    expect(guarded?.metadata).toEqual(own.metadata);
    expect(await guarded?.bind({ user: 'u' }).bind({ user: 'v' }).call({})).toBe('{"user":"v"}');
    expect(ran).toBe(3);
  });

  it('R-12.3 ADK knows them for its own, and lists them by what was copied', async () => {
    const loaded = await loadAdk();
    const own = new loaded.FunctionTool({ name: 'pay', description: 'pays', parameters: schema, execute: () => 1 });
    expect(guardAdk([own])[0]).toBeInstanceOf(loaded.FunctionTool);
    expect(() => guardAdk([{ getTools: () => [] }])).toThrow(/of a toolset give what its getTools\(\) gives/);
  });

  it('R-12.3 what has no function, which others run, is the same object', () => {
    const client = { name: 'client' };
    expect(guardVolt([client])[0]).toBe(client);
    expect(guardLlama([client])[0]).toBe(client);
    expect(() => guardStrands([client])).toThrow(/takes tools of Strands/);
  });
});
