// Was: guarding could skip a human approval (OpenAI Agents), and an approved payment that failed after paying was made
// again. Now: no framework skips one, and one approval pays once.
/* oxlint-disable typescript/no-deprecated */
import { Agent, run, tool, type Tool } from '@openai/agents-core';
import { dynamicTool, generateText, stepCountIs, type ModelMessage } from 'ai';
import { createSpillway } from 'spillway';
import { guardTools as guardAiSdk } from 'spillway/adapters/ai-sdk';
import { spillwayMiddleware } from 'spillway/adapters/langchain';
import { guardTool, guardTools as guardOpenai } from 'spillway/adapters/openai-agents';
import { createApprovals } from 'spillway/gates';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { scriptedModel as aiSdkModel } from '../adapters/frameworks/ai-sdk.ts';
import { nothingSeen, type Script } from '../adapters/frameworks/kit.ts';
import { loadLangChain, scriptedModel as langChainModel, type LangChain } from '../adapters/frameworks/langchain.ts';
import { scriptedModel as openaiModel } from '../adapters/frameworks/openai-agents.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

const SCRIPT: Script = { calls: [{ id: 'c1', name: 'pay', input: { amount: '5000' } }], guarded: true };
/** The model writes a text; what a policy is asked about is a number above its limit. */
const parameters = z.object({ amount: z.coerce.number() });
const isLarge = (input: unknown): boolean =>
  typeof (input as { amount: unknown }).amount === 'number' && (input as { amount: number }).amount > 100;

type Pay = () => Promise<string>;
/** Runs until a person is asked; gives how often that was, and a way to say yes. */
type Approving = (
  pay: Pay,
  guard: GuardLayerOptions | undefined,
) => Promise<{ readonly asked: number; approve(): Promise<unknown> }>;

const aiSdk: Approving = async (execute, guard) => {
  const own = { pay: dynamicTool({ inputSchema: parameters, needsApproval: isLarge, execute }) };
  const tools = guard === undefined ? own : guardAiSdk(own, guard);
  const messages: ModelMessage[] = [{ role: 'user', content: 'go' }];
  const first = await generateText({
    model: aiSdkModel(SCRIPT, nothingSeen()),
    tools,
    messages,
    stopWhen: stepCountIs(3),
    maxRetries: 0,
  });
  const requests = first.content.filter((part) => part.type === 'tool-approval-request');
  const approve = async (): Promise<unknown> => {
    const content = requests.map(({ approvalId }) => ({
      type: 'tool-approval-response' as const,
      approvalId,
      approved: true,
    }));
    const model = aiSdkModel({ calls: [], guarded: true }, nothingSeen());
    return generateText({
      model,
      tools,
      messages: [...messages, ...first.response.messages, { role: 'tool', content }],
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    });
  };
  return { asked: requests.length, approve };
};

const openai =
  (toolOf: (execute: Pay, guard: GuardLayerOptions | undefined) => Tool[]): Approving =>
  async (execute, guard) => {
    const agent = new Agent({ name: 'test', tools: toolOf(execute, guard), model: openaiModel(SCRIPT, nothingSeen()) });
    const first = await run(agent, 'go');
    const { interruptions } = first;
    const approve = (): Promise<unknown> => {
      for (const interruption of interruptions) first.state.approve(interruption);
      return run(agent, first.state);
    };
    return { asked: interruptions.length, approve };
  };
const described = { name: 'pay', description: 'pays', parameters } as const;
const finished = openai((execute, guard) => {
  const own = [tool({ ...described, needsApproval: true, execute })] as Tool[];
  return guard === undefined ? own : guardOpenai(own, guard);
});
const made = openai((execute, guard) => {
  const make = guard === undefined ? tool : guardTool(tool, guard);
  return [
    make({ ...described, needsApproval: (_context, input) => Promise.resolve(isLarge(input)), execute }),
  ] as Tool[];
});

