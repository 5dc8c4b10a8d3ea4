import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { createSpillway, tool, type SpillwayOptions, type TraceEvent } from 'spillway';
import { seededRandom } from 'spillway/policy';
import { virtualRuntime } from 'spillway/testing';

afterEach(() => vi.unstubAllEnvs());

/** What a tool does with its nth call: recorded, so that it can be compared with the bare tool. */
const script = (seed: number): ReadonlyArray<{ readonly fails: boolean; readonly value: unknown }> => {
  const random = seededRandom(seed);
  return Array.from({ length: 200 }, (_, n) => ({
    fails: random() < 0.4,
    value: random() < 0.5 ? { n, at: [random()] } : `text ${n}`,
  }));
};

const playing = (seed: number) => {
  const calls = script(seed);
  let at = 0;
  const inputs: unknown[] = [];
  const execute = (input: unknown): unknown => {
    inputs.push(input);
    const { fails, value } = calls[at++] ?? { fails: false, value: null };
    if (fails) throw new Error(`ETIMEDOUT number ${at}`);
    return at % 3 === 0 ? Promise.resolve(value) : value;
  };
  return { execute, inputs, count: () => at };
};

const outcome = async (run: () => unknown): Promise<string> => {
  try {
    return JSON.stringify(['ok', await run()]);
  } catch (error) {
    return JSON.stringify(['failed', (error as Error).message]);
  }
};

describe('TR-14 TOOL_RELIABILITY_ENABLED=false', () => {
  it('TR-14 the same 200 recorded calls give the results, errors and call counts of the bare tool', async () => {
    const bare = playing(7);
    const guarded = playing(7);
    // Everything that would show: a schema that changes the input, an output that does not fit, keys, retries, a
    // breaker that would open.
    const wrapped = tool({
      name: 'recorded',
      input: z.object({ n: z.coerce.string().default('x') }).catch({ n: 'caught' }),
      output: z.object({ never: z.literal(true) }),
      policy: { timeoutMs: 1, alternatives: ['other'] },
      execute: guarded.execute as () => never,
    });
    const other = tool({ name: 'other', execute: () => 'other' });
    const layer = createSpillway({
      tools: [wrapped, other],
      errorHandler: () => ({ strategy: 'retry', code: 'guidance', reason: 'always', delayMs: 0 }),
    });
    vi.stubEnv('TOOL_RELIABILITY_ENABLED', 'false');
    for (let n = 0; n < 200; n++) {
      const input = { n, clientTs: n };
      const expected = await outcome(() => bare.execute(input));
      const result = await layer.execute({ toolName: 'recorded', input, idempotencyKey: 'same' });
      expect(
        JSON.stringify(result.error === undefined ? ['ok', result.output?.content] : ['failed', result.error.message]),
      ).toBe(expected);
      expect(result.fromCache).toBe(false);
    }
    expect(guarded.count()).toBe(bare.count());
    expect(guarded.inputs).toEqual(bare.inputs);
  });

  it('TR-14 acts on the next call, and back again', async () => {
    let runs = 0;
    const layer = createSpillway({ tools: [tool({ name: 't', execute: () => ++runs })] });
    const call = async (): Promise<unknown> =>
      (await layer.execute({ toolName: 't', idempotencyKey: 'k' })).output?.content;
    expect([await call(), await call()]).toEqual([1, 1]);
    vi.stubEnv('TOOL_RELIABILITY_ENABLED', 'false');
    expect([await call(), await call()]).toEqual([2, 3]);
    vi.stubEnv('TOOL_RELIABILITY_ENABLED', 'true');
    expect(await call()).toBe(1);
  });

  it('TR-14 hooks are the host’s own and go on', async () => {
    vi.stubEnv('TOOL_RELIABILITY_ENABLED', 'false');
    const layer = createSpillway({
      tools: [tool({ name: 't', execute: () => 1 })],
      hooks: { beforeToolCall: () => ({ block: 'no' }) },
    });
    expect((await layer.execute({ toolName: 't' })).error?.code).toBe('blocked');
  });
});

