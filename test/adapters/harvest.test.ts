import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { inspect } from 'node:util';
import { runInNewContext } from 'node:vm';
import Anthropic from '@anthropic-ai/sdk';
import { generateText, simulateReadableStream, stepCountIs, streamText, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createHarvest, guardTools, resumeMessages, type GuardedHarvest } from 'spillway/adapters/ai-sdk';
import { guardTools as guardAnthropic, resumeMessages as resumeAnthropic } from 'spillway/adapters/anthropic';
import { guardClient } from 'spillway/adapters/mcp';
import { resumeMessages as resumeOpenai } from 'spillway/adapters/openai-agents';
import { describe, expect, it } from 'vitest';
import { scriptedModel, toolSet } from './frameworks/ai-sdk.ts';
import { runnableTools, scriptedClient } from './frameworks/anthropic.ts';
import { CANARY, abortLate, defaultsOf, nothingSeen, type ModelCall } from './frameworks/kit.ts';

const GO: ModelMessage[] = [{ role: 'user', content: 'go' }];
type Item = Readonly<Record<string, unknown>> & { readonly type: string };
const CANCELED =
  'The caller canceled the call. The tool may have run and taken effect. Check first whether it took effect. Do not try again unless you are asked to.';
const callsOf = (...names: string[]): ModelCall[] =>
  names.map((name, place) => ({ id: `c${place}`, name, input: { place } }));
const briefly = ({ calls }: GuardedHarvest): unknown[] =>
  calls.map(({ toolCallId, toolName, state, output, failure }) => [
    toolCallId,
    toolName,
    state,
    output ?? failure?.message,
  ]);

/** A run of AI SDK that its caller aborts once its quick tools have answered. */
const aborted = async (
  calls: readonly ModelCall[],
  tools: ReturnType<typeof toolSet>,
  harvest: GuardedHarvest = createHarvest(),
): Promise<GuardedHarvest> => {
  const controller = new AbortController();
  const model = scriptedModel({ calls, guarded: true }, nothingSeen());
  const run = harvest.run(() =>
    generateText({
      model,
      tools,
      messages: GO,
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      abortSignal: controller.signal,
    }),
  );
  await Promise.all([expect(run).rejects.toThrow(/abort/i), abortLate(controller, harvest, calls.length)]);
  return harvest;
};

