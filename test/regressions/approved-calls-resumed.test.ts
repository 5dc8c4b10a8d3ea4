// Was: the messages to resume an aborted AI SDK run made calls again that a person had approved. Now: each call is
// there once, is only answered, and nothing runs again.
import { generateText, stepCountIs, streamText, type ModelMessage } from 'ai';
import type { MockLanguageModelV4 } from 'ai/test';
import { createHarvest, guardTools, resumeMessages, type GuardedHarvest } from 'spillway/adapters/ai-sdk';
import { describe, expect, it } from 'vitest';
import { scriptedModel, toolSet } from '../adapters/frameworks/ai-sdk.ts';
import { ANSWER, abortLate, nothingSeen } from '../adapters/frameworks/kit.ts';

const call = (
  toolCallId: string,
  toolName: string,
): { type: 'tool-call'; toolCallId: string; toolName: string; input: object } => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input: {},
});
const APPROVED: ModelMessage[] = [
  { role: 'user', content: 'go' },
  {
    role: 'assistant',
    content: [
      call('c0', 'good'),
      call('c1', 'slow'),
      { type: 'tool-approval-request', approvalId: 'a0', toolCallId: 'c0' },
      { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-approval-response', approvalId: 'a0', approved: true },
      { type: 'tool-approval-response', approvalId: 'a1', approved: true },
    ],
  },
];

/** A run that begins with calls which a person has approved, and is aborted during them. */
const aborted = async (
  run: (options: {
    model: MockLanguageModelV4;
    messages: ModelMessage[];
    abortSignal: AbortSignal;
    tools: ReturnType<typeof toolSet>;
  }) => PromiseLike<unknown>,
): Promise<GuardedHarvest> => {
  const harvest = createHarvest();
  const controller = new AbortController();
  const tools = guardTools(toolSet(nothingSeen()), { defaults: { timeoutMs: 60_000 } });
  const ran = harvest.run(async () =>
    run({ model: scriptedModel(ANSWER, nothingSeen()), messages: APPROVED, abortSignal: controller.signal, tools }),
  );
  await Promise.all([ran.then(undefined, () => undefined), abortLate(controller, harvest, 2)]);
  return harvest;
};

describe('calls that were approved', () => {
  it.each<[string, Parameters<typeof aborted>[0]]>([
    ['generateText', (options) => generateText(options)],
    ['streamText', (options) => streamText({ ...options, onError: () => undefined }).consumeStream()],
  ])('R-12.3 %s: what the conversation has already is not made again, only answered', async (_name, run) => {
    const harvest = await aborted(run);
    expect(harvest.calls.map(({ toolCallId, state }) => [toolCallId, state])).toEqual([
      ['c0', 'succeeded'],
      ['c1', 'failed'],
    ]);
    const messages = await resumeMessages(harvest, APPROVED);
    const made = messages
      .flatMap(({ role, content }) => (role === 'assistant' && typeof content !== 'string' ? content : []))
      .filter(({ type }) => type === 'tool-call');
    expect(made.length).toBe(2);
    const seen = nothingSeen();
    const tools = toolSet(seen);
    await generateText({ model: scriptedModel(ANSWER, seen), messages, tools, stopWhen: stepCountIs(2) });
    expect([...seen.told.keys()]).toEqual(['c0', 'c1']);
    // Nothing runs a second time.
    expect(seen.ran).toEqual([]);
  });
});
