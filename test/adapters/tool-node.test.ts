import { createSpillway } from 'spillway';
import { ToolFailure, guardTools } from 'spillway/adapters/langchain';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { CANARY, nothingSeen, type ModelCall, type Seen } from './frameworks/kit.ts';
import { langChainTools, loadLangChain, type LangChain } from './frameworks/langchain.ts';
import { graphOf } from './frameworks/tool-node.ts';

type WithMemory = LangChain & { readonly MemorySaver: new () => object };
let lc: WithMemory;
beforeAll(async () => {
  lc = (await loadLangChain()) as WithMemory;
}, SIDE_INSTALL_TIMEOUT_MS);

const GO = { messages: [{ role: 'user', content: 'go' }] };
const once = { retry: { maxAttempts: 1 } };
const toolNamed = (name: string, execute: Parameters<LangChain['tool']>[0], schema: z.ZodType = z.object({})): object =>
  lc.tool(execute, { name, description: 'a tool of the test', schema });
const told = async (tools: readonly object[], calls: readonly ModelCall[], node: object = {}): Promise<Seen> => {
  const seen = nothingSeen();
  await graphOf(lc, { calls, guarded: true }, seen, tools, { node }).invoke(GO);
  return seen;
};
type Invocable = { invoke(input: unknown, config?: object): Promise<unknown> };

describe('guardTools for LangChain', () => {
  it('R-12.3 R-12.4 a failure is a message with the status `error` beside its siblings’', async () => {
    const seen = nothingSeen();
    const tools = guardTools(langChainTools(lc, seen), { ToolMessage: lc.ToolMessage, defaults: once });
    const calls = ['bad', 'worded', 'good', 'strict'].map((name, n) => ({ id: `c${n}`, name, input: {} }));
    const { messages } = await graphOf(lc, { calls, guarded: true }, seen, tools).invoke(GO);
    const results = messages.filter((message) => message.getType() === 'tool');
    expect(results.map(({ tool_call_id, status }) => [tool_call_id, status])).toEqual([
      ['c0', 'error'],
      ['c1', 'error'],
      ['c2', 'success'],
      ['c3', 'error'],
    ]);
    expect(results[1]?.content).toBe('No city is called Atlantis.');
    expect(results[3]?.content).toContain('expected number');
    expect([seen.shown.includes(CANARY), seen.ran.includes('strict')]).toEqual([false, false]);
  });

  it('R-12.4 without the class the failure is thrown: `ToolNode` tells it, or throws, as it is set', async () => {
    const calls = [{ id: 'c1', name: 'bad', input: {} }];
    const [bad] = guardTools([toolNamed('bad', () => Promise.reject(new Error(CANARY)))], { defaults: once });
    const seen = await told([bad as object], calls);
    expect(seen.told.get('c1')).toContain('It may have taken effect');
    expect(seen.shown).not.toContain(CANARY);
    await expect(told([bad as object], calls, { handleToolErrors: false })).rejects.toThrow('It may have taken effect');
  });

  it('R-8.2 a program’s call gives what the tool gives, and throws a ToolFailure', async () => {
    const add = toolNamed('add', (input) => `sum ${(input as { n: number }).n}`, z.object({ n: z.number() }));
    const [guarded] = guardTools([add as Invocable], { ToolMessage: lc.ToolMessage, defaults: once });
    expect(await guarded?.invoke({ n: 2 })).toBe('sum 2');
    expect(await guarded?.invoke({ name: 'add', args: { n: 2 }, id: 'c1', type: 'tool_call' })).toBeInstanceOf(
      lc.ToolMessage,
    );
    const failure: unknown = await guarded?.invoke({ n: 'two' }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ToolFailure);
    expect(failure).toMatchObject({ kind: 'invalid_parameters', message: expect.stringContaining('n:') as string });
  });

  it('R-2.5 input that a tool says does not fit, though it fits, may have come after its effect', async () => {
    class ToolInputParsingException extends Error {}
    let ran = 0;
    const sly = toolNamed('sly', () => Promise.reject(new ToolInputParsingException(`no ${++ran}`)));
    const [guarded] = guardTools([sly as Invocable]);
    await expect(guarded?.invoke({})).rejects.toThrow('may have');
    expect(ran).toBe(1);
  });

  it('R-3.8 a breaker opens, and the model is told that the tool rests', async () => {
    let ran = 0;
    const down = toolNamed('down', () => Promise.reject(new Error(`down ${++ran}`)));
    const tools = guardTools([down], {
      ToolMessage: lc.ToolMessage,
      policies: { down: { ...once, breaker: { failureThreshold: 2 } } },
    });
    for (let n = 0; n < 2; n++) await told(tools, [{ id: 'c1', name: 'down', input: {} }]);
    const seen = await told(tools, [{ id: 'c1', name: 'down', input: {} }]);
    expect(seen.told.get('c1')).toContain('it was not called');
    expect(ran).toBe(2);
  });

  it('R-3.3 R-2.5 an interrupt asks as alone: once, nothing paid before, and once after', async () => {
    for (const guarded of [false, true]) {
      const spillway = createSpillway();
      const failures: unknown[] = [];
      spillway.failures$.subscribe((failure) => failures.push(failure));
      let paid = 0;
      const own = toolNamed('pay', () => {
        const answer = lc.interrupt('may I?');
        return `${String(answer)}: paid ${++paid}`;
      });
      const tools = guarded ? guardTools([own], { ToolMessage: lc.ToolMessage, spillway }) : [own];
      const seen = nothingSeen();
      const script = { calls: [{ id: 'c1', name: 'pay', input: {} }], guarded };
      const graph = graphOf(lc, script, seen, tools, { compile: { checkpointer: new lc.MemorySaver() } });
      const config = { configurable: { thread_id: 't1' } };
      const first = await graph.invoke(GO, config);
      expect([Reflect.get(first, '__interrupt__'), paid]).toMatchObject([[{ value: 'may I?' }], 0]);
      await graph.invoke(new lc.Command({ resume: 'yes' }), config);
      expect([seen.told.get('c1'), paid, failures]).toEqual(['"yes: paid 1"', 1, []]);
    }
  });

  it('R-12.4 a guarded tool is a copy with the same prototype and members; what is no tool is the same object', () => {
    const own = Object.assign(
      toolNamed('t', () => 'x'),
      { mine: 1 },
    );
    const hosted = { type: 'web_search' };
    const [copy, other] = guardTools<object>([own, hosted]);
    expect(other).toBe(hosted);
    expect(Object.getPrototypeOf(copy)).toBe(Object.getPrototypeOf(own));
    expect({ ...copy, invoke: 0, call: 0 }).toEqual({ ...own, invoke: 0, call: 0 });
  });

  it('R-2.9 a policy for a tool that is not there is refused, and a class that is none', () => {
    expect(() => guardTools([toolNamed('t', () => 1)], { policies: { u: {} } })).toThrow(/it takes t/);
    expect(() => guardTools([], { ToolMessage: {} as never })).toThrow(/ToolMessage must be LangChain’s class/);
  });
});