describe('createHarvest', () => {
  it('R-5.6 keeps each call of an aborted run: its input, what it gave, what a model may read of its failure', async () => {
    const harvest = await aborted(
      callsOf('slow', 'good', 'bad', 'worded'),
      guardTools(toolSet(nothingSeen()), { defaults: defaultsOf({ timeoutMs: 60_000 }) }),
    );
    expect(briefly(harvest)).toEqual([
      ['c0', 'slow', 'failed', CANCELED],
      ['c1', 'good', 'succeeded', 'fine'],
      [
        'c2',
        'bad',
        'failed',
        'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
      ],
      ['c3', 'worded', 'failed', 'No city is called Atlantis.'],
    ]);
    expect(harvest.calls.map(({ input, framework, step }) => [input, framework, step])).toEqual(
      [0, 1, 2, 3].map((place) => [{ place }, 'ai-sdk', 0]),
    );
    expect(
      inspect(
        harvest.calls.map(({ origin: _, ...call }) => call),
        { depth: Infinity, showHidden: true },
      ),
    ).not.toContain(CANARY);
  });

  it('R-5.6 runs at the same time of one set of guarded tools keep apart', async () => {
    const tools = guardTools(toolSet(nothingSeen()), { defaults: { timeoutMs: 60_000 } });
    const runs = await Promise.all(
      ['a', 'b', 'c'].map((run) =>
        aborted(
          [
            { id: `${run}1`, name: 'slow', input: {} },
            { id: `${run}2`, name: 'good', input: {} },
          ],
          tools,
        ),
      ),
    );
    expect(runs.map((harvest) => harvest.calls.map(({ toolCallId, state }) => `${toolCallId} ${state}`))).toEqual([
      ['a1 failed', 'a2 succeeded'],
      ['b1 failed', 'b2 succeeded'],
      ['c1 failed', 'c2 succeeded'],
    ]);
  });

  it('R-5.6 calls outside of a harvest, and those that a tool makes itself, are no part of it', async () => {
    const inner = guardClient({ callTool: (_params: { name: string }) => Promise.resolve({ content: [] }) });
    const { outer } = guardTools({ outer: { execute: () => inner.callTool({ name: 'inner' }) } });
    const harvest = createHarvest();
    await outer.execute();
    await harvest.run(async () => {
      await sleep(1);
      await outer.execute();
      await inner.callTool({ name: 'own' });
    });
    await outer.execute();
    expect(harvest.calls.map(({ framework, toolName }) => [framework, toolName])).toEqual([
      ['ai-sdk', 'outer'],
      ['mcp', 'own'],
    ]);
  });

  it('R-5.6 one that runs still is said to run, and the bound keeps the latest', async () => {
    const { hang, echo } = guardTools({
      hang: { execute: () => new Promise<never>(() => undefined) },
      echo: { execute: (text: string) => Promise.resolve(text) },
    });
    const harvest = createHarvest({ maxCalls: 2 });
    await harvest.run(async () => {
      void Promise.resolve(hang.execute()).catch(() => undefined);
      expect(harvest.calls[0]).toMatchObject({ state: 'running', output: undefined, failure: undefined });
      for (const text of ['one', 'two', 'three']) await echo.execute(text);
    });
    expect([harvest.calls.map(({ output }) => output), harvest.forgotten]).toEqual([['two', 'three'], 2]);
    expect(() => createHarvest({ maxCalls: 0 })).toThrow(/maxCalls/);
    expect(() => createHarvest({ max: 3 } as never)).toThrow(/createHarvest has no option "max"/);
  });

  it('R-5.6 nothing outlives it, though the guarded tools do', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const tools = guardTools({ echo: { execute: (text: object) => Promise.resolve(text) } });
    const used = async (): Promise<readonly WeakRef<object>[]> => {
      const harvest = createHarvest();
      const output = { text: 'x'.repeat(1_000) };
      await harvest.run(() => tools.echo.execute(output));
      return [new WeakRef(harvest), new WeakRef(output)];
    };
    const refs = await used();
    // Collected again and again: what the engine's own frames hold goes when they do, which nobody can wait for.
    await expect
      .poll(() => (collect(), refs.map((ref) => ref.deref() === undefined)), { interval: 20 })
      .toEqual([true, true]);
    expect(await tools.echo.execute({})).toEqual({});
  });
});

