import type { ModelMessage } from 'ai';
import { guardTool as guardAdk, guardTools as guardFinishedAdk } from 'spillway/adapters/google-adk';
import { spillwayMiddleware } from 'spillway/adapters/genkit';
import { guardTool as guardMastra, guardTools as guardFinished } from 'spillway/adapters/mastra';
import { guardTool as guardStrands } from 'spillway/adapters/strands';
import { guardTool as guardVolt } from 'spillway/adapters/voltagent';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../../src/adapters/guarded/calls.ts';
import { loadAdk, scriptedLlm } from './google-adk.ts';
import { loadGenkit, scriptedAi } from './genkit.ts';
import { nothingSeen, onePolicy, type Pay, type Script } from './kit.ts';
import { loadMastra } from './mastra.ts';
import { scriptedModel } from './ai-sdk.ts';
import { loadStrands, scriptedStrands, type StrandsContext } from './strands.ts';
import { agentOf, loadVoltAgent, olderModel } from './voltagent.ts';

/** The model writes a text; what a policy is asked about is a number above its limit. */
const SCRIPT: Script = { calls: [{ id: 'c1', name: 'pay', input: { amount: '5000' } }], guarded: true };
const schema = z.object({ amount: z.coerce.number() });
const isLarge = (input: unknown): boolean => Number((input as { amount: unknown }).amount) > 100;

/** Runs until a person is asked; gives how often that was, and a way to say yes. */
export type Approving = (
  pay: Pay,
  guard: GuardLayerOptions | undefined,
) => Promise<{ readonly asked: number; approve(): Promise<unknown> }>;

const optionsOf = (guard: GuardLayerOptions): ReturnType<typeof onePolicy> => onePolicy(guard, 'pay');

/** Its host asks before the tool runs, or the tool itself suspends the run. */
const mastra =
  (finished: boolean, suspends: boolean): Approving =>
  async (execute, guard) => {
    const { Agent, InMemoryStore, Mastra, createTool } = await loadMastra();
    const make = guard === undefined || finished ? createTool : guardMastra(createTool, optionsOf(guard));
    const own = make({
      id: 'pay',
      description: 'pays',
      inputSchema: schema,
      ...(suspends ? {} : { requireApproval: (input: unknown) => Promise.resolve(isLarge(input)) }),
      execute: (_input, { agent }) =>
        suspends && agent?.resumeData === undefined ? agent?.suspend({ asks: 'a large amount' }) : execute(),
    });
    const tools = guard === undefined || !finished ? { pay: own } : guardFinished({ pay: own }, guard);
    const model = scriptedModel(SCRIPT, nothingSeen());
    const test = new Agent({ id: 'test', name: 'test', instructions: 'go', model, tools });
    const agent = new Mastra({ agents: { test }, storage: new InMemoryStore({ id: 'store' }), logger: false }).getAgent(
      'test',
    );
    const { runId, finishReason } = await agent.generate('go', { maxSteps: 3 });
    const toolCallId = 'c1';
    return {
      asked: finishReason === 'suspended' ? 1 : 0,
      approve: () =>
        suspends
          ? agent.resumeGenerate({ approved: true }, { runId, toolCallId })
          : agent.approveToolCallGenerate({ runId, toolCallId }),
    };
  };

const strands: Approving = async (execute, guard) => {
  const loaded = await loadStrands();
  const make = guard === undefined ? loaded.tool : guardStrands(loaded.tool, optionsOf(guard));
  const callback = (_input: unknown, context: StrandsContext): Promise<string> => {
    context.interrupt({ name: 'approval', reason: 'a large amount' });
    return execute();
  };
  const pay = make({ name: 'pay', description: 'pays', inputSchema: schema, callback });
  const model = scriptedStrands(loaded, SCRIPT, nothingSeen());
  const agent = new loaded.Agent({ model, tools: [pay], printer: false });
  const { interrupts = [] } = await agent.invoke('go');
  const yes = interrupts.map(({ id }) => ({ interruptResponse: { interruptId: id, response: 'yes' } }));
  return { asked: interrupts.length, approve: () => agent.invoke(yes) };
};

