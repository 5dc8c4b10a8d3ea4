import { createSpillway, type TraceEvent } from 'spillway';
import { createHarvest } from 'spillway/adapters/function';
import { guardTools } from 'spillway/adapters/claude-agent';
import { spillwayMiddleware } from 'spillway/adapters/genkit';
import { guardTool as guardAdk } from 'spillway/adapters/google-adk';
import { guardTool as guardLlama } from 'spillway/adapters/llamaindex';
import { guardTool as guardMastra, guardTools as guardFinished } from 'spillway/adapters/mastra';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { scriptedModel } from './frameworks/ai-sdk.ts';
import { PAYING_BESIDE, loadAll } from './frameworks/all.ts';
import { claudeOf, loadClaudeAgent } from './frameworks/claude-agent.ts';
import { loadGenkit, scriptedAi } from './frameworks/genkit.ts';
import { loadAdk, runAdk, scriptedLlm, type AdkContext } from './frameworks/google-adk.ts';
import { CANARY, PAY_SCRIPT, nothingSeen, type Seen } from './frameworks/kit.ts';
import { loadLlamaIndex } from './frameworks/llamaindex.ts';
import { loadMastra, mastraFinishedPaying } from './frameworks/mastra.ts';
import { openaiMcpPaying } from './frameworks/openai-mcp.ts';

beforeAll(loadAll, SIDE_INSTALL_TIMEOUT_MS);

/** Those that tell a tool no id of the model's. */
const WITHOUT_IDS = ['LlamaIndex', 'OpenAI Agents, mcpServers'];

describe.each([...PAYING_BESIDE, openaiMcpPaying, mastraFinishedPaying])('$name', ({ name, pay }) => {
  it('R-3.8 a breaker opens, and the tool is not called', async () => {
    const spillway = createSpillway({ defaults: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 2 } } });
    let ran = 0;
    const failing = (): Promise<never> => Promise.reject(new Error(`down ${++ran}`));
    for (let n = 0; n < 3; n++) await pay(failing, { spillway }).catch(() => undefined);
    expect([ran, spillway.breakers.get('pay')?.state.type]).toEqual([2, 'open']);
  });

  it('R-5.6 R-7.1 a harvest and the trace have the call, under the model’s id if it is told', async () => {
    const spillway = createSpillway();
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    const harvest = createHarvest();
    await harvest.run(() => pay(() => Promise.resolve('paid'), { spillway }));
    const toolCallId = WITHOUT_IDS.includes(name) ? undefined : 'c1';
    expect(harvest.calls).toMatchObject([{ toolName: 'pay', toolCallId, state: 'succeeded' }]);
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({
      toolName: 'pay',
      ...(toolCallId === undefined ? {} : { toolCallId }),
    });
  });
});

const reads = { policy: { effects: 'read', retry: { initialDelayMs: 0, maxAttempts: 3 } } } as const;

describe('Mastra', () => {
  it('R-12.2 every attempt gets the input that Mastra gives alone, which changes it on the way', async () => {
    const { Agent, createTool } = await loadMastra();
    const run = async (make: typeof createTool, failures: number): Promise<unknown[]> => {
      const inputs: unknown[] = [];
      const pay = make({
        id: 'pay',
        description: 'pays',
        inputSchema: z.object({ cents: z.number().transform((cents) => cents / 100) }),
        execute: (input) => {
          inputs.push(input);
          return inputs.length <= failures ? Promise.reject(new Error('busy')) : 'paid';
        },
      });
      const calls = [{ id: 'c1', name: 'pay', input: { cents: 500 } }];
      const model = scriptedModel({ calls, guarded: true }, nothingSeen());
      await new Agent({ id: 'test', name: 'test', instructions: 'go', model, tools: { pay } }).generate('go');
      return inputs;
    };
    const [alone] = await run(createTool, 0);
    expect(await run(guardMastra(createTool, reads), 2)).toEqual([alone, alone, alone]);
  });
});