describe('resumeMessages', () => {
  it('R-12.3 AI SDK: a run goes on from the step that was aborted, with every result of the steps before', async () => {
    const tools = guardTools(toolSet(nothingSeen()), { defaults: { timeoutMs: 60_000 } });
    const harvest = createHarvest();
    const first = await aborted(callsOf('good', 'slow'), tools, harvest);
    const messages = await resumeMessages(first, GO);
    const again = await aborted([{ id: 'd0', name: 'slow', input: {} }], tools);
    expect(messages).toEqual([
      ...GO,
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 'c0', toolName: 'good', input: { place: 0 } },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'slow', input: { place: 1 } },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c0', toolName: 'good', output: { type: 'text', value: 'fine' } },
          { type: 'tool-result', toolCallId: 'c1', toolName: 'slow', output: { type: 'error-text', value: CANCELED } },
        ],
      },
    ]);
    expect((await resumeMessages(again, messages)).length).toBe(3);
    expect(await resumeMessages(createHarvest(), GO)).toEqual(GO);
  });

  it('R-12.3 AI SDK: an output goes through the tool’s own `toModelOutput`; others become JSON', async () => {
    const execute = (): object => ({ at: new Date(0), nothing: undefined });
    const tools = guardTools({
      plain: { execute },
      worded: {
        execute,
        toModelOutput: ({ toolCallId }: { toolCallId: string }) => ({ type: 'text', value: `of ${toolCallId}` }),
      },
    });
    const harvest = createHarvest();
    const call = (tool: { execute: unknown }, toolCallId: string): unknown =>
      (tool.execute as (input: object, options: object) => unknown)({}, { toolCallId, messages: GO });
    await harvest.run(async () => {
      await call(tools.plain, 'p');
      await call(tools.worded, 'w');
    });
    const last = (await resumeMessages<object>(harvest, [])).at(-1) as { content: { output: unknown }[] };
    expect(last.content.map(({ output }) => output)).toEqual([
      { type: 'json', value: { at: '1970-01-01T00:00:00.000Z' } },
      { type: 'text', value: 'of w' },
    ]);
  });

  it('R-12.3 AI SDK: a stream that is read inside is kept as well', async () => {
    const finish = {
      type: 'finish',
      finishReason: { unified: 'tool-calls', raw: undefined },
      usage: { inputTokens: {}, outputTokens: {} },
    };
    const chunks = [
      { type: 'stream-start', warnings: [] },
      ...callsOf('good', 'slow').map(({ id, name }) => ({
        type: 'tool-call',
        toolCallId: id,
        toolName: name,
        input: '{}',
      })),
      finish,
    ];
    const model = new MockLanguageModelV4({
      doStream: () => Promise.resolve({ stream: simulateReadableStream({ chunks: chunks as never[] }) }),
    });
    const controller = new AbortController();
    const harvest = createHarvest();
    const tools = guardTools(toolSet(nothingSeen()), { defaults: { timeoutMs: 60_000 } });
    const read = harvest.run(async () => {
      for await (const _ of streamText({ model, tools, messages: GO, abortSignal: controller.signal }).stream);
    });
    await Promise.all([read, abortLate(controller, harvest, 2)]);
    expect(briefly(harvest)).toEqual([
      ['c0', 'good', 'succeeded', 'fine'],
      ['c1', 'slow', 'failed', CANCELED],
    ]);
  });

  it('R-12.3 Anthropic: what the runner has is kept, what it lacks is added, once', async () => {
    const controller = new AbortController();
    const tools = guardAnthropic(runnableTools(nothingSeen()), { defaults: { timeoutMs: 60_000 } });
    const runner = scriptedClient(
      { guarded: true, calls: callsOf('good', 'slow') },
      nothingSeen(),
    ).beta.messages.toolRunner(
      { model: 'scripted', max_tokens: 10, thread: false, messages: [{ role: 'user', content: 'go' }], tools },
      { signal: controller.signal },
    );
    const harvest = createHarvest();
    const ran = harvest.run(() => runner.runUntilDone());
    await Promise.all([expect(ran).rejects.toThrow(Anthropic.APIUserAbortError), abortLate(controller, harvest, 2)]);
    const use = (id: string, name: string, place: number): object => ({ type: 'tool_use', id, name, input: { place } });
    const results = [
      { type: 'tool_result', tool_use_id: 'c0', content: 'fine' },
      { type: 'tool_result', tool_use_id: 'c1', content: `Error: ${CANCELED}`, is_error: true },
    ];
    const whole = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [use('c0', 'good', 0), use('c1', 'slow', 1)] },
      { role: 'user', content: results },
    ];
    expect(resumeAnthropic(harvest, runner.params.messages)).toEqual(whole);
    expect(resumeAnthropic(harvest, whole as Anthropic.Beta.BetaMessageParam[])).toEqual(whole);
    expect(resumeAnthropic(harvest, whole.slice(0, 2) as Anthropic.Beta.BetaMessageParam[])).toEqual(whole);
    expect(resumeAnthropic(harvest, whole.slice(0, 1) as Anthropic.Beta.BetaMessageParam[])).toEqual(whole);
  });

  it('R-12.3 Anthropic: results come before what the user said next, and a call that nobody kept is answered honestly', () => {
    const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'x', name: 'other', input: {} }] };
    const lost = { type: 'tool_result', tool_use_id: 'x', content: `Error: ${CANCELED}`, is_error: true };
    expect(resumeAnthropic(createHarvest(), [use, { role: 'user', content: 'wait' }])).toEqual([
      use,
      { role: 'user', content: [lost, { type: 'text', text: 'wait' }] },
    ]);
    expect(resumeAnthropic(createHarvest(), [use, { role: 'assistant', content: 'and' }])).toEqual([
      use,
      { role: 'user', content: [lost] },
      { role: 'assistant', content: 'and' },
    ]);
  });

  it('R-12.3 OpenAI Agents: an item for each call that has none, the last of those with one id', () => {
    const call = (callId: string): Item => ({ type: 'function_call', callId, name: 't', arguments: '{}' });
    const result = (callId: string, text: string): Item => ({
      type: 'function_call_result',
      name: 't',
      callId,
      status: 'completed',
      output: { type: 'text', text },
    });
    const answered = [call('a'), result('a', 'first')];
    expect(resumeOpenai(createHarvest(), answered)).toEqual(answered);
    expect(resumeOpenai(createHarvest(), [...answered, call('a'), call('b')])).toEqual([
      ...answered,
      call('a'),
      result('a', CANCELED),
      call('b'),
      result('b', CANCELED),
    ]);
  });
});