/** What waits for a person stands under this name. */
const INTERRUPTS = '__interrupt__';
type Interrupted = Readonly<Partial<Record<typeof INTERRUPTS, readonly unknown[]>>>;
type WithApprovals = LangChain & {
  humanInTheLoopMiddleware(options: object): object;
  readonly MemorySaver: new () => object;
};

/** @param first whether the layer's middleware stands before the one that asks */
const langChain =
  (first: boolean): Approving =>
  async (execute, guard) => {
    const lc = (await loadLangChain()) as WithApprovals;
    const asking = lc.humanInTheLoopMiddleware({ interruptOn: { pay: true } });
    const guarding =
      guard === undefined ? [] : [lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage, ...guard }))];
    const tools = [lc.tool(execute, { name: 'pay', description: 'pays', schema: parameters })];
    const agent = lc.createAgent({
      model: langChainModel(lc, SCRIPT, nothingSeen()),
      tools,
      middleware: first ? [...guarding, asking] : [asking, ...guarding],
      checkpointer: new lc.MemorySaver(),
    });
    const config = { configurable: { thread_id: 't1' } };
    const result = (await agent.invoke({ messages: [{ role: 'user', content: 'go' }] }, config)) as Interrupted;
    const approve = (): Promise<unknown> =>
      agent.invoke(new lc.Command({ resume: { decisions: [{ type: 'approve' }] } }), config);
    return { asked: result[INTERRUPTS]?.length ?? 0, approve };
  };

const FRAMEWORKS: ReadonlyArray<readonly [string, Approving]> = [
  ['AI SDK, needsApproval of the input', aiSdk],
  ['OpenAI Agents, a finished tool with needsApproval: true', finished],
  ['OpenAI Agents, a guarded tool() with needsApproval of the input', made],
  ['LangChain, the layer before the one that asks', langChain(true)],
  ['LangChain, the layer after the one that asks', langChain(false)],
];

const AFTER_PAYING: Readonly<Record<string, Pay>> = {
  nothing: () => Promise.resolve('paid'),
  'a bare error': () => Promise.reject(new Error('could not write the receipt')),
  ECONNRESET: () => Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })),
  'HTTP 500': () => Promise.reject(Object.assign(new Error('Internal Server Error'), { status: 500 })),
  'a hang': () => new Promise(() => undefined),
};

describe.each(FRAMEWORKS)('%s', (_name, approving) => {
  beforeAll(async () => {
    await loadLangChain();
  }, SIDE_INSTALL_TIMEOUT_MS);

  it('R-2.5 alone a person is asked once, and nothing is paid before', async () => {
    let paid = 0;
    const { asked } = await approving(() => Promise.resolve(`paid ${++paid}`), undefined);
    expect([asked, paid]).toEqual([1, 0]);
  });

  it.each(Object.entries(AFTER_PAYING))(
    'R-2.5 guarded, %s after paying: asked once, nothing paid before, and once after',
    async (_fault, after) => {
      for (const guard of [
        { defaults: { timeoutMs: 50 } },
        { spillway: createSpillway({ defaults: { timeoutMs: 50 } }) },
      ]) {
        let paid = 0;
        const pay: Pay = () => {
          paid++;
          return after();
        };
        const { asked, approve } = await approving(pay, guard);
        expect([asked, paid]).toEqual([1, 0]);
        await approve();
        expect(paid).toBe(1);
      }
    },
  );

  it.each([true, false])('R-22.1 a layer that has a person approve it, too, is not gone round: %s', async (isYes) => {
    let paid = 0;
    let own = 0;
    const approvals = createApprovals({
      ask: () => {
        own++;
        return isYes;
      },
    });
    const spillway = createSpillway({ approvals, defaults: { needsApproval: true } });
    const { asked, approve } = await approving(() => Promise.resolve(`paid ${++paid}`), { spillway });
    // The framework asks first, as alone; nobody of the layer is asked about what it may refuse.
    expect([asked, own, paid]).toEqual([1, 0, 0]);
    await approve();
    expect([own, paid]).toEqual([1, isYes ? 1 : 0]);
    await spillway.close();
  });
});
