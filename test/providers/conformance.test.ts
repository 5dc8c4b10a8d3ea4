import { setTimeout as sleep } from 'node:timers/promises';
import { providerConformance, type BackendCall, type ConformanceCall, type ProviderBackend } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { ToolOutput } from '../../src/contract/output.ts';
import type { ToolContext } from '../../src/contract/tool.ts';
import { routerProvider } from '../../src/providers/router.ts';
import { createSpillway } from '../../src/spillway.ts';
import { tool } from '../../src/layer/tool.ts';

interface Seen extends BackendCall {
  state: BackendCall['state'];
}

/** Tools whose backend is a list in this process. */
class Functions implements ProviderBackend {
  readonly #seen: Seen[] = [];

  readonly calls = (): readonly BackendCall[] => this.#seen;
  readonly close = (): void => undefined;

  #begin({ callKey, traceparent, baggage = {}, signal }: ToolContext): Seen {
    const pairs = Object.entries(baggage).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const seen: Seen = {
      state: 'running',
      callKey,
      traceparent,
      baggage: pairs.length === 0 ? undefined : pairs.join(','),
    };
    this.#seen.push(seen);
    signal.addEventListener('abort', () => (seen.state = 'aborted'));
    return seen;
  }

  async echo(text: string, delayMs: number, context: ToolContext): Promise<string> {
    const seen = this.#begin(context);
    await sleep(delayMs);
    seen.state = 'answered';
    return text;
  }

  hang(context: ToolContext): Promise<never> {
    this.#begin(context);
    return new Promise(() => undefined);
  }

  async fail(context: ToolContext): Promise<never> {
    this.#begin(context).state = 'answered';
    throw await Promise.resolve(new Error('it broke'));
  }

  async *steps(context: ToolContext): AsyncGenerator<string> {
    const seen = this.#begin(context);
    for (let progress = 1; progress <= 2; progress++) {
      context.progress({ progress });
      await sleep(5);
    }
    seen.state = 'answered';
    yield 'done';
  }

  busy(): never {
    throw Object.assign(new Error('busy'), { status: 429, headers: { 'retry-after': '7' } });
  }
}

const echoInput = z.strictObject({ text: z.string(), delayMs: z.number() });
const nothing = z.strictObject({});

const functionCases = providerConformance({
  createSpillway,
  lacks: ['gone', 'kill', 'close'],
  make: () => {
    const backend = new Functions();
    const call = (name: string, input = {}): ConformanceCall => ({ toolName: `fn.${name}`, input });
    const tools = [
      tool({
        name: 'fn.echo',
        input: echoInput,
        execute: ({ text, delayMs }, context) => backend.echo(text, delayMs, context),
      }),
      tool({ name: 'fn.hang', input: nothing, execute: (_input, context) => backend.hang(context) }),
      tool({ name: 'fn.fail', input: nothing, execute: (_input, context) => backend.fail(context) }),
      tool({ name: 'fn.steps', input: nothing, execute: (_input, context) => backend.steps(context) }),
      tool({ name: 'fn.busy', input: nothing, execute: () => backend.busy() }),
    ];
    return {
      provider: { name: 'fn', tools, close: () => Promise.resolve() },
      backend,
      calls: {
        echo: (text, delayMs) => call('echo', { text, delayMs }),
        hang: () => call('hang'),
        fail: () => call('fail'),
        steps: () => call('steps'),
        busy: () => call('busy'),
        invalid: [call('echo', { text: 1, delayMs: 0 }), call('echo', {}), call('fail', { more: 1 })],
      },
    };
  },
});

const routerCases = providerConformance({
  createSpillway,
  lacks: ['gone', 'kill', 'close'],
  make: () => {
    const backend = new Functions();
    const call = (agent: string, parameters = {}): ConformanceCall => ({
      toolName: 'router.handoff-to',
      input: { agent, parameters },
    });
    const plain = (name: string, run: (context: ToolContext) => ToolOutput<unknown>): object => ({
      name,
      description: name,
      parameters: nothing,
      run: (_handoff: unknown, context: ToolContext) => run(context),
    });
    return {
      provider: routerProvider({
        agents: [
          {
            name: 'echo',
            description: 'echo',
            parameters: echoInput,
            run: ({ parameters: { text, delayMs } }, context) => backend.echo(text, delayMs, context),
          },
          plain('hang', (context) => backend.hang(context)) as never,
          plain('fail', (context) => backend.fail(context)) as never,
          plain('steps', (context) => backend.steps(context)) as never,
          plain('busy', () => backend.busy()) as never,
        ],
      }),
      backend,
      calls: {
        echo: (text, delayMs) => call('echo', { text, delayMs }),
        hang: () => call('hang'),
        fail: () => call('fail'),
        steps: () => call('steps'),
        busy: () => call('busy'),
        invalid: [
          call('echo', { text: 1, delayMs: 0 }),
          call('nobody'),
          { toolName: 'router.handoff-to', input: {} },
          call('fail', { more: 1 }),
        ],
      },
    };
  },
});