/** Under this name ADK asks its host. */
const ASKS = 'adk_request_confirmation';
const adk =
  (finished: boolean): Approving =>
  async (execute, guard) => {
    const loaded = await loadAdk();
    const own = guard === undefined || finished;
    const FunctionTool = own ? loaded.FunctionTool : guardAdk(loaded.FunctionTool, optionsOf(guard));
    const made = new FunctionTool({
      name: 'pay',
      description: 'pays',
      parameters: schema,
      requireConfirmation: isLarge,
      execute,
    });
    const [pay = made] = guard === undefined || !finished ? [made] : guardFinishedAdk([made], guard);
    const agent = new loaded.LlmAgent({
      name: 'test',
      model: scriptedLlm(loaded, SCRIPT, nothingSeen()),
      tools: [pay],
    });
    const runner = new loaded.InMemoryRunner({ agent, appName: 'test' });
    const { id: sessionId } = await runner.sessionService.createSession({ appName: runner.appName, userId: 'u' });
    const say = async (parts: readonly object[]): Promise<string[]> => {
      const asks: string[] = [];
      for await (const { content } of runner.runAsync({ userId: 'u', sessionId, newMessage: { role: 'user', parts } }))
        for (const { functionCall } of content?.parts ?? [])
          if (functionCall?.name === ASKS) asks.push(functionCall.id ?? '');
      return asks;
    };
    const asks = await say([{ text: 'go' }]);
    const yes = asks.map((id) => ({ functionResponse: { id, name: ASKS, response: { confirmed: true } } }));
    return { asked: asks.length, approve: () => say(yes) };
  };

const genkit: Approving = async (execute, guard) => {
  const loaded = await loadGenkit();
  const { generateMiddleware, z: own } = loaded;
  const ai = scriptedAi(loaded, SCRIPT, nothingSeen());
  const pay = ai.defineTool(
    { name: 'pay', description: 'pays', inputSchema: own.object({ amount: own.any() }) },
    (_input, context) => (context.resumed === undefined ? context.interrupt({ asks: 'a large amount' }) : execute()),
  );
  const use = guard === undefined ? [] : [spillwayMiddleware({ generateMiddleware, ...guard })()];
  const options = { model: ai.model, tools: [pay], use };
  const { interrupts, messages } = await ai.generate({ ...options, prompt: 'go' });
  const restart = interrupts.map((part) => ({ ...part, metadata: { ...part.metadata, resumed: true } }));
  return { asked: interrupts.length, approve: () => ai.generate({ ...options, messages, resume: { restart } }) };
};

const voltAgent: Approving = async (execute, guard) => {
  const loaded = await loadVoltAgent();
  const make = guard === undefined ? loaded.createTool : guardVolt(loaded.createTool, optionsOf(guard));
  const pay = make({ name: 'pay', description: 'pays', parameters: schema, needsApproval: isLarge, execute });
  const first = await agentOf(loaded, olderModel(SCRIPT, nothingSeen()), [pay]).generateText('go');
  const asks = first.content.filter(({ type }) => type === 'tool-approval-request') as unknown as {
    approvalId: string;
  }[];
  const answers = asks.map(({ approvalId }) => ({
    type: 'tool-approval-response' as const,
    approvalId,
    approved: true,
  }));
  const messages: ModelMessage[] = [
    { role: 'user', content: 'go' },
    ...first.response.messages,
    { role: 'tool', content: answers },
  ];
  const rest = olderModel({ calls: [], guarded: true }, nothingSeen());
  return { asked: asks.length, approve: () => agentOf(loaded, rest, [pay]).generateText(messages) };
};

export const APPROVING: ReadonlyArray<readonly [string, Approving]> = [
  ['Mastra, requireApproval of the input', mastra(false, false)],
  ['Mastra, a finished tool with requireApproval of the input', mastra(true, false)],
  ['Mastra, suspend within the tool', mastra(false, true)],
  ['Mastra, suspend within a finished tool', mastra(true, true)],
  ['Strands, an interrupt within the tool', strands],
  ['Google ADK, requireConfirmation of the input', adk(false)],
  ['Google ADK, a finished tool with requireConfirmation', adk(true)],
  ['Genkit, an interrupt within the tool', genkit],
  ['VoltAgent, needsApproval of the input', voltAgent],
];
