import { simulateReadableStream, stepCountIs, streamText, tool, type ToolSet } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { getEventListeners } from 'node:events';
import { ToolFailure, guardTools } from 'spillway/adapters/ai-sdk';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { aiSdk } from './frameworks/ai-sdk.ts';
import { nothingSeen } from './frameworks/kit.ts';

const never = (): Promise<never> => new Promise(() => undefined);
const caught = (work: unknown): Promise<unknown> =>
  Promise.resolve(work).then(
    (value) => ({ value }),
    (error: unknown) => error,
  );
const collect = async (stream: unknown, got: unknown[]): Promise<unknown> => {
  for await (const each of stream as AsyncIterable<unknown>) got.push(each);
  return 'ended';
};

describe('guardTools for AI SDK', () => {
  it('R-12.4 everything but execute stays as it is, and a tool without one is the same object', () => {
    const mark = Symbol('mark');
    const inputSchema = z.object({ city: z.string() });
    const weather = {
      description: 'weather',
      inputSchema,
      needsApproval: () => true,
      toModelOutput: () => ({ type: 'text', value: 'x' }),
      providerOptions: { a: { b: 1 } },
      execute: () => 1,
      [mark]: 'kept',
    };
    const onClient = { description: 'asks the user', inputSchema };
    const guarded = guardTools({ weather, onClient });
    expect(Object.keys(guarded)).toEqual(['weather', 'onClient']);
    expect(guarded.onClient).toBe(onClient);
    expect({ ...guarded.weather, execute: weather.execute }).toEqual(weather);
    expect(guarded.weather[mark]).toBe('kept');
    expect(guarded.weather.execute).not.toBe(weather.execute);
  });

  it('R-4.2 a tool is given its input, its own options and a signal of its attempt', async () => {
    const given: unknown[] = [];
    const controller = new AbortController();
    const input = { city: 'Oulu' };
    const options = { toolCallId: 'c1', messages: [], context: { user: 'u' }, abortSignal: controller.signal };
    const tools = {
      weather: {
        unit: '°C',
        execute(city: typeof input, more: typeof options) {
          given.push(city, more);
          return `21 ${this.unit}`;
        },
      },
    };
    // A promise, though the tool itself gives a value.
    await expect(Promise.resolve(guardTools(tools).weather.execute(input, options))).resolves.toBe('21 °C');
    expect(given[0]).toEqual(input);
    expect(given[1]).toEqual({ ...options, abortSignal: expect.any(AbortSignal) as unknown });
    expect((given[1] as typeof options).abortSignal).not.toBe(controller.signal);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it.each([undefined, null, 0, '', [1], new Map([[1, 2]]), () => 'a function'])(
    'R-11.2 a value comes back as it is: %s',
    async (value) => {
      expect(await Promise.resolve(guardTools({ t: { execute: () => value } }).t.execute())).toBe(value);
    },
  );

  it('R-4.1 the timeout is hard, its signal is aborted, and what may have taken effect is not tried again', async () => {
    const runtime = virtualRuntime();
    const signals: AbortSignal[] = [];
    const execute = (_input: object, { abortSignal }: { abortSignal?: AbortSignal }): Promise<never> => {
      if (abortSignal !== undefined) signals.push(abortSignal);
      return never();
    };
    const { slow } = guardTools(
      { slow: { execute } },
      { runtime, profile: 'resilient', defaults: { timeoutMs: 1_000 } },
    );
    const failed = caught(slow.execute({}, {}));
    await runtime.advance(60_000);
    expect(await failed).toMatchObject({
      name: 'ToolFailure',
      kind: 'timeout',
      message:
        'The tool did not answer in time; it may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
    });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(runtime.pending).toBe(0);
  });

  it('R-2.1 a failure that passes is tried again, each time with a fresh signal', async () => {
    const runtime = virtualRuntime();
    const signals = new Set<AbortSignal | undefined>();
    const flaky = {
      execute: (_input: object, { abortSignal }: { abortSignal?: AbortSignal }) => {
        signals.add(abortSignal);
        return signals.size < 3
          ? Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
          : 'third';
      },
    };
    const answer = guardTools({ flaky }, { runtime }).flaky.execute({}, {});
    await runtime.run();
    expect(await answer).toBe('third');
  });

  it('R-4.2 the caller’s abort settles a call at once, as canceled', async () => {
    const controller = new AbortController();
    const { slow } = guardTools({
      slow: { execute: (_input: object, _options: { abortSignal: AbortSignal }) => never() },
    });
    const failed = caught(slow.execute({}, { abortSignal: controller.signal }));
    controller.abort(new Error('the user left'));
    expect(await failed).toMatchObject({
      kind: 'canceled',
      message:
        'The caller canceled the call. The tool may have run and taken effect. Check first whether it took effect. Do not try again unless you are asked to.',
    });
    const before = await caught(slow.execute({}, { abortSignal: controller.signal }));
    expect(before).toMatchObject({
      kind: 'canceled',
      message: 'The caller canceled the call. The tool did not run. Do not try again unless you are asked to.',
    });
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('R-12.4 a safe message reaches the model verbatim, alone, through the framework', async () => {
    const seen = nothingSeen();
    await aiSdk.run({ guarded: true, calls: [{ id: 'c1', name: 'worded', input: {} }] }, seen);
    expect(seen.told.get('c1')).toBe('"No city is called Atlantis."');
  });

  it('R-12.2 a tool set made with `tool` keeps its type', () => {
    const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => city });
    const set: ToolSet & { readonly weather: typeof weather } = guardTools({ weather });
    expect(set.weather.inputSchema).toBe(weather.inputSchema);
  });
});

describe('guardTools for AI SDK, streaming', () => {
  const count = async function* (this: void, to: number): AsyncGenerator<number> {
    for (let n = 1; n <= to; n++) {
      await Promise.resolve();
      yield n;
    }
  };

  it.each([
    ['a generator function', { execute: count }],
    ['a function that gives a stream', { execute: (to: number): AsyncIterable<number> => count(to) }],
  ])('R-4.3 %s streams value by value', async (_what, counter) => {
    const got: unknown[] = [];
    expect(await collect(guardTools({ counter }).counter.execute(3), got)).toBe('ended');
    expect(got).toEqual([1, 2, 3]);
  });

  it('R-4.3 values reset the idle timeout, silence does not; what came before the failure was shown', async () => {
    const runtime = virtualRuntime();
    let returned = false;
    const execute = async function* (): AsyncGenerator<string> {
      try {
        for (const word of ['one', 'two', 'three']) {
          await new Promise((resolve) => runtime.after(900).subscribe(resolve));
          yield word;
        }
        yield await never();
      } finally {
        returned = true;
      }
    };
    const { talker } = guardTools({ talker: { execute } }, { runtime, defaults: { idleTimeoutMs: 1_000 } });
    const got: unknown[] = [];
    const failed = caught(collect(talker.execute(), got));
    await runtime.advance(10_000);
    expect(await failed).toBeInstanceOf(ToolFailure);
    expect(await failed).toMatchObject({ kind: 'timeout' });
    expect(got).toEqual(['one', 'two', 'three']);
    // It hangs inside, and cannot be told.
    expect(returned).toBe(false);
  });

  it('R-2.7 a consumer that leaves ends the tool', async () => {
    let returned = false;
    const execute = async function* (): AsyncGenerator<number> {
      try {
        for (let n = 0; ; n++) {
          await new Promise((resolve) => setImmediate(resolve));
          yield n;
        }
      } finally {
        returned = true;
      }
    };
    for await (const n of guardTools({ t: { execute } }).t.execute()) if (n === 2) break;
    await expect.poll(() => returned).toBe(true);
  });

  it('R-4.3 preliminary results arrive through `streamText`', async () => {
    let step = 0;
    const finish = (unified: 'tool-calls' | 'stop'): object => ({
      type: 'finish',
      finishReason: { unified, raw: undefined },
      usage: { inputTokens: {}, outputTokens: {} },
    });
    const model = new MockLanguageModelV4({
      doStream: () => {
        const chunks =
          step++ === 0
            ? [{ type: 'tool-call', toolCallId: 'c1', toolName: 'counter', input: '{}' }, finish('tool-calls')]
            : [finish('stop')];
        return Promise.resolve({
          stream: simulateReadableStream({ chunks: [{ type: 'stream-start', warnings: [] }, ...chunks] as never[] }),
        });
      },
    });
    const tools = guardTools({ counter: tool({ inputSchema: z.object({}), execute: () => count(3) }) });
    const outputs: unknown[] = [];
    for await (const part of streamText({ model, tools, prompt: 'count', stopWhen: stepCountIs(2) }).stream) {
      if (part.type === 'tool-result') outputs.push([part.output, part.preliminary ?? false]);
    }
    expect(outputs).toEqual([
      [1, true],
      [2, true],
      [3, true],
      [3, false],
    ]);
  });
});