describe('R-12.2 the function provider conforms:', () => {
  it.each(functionCases)('$name', ({ run }) => run());
});

describe('R-12.2 the router conforms:', () => {
  it.each(routerCases)('$name', ({ run }) => run());
});

describe('the suite finds', () => {
  /** A provider with one thing wrong, and what the suite says of it. */
  const findings = async (
    wrong: Partial<
      Record<'echo' | 'hang' | 'fail' | 'busy' | 'steps', (input: { text: string }, context: ToolContext) => unknown>
    >,
    schema: z.ZodType = echoInput,
  ): Promise<string[]> => {
    const cases = providerConformance({
      createSpillway,
      lacks: ['gone', 'kill', 'close'],
      patienceMs: 1_000,
      make: () => {
        const backend = new Functions();
        const right = {
          echo: ({ text }: { text: string }, context: ToolContext) => backend.echo(text, 1, context),
          hang: (_: unknown, context: ToolContext) => backend.hang(context),
          fail: (_: unknown, context: ToolContext) => backend.fail(context),
          steps: (_: unknown, context: ToolContext) => backend.steps(context),
          busy: () => backend.busy(),
        };
        const execute = { ...right, ...wrong };
        const call = (name: string, input = {}): ConformanceCall => ({ toolName: `fn.${name}`, input });
        const tools = (['echo', 'hang', 'fail', 'steps', 'busy'] as const).map((name) =>
          tool({
            name: `fn.${name}`,
            input: (name === 'echo' ? schema : nothing) as z.ZodType<{ text: string }>,
            execute: (input, context) => execute[name](input, context),
          }),
        );
        return {
          provider: { name: 'fn', tools, close: () => Promise.resolve() },
          backend,
          calls: {
            echo: (text, delayMs) => call('echo', { text, delayMs }),
            hang: () => call('hang'),
            fail: () => call('fail'),
            steps: () => call('steps'),
            busy: () => call('busy'),
            invalid: [call('echo', { text: 1, delayMs: 0 })],
          },
        };
      },
    });
    const found: string[] = [];
    for (const { name, run } of cases) await run().catch(() => found.push(name));
    return found;
  };

  it('nothing in what is right', async () => {
    expect(await findings({})).toEqual([]);
  });

  it.each<[string, Parameters<typeof findings>, RegExp[]]>([
    ['answers mixed up', [{ echo: () => 'hello' }], [/their own answers/]],
    ['input that is not checked', [{}, z.unknown()], [/input that does not fit/]],
    ['no progress', [{ steps: () => 'done' }], [/^progress arrives/]],
    ['a Retry-After that is lost', [{ busy: () => Promise.reject(new Error('busy')) }], [/^Retry-After/]],
    ['a failure taken for an answer', [{ fail: () => 'it broke' }], [/^a tool that fails/]],
    ['a failure of the wrong kind', [{ fail: () => Promise.reject(new Error('ECONNRESET')) }], [/^a tool that fails/]],
    [
      'an input told in an error',
      [{ echo: (input) => Promise.reject(new Error(JSON.stringify(input))) }, z.unknown()],
      [/^no error tells a secret/],
    ],
    ['a key that is lost', [{ echo: ({ text }) => text }], [/^the key and the trace context/]],
  ])('%s', async (_name, wrong, expected) => {
    const found = await findings(...wrong);
    for (const pattern of expected) expect(found).toContainEqual(expect.stringMatching(pattern));
  });

  it('a harness without what a case needs, unless it says so', async () => {
    const make = (): never => {
      throw new Error('not made');
    };
    const names = providerConformance({
      make,
      createSpillway,
      lacks: ['kill', 'gone', 'progress', 'retryAfter', 'close'],
    }).map(({ name }) => name);
    expect(names.filter((name) => /progress|Retry-After|no more|dead|dies|alone/.test(name))).toEqual([]);
    expect(providerConformance({ make, createSpillway }).length).toBe(names.length + 6);
    await expect(providerConformance({ make, createSpillway })[0]?.run()).rejects.toThrow('not made');
  });
});