describe('R-11.2 the other switches', () => {
  it('R-11.2 TOOL_RELIABILITY_OPEN_MODE=off: breakers count and refuse nothing', async () => {
    vi.stubEnv('TOOL_RELIABILITY_OPEN_MODE', 'off');
    const down = tool({
      name: 't',
      policy: { retry: { maxAttempts: 1 } },
      execute: () => Promise.reject(new Error('ECONNRESET')),
    });
    const layer = createSpillway({ tools: [down] });
    for (let n = 0; n < 8; n++) expect((await layer.execute({ toolName: 't' })).status).toBe('retriable_error');
    expect(layer.breakers.get('t').state.type).toBe('open');
    vi.unstubAllEnvs();
    expect((await layer.execute({ toolName: 't' })).status).toBe('circuit_open');
  });

  it.each(['TOOL_RELIABLE_DERIVE_IDEMPOTENCY', 'TOOL_RELIABILITY_DERIVE_IDEMPOTENCY'])(
    'R-11.2 %s=off: no computed keys',
    async (name) => {
      let runs = 0;
      const layer = createSpillway({ tools: [tool({ name: 't', execute: () => ++runs })] });
      const call = async (idempotencyKey?: string): Promise<unknown> => {
        const result = await layer.execute({
          contractVersion: '1.1',
          requestId: `r${runs}`,
          toolName: 't',
          toolNamespace: 'n',
          target: { sessionKey: 's', actorId: 'a' },
          payload: { version: '1.0', params: {}, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) },
          transport: { dedupeMode: 'enforced', retryBudget: { maxAttempts: 1, maxElapsedMs: 1_000 } },
          control: {},
          trace: {},
        });
        return result.output?.content;
      };
      expect([await call(), await call()]).toEqual([1, 1]);
      vi.stubEnv(name, 'off');
      expect([await call(), await call()]).toEqual([2, 3]);
      expect([await call('k'), await call('k')]).toEqual([4, 4]);
    },
  );

  it('R-11.2 per-tool staging: the more cautious of both counts', async () => {
    let runs = 0;
    const staged = (name: string, mode: 'off' | 'shadow' | 'on') =>
      tool({ name, policy: { mode }, execute: () => ++runs });
    const layer = createSpillway({ tools: [staged('off', 'off'), staged('shadow', 'shadow'), staged('on', 'on')] });
    const replays = async (toolName: string, in_ = layer): Promise<boolean> => {
      await in_.execute({ toolName, idempotencyKey: 'k' });
      return (await in_.execute({ toolName, idempotencyKey: 'k' })).fromCache;
    };
    expect([await replays('off'), await replays('shadow'), await replays('on')]).toEqual([false, false, true]);
    const off = createSpillway({ tools: [staged('on', 'on')], mode: 'off' });
    expect(await replays('on', off)).toBe(false);
  });
});

describe('R-11.2 shadow mode decides and records, and changes nothing', () => {
  const shadowed = (execute: (input: { n: number }) => unknown, options: SpillwayOptions = {}) => {
    const runtime = virtualRuntime();
    const told: string[] = [];
    const layer = createSpillway({
      tools: [tool({ name: 't', input: z.object({ n: z.number() }), policy: { timeoutMs: 50 }, execute })],
      mode: 'shadow',
      runtime,
      ...options,
    });
    layer.trace$.subscribe((event: TraceEvent) => {
      if (event.type === 'shadow') told.push(`${event.would} ${event.reason}`);
    });
    const call = async (input: unknown, idempotencyKey?: string): Promise<unknown> => {
      const result = layer.execute({
        toolName: 't',
        input,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      });
      await runtime.advance(1_000);
      const { output, error, attempts } = await result;
      return [output?.content ?? error?.code, attempts];
    };
    return { call, told, runtime, layer };
  };

  it('R-11.2 a duplicate runs, and a replay is told', async () => {
    let runs = 0;
    const { call, told } = shadowed(() => ++runs);
    expect([await call({ n: 1 }, 'k'), await call({ n: 1 }, 'k'), await call({ n: 2 }, 'k')]).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
    expect(told).toEqual(['replay done', 'reject conflict']);
  });

  it('R-11.2 one that runs at the same time would wait', async () => {
    const { layer, told, runtime } = shadowed(
      () =>
        new Promise((resolve) => {
          runtime.after(10).subscribe(() => resolve(1));
        }),
    );
    const both = [1, 2].map(() => layer.execute({ toolName: 't', input: { n: 1 }, idempotencyKey: 'k' }));
    await runtime.advance(100);
    expect((await Promise.all(both)).map(({ attempts }) => attempts)).toEqual([1, 1]);
    expect(told).toEqual(['wait duplicate_in_flight']);
  });

  it('R-11.2 an input that does not fit runs, and a rejection is told', async () => {
    const { call, told } = shadowed(() => 'ran');
    expect(await call({ n: 'one' })).toEqual(['ran', 1]);
    expect(told).toEqual(['reject invalid_parameters']);
  });

  it('R-11.2 failures run once each, and retries and rejections are told', async () => {
    const { call, told, layer } = shadowed(() => {
      throw new Error('ECONNRESET');
    });
    for (let n = 0; n < 6; n++) expect(await call({ n })).toEqual(['transport_error', 1]);
    expect(told.filter((what) => what === 'retry transport_error')).toHaveLength(6);
    expect(told.filter((what) => what === 'reject circuit_open')).toHaveLength(1);
    expect(layer.breakers.get('t').state.type).toBe('open');
  });

  it('R-11.2 one that takes too long is left to end, and a timeout is told', async () => {
    const { call, told, runtime } = shadowed(
      () =>
        new Promise((resolve) => {
          runtime.after(200).subscribe(() => resolve('late'));
        }),
    );
    expect(await call({ n: 1 })).toEqual(['late', 1]);
    expect(told).toEqual(['time_out timeout']);
  });
});