describe('finished tools of Mastra', () => {
  it('R-2.5 R-12.2 run once, with the input that they get alone, and keep their members', async () => {
    const { Agent, Tool, createTool } = await loadMastra();
    const run = async (guarded: boolean): Promise<unknown[]> => {
      const inputs: unknown[] = [];
      const own = createTool({
        id: 'pay',
        description: 'pays',
        inputSchema: z.object({ cents: z.number().transform((cents) => cents / 100) }),
        execute: (input) => {
          inputs.push(input);
          return Promise.reject(Object.assign(new Error('busy'), { status: 503 }));
        },
      });
      const tools = guarded ? guardFinished({ pay: own }, { policies: { pay: { effects: 'read' } } }) : { pay: own };
      expect(tools.pay).toBeInstanceOf(Tool);
      expect({ ...tools.pay, execute: 0 }).toEqual({ ...own, execute: 0 });
      const calls = [{ id: 'c1', name: 'pay', input: { cents: 500 } }];
      const model = scriptedModel({ calls, guarded: true }, nothingSeen());
      await new Agent({ id: 'test', name: 'test', instructions: 'go', model, tools }).generate('go');
      return inputs;
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it('R-2.9 a policy that asks for retries is refused, and one for a tool that is not there', () => {
    const tools = { pay: { execute: () => 1 } };
    expect(() => guardFinished(tools, { policies: { pay: { retry: { maxAttempts: 2 } } } })).toThrow(
      /asks for 2 attempts/,
    );
    expect(() => guardFinished(tools, { policies: { typo: {} } })).toThrow(/no option "typo"/);
  });
});

describe('Google ADK', () => {
  it('R-8.2 an attempt’s context is the call’s: its state is kept, and it is of the same class', async () => {
    const adk = await loadAdk();
    const FunctionTool = guardAdk(adk.FunctionTool);
    const contexts: AdkContext[] = [];
    const execute = (_input: unknown, context: AdkContext): string => {
      contexts.push(context);
      context.state.set('paid', true);
      return String(context.state.get('paid'));
    };
    const pay = new FunctionTool({ name: 'pay', description: 'pays', parameters: z.object({}), execute });
    expect(pay).toBeInstanceOf(adk.FunctionTool);
    const { runner, sessionId } = await runAdk(adk, scriptedLlm(adk, PAY_SCRIPT, nothingSeen()), [pay]);
    const session = await runner.sessionService.getSession({ appName: runner.appName, userId: 'u', sessionId });
    expect([session?.state['paid'], contexts[0]?.functionCallId, contexts[0]?.abortSignal?.aborted]).toEqual([
      true,
      'c1',
      false,
    ]);
    expect(contexts[0]).toBeInstanceOf(adk.Context);
  });
});

describe('LlamaIndex', () => {
  it('R-8.2 a bound tool is guarded, too, and gets what it is bound to', async () => {
    const { FunctionTool, tool } = await loadLlamaIndex();
    let ran = 0;
    const execute = (_input: unknown, additional?: object): unknown =>
      ++ran < 3 ? Promise.reject(new Error('busy')) : JSON.stringify(additional);
    const definition = { name: 'look', description: 'looks', parameters: z.object({}), execute };
    expect(await guardLlama(tool, reads)(definition).bind({ user: 'u' }).call({})).toBe('{"user":"u"}');
    expect(ran).toBe(3);
    expect(await guardLlama(FunctionTool.from)(() => 'x', { name: 'y', description: 'd' }).call({})).toBe('x');
  });
});

describe('Claude Agent SDK', () => {
  const answer = (text: string, isError = false): object => ({ content: [{ type: 'text', text }], isError });

  it('R-12.4 a result with `isError` is for the model: it is handed on, and counts as a failure', async () => {
    const sdk = await loadClaudeAgent();
    const spillway = createSpillway({ defaults: { retry: { maxAttempts: 1 } } });
    const own = sdk.tool('look', 'looks', {}, () => Promise.resolve(answer('No city is called Atlantis.', true)));
    const client = await claudeOf(sdk, guardTools([own], { spillway }));
    expect(await client.callTool({ name: 'look', arguments: {} })).toEqual(answer('No city is called Atlantis.', true));
    expect(spillway.breakers.get('look')?.state.consecutiveFailures).toBe(1);
  });

  it('R-2.5 a tool that says it only reads is tried again, unless the host says otherwise', async () => {
    const sdk = await loadClaudeAgent();
    const tries = async (readOnlyHint: boolean, effects?: 'mutating'): Promise<number> => {
      let ran = 0;
      const handler = (): Promise<object> =>
        ++ran < 3 ? Promise.reject(new Error(CANARY)) : Promise.resolve(answer('x'));
      const own = sdk.tool('look', 'looks', {}, handler, { annotations: { readOnlyHint } });
      const defaults = { retry: { initialDelayMs: 0, maxAttempts: 3 }, ...(effects && { effects }) };
      const client = await claudeOf(sdk, guardTools([own], { defaults }));
      expect(JSON.stringify(await client.callTool({ name: 'look', arguments: {} }))).not.toContain(CANARY);
      return ran;
    };
    expect([await tries(true), await tries(false), await tries(true, 'mutating')]).toEqual([3, 1, 1]);
  });

  it('R-2.9 what is no tool, and a policy for one that is not there, are refused', () => {
    expect(() => guardTools([{ name: 'x' }])).toThrow(/an object with a name and a handler/);
    expect(() => guardTools([{ name: 'x', handler: () => 1 }], { policies: { y: {} } })).toThrow(/it takes x/);
  });
});

describe('Genkit', () => {
  const told = async (output: unknown, execute: () => Promise<unknown>): Promise<Seen> => {
    const genkit = await loadGenkit();
    const { generateMiddleware, z: own } = genkit;
    const seen = nothingSeen();
    const ai = scriptedAi(genkit, PAY_SCRIPT, seen);
    const schemas = { inputSchema: own.object({}), outputSchema: output };
    const pay = ai.defineTool({ name: 'pay', description: 'pays', ...schemas }, execute);
    await ai.generate({
      model: ai.model,
      prompt: 'go',
      tools: [pay],
      use: [spillwayMiddleware({ generateMiddleware })()],
    });
    return seen;
  };

  it('R-12.4 a failure is told whatever the output schema, which a sentence would not fit', async () => {
    const { z: own } = await loadGenkit();
    const seen = await told(own.object({ paid: own.number() }), () => Promise.reject(new Error(CANARY)));
    expect(seen.told.get('c1')).toContain('It may have taken effect');
    expect(seen.shown).not.toContain(CANARY);
  });

  it('R-2.5 an output that does not fit comes after the effect: it may have run, and is not tried again', async () => {
    const { z: own } = await loadGenkit();
    let ran = 0;
    const seen = await told(own.object({ paid: own.number() }), () => Promise.resolve({ paid: `no ${++ran}` }));
    expect([ran, seen.told.get('c1')]).toEqual([1, expect.stringContaining('may have') as string]);
  });

  it('R-2.9 Genkit’s maker is asked for when it is missing', () => {
    expect(() => spillwayMiddleware({} as never)).toThrow(/generateMiddleware must be Genkit’s function/);
  });
});
