import { describe, expect, it } from 'vitest';
import {
  createSpillway,
  tool,
  type AnyTool,
  type SpillwayOptions,
  type ToolCallEnvelope,
  type ToolContext,
  type ToolResultEnvelope,
  type TraceEvent,
} from 'spillway';
import { toolResultEnvelopeSchema } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, records } from '../spec/tr-02-stores.ts';

const world = (tools: readonly AnyTool[], options: SpillwayOptions = {}) => {
  const runtime = virtualRuntime();
  const layer = createSpillway({ tools, store: memoryStore({ runtime, sweepMs: Infinity }), runtime, ...options });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  const run = async (request: ToolCallEnvelope): Promise<ToolResultEnvelope> => {
    const result = layer.execute(request);
    await runtime.run();
    return result;
  };
  return { runtime, layer, events, run };
};

type Part = Partial<
  ToolCallEnvelope['transport'] &
    ToolCallEnvelope['payload'] &
    ToolCallEnvelope['control'] &
    ToolCallEnvelope['trace'] &
    ToolCallEnvelope['target']
>;
const plain = (part: Part = {}, key = ''): ToolCallEnvelope => {
  const base = asked({ key, mode: 'disabled' });
  const {
    dedupeMode,
    retryBudget,
    circuitBreakerHint,
    callHints,
    params,
    deadlineAtMs,
    requestTags,
    fromHook,
    traceparent,
    baggage,
    ...target
  } = part;
  const given = <T extends object>(fields: T): T =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
  return {
    ...base,
    target: { ...base.target, ...target },
    payload: { ...base.payload, ...given({ callHints, params }) },
    transport: { ...base.transport, ...given({ dedupeMode, retryBudget, circuitBreakerHint }) },
    control: given({ deadlineAtMs, requestTags, fromHook }),
    trace: given({ traceparent, baggage }),
  } as ToolCallEnvelope;
};

const down = (code = 'ECONNRESET'): never => {
  throw Object.assign(new Error('down'), { code });
};
const hanging = (): Promise<never> => new Promise(() => undefined);

describe('R-8.3 no field of an envelope is decoration', () => {
  it('R-8.3 control.deadlineAtMs bounds the call, attempts and waits', async () => {
    const { run, runtime } = world([tool({ name: 't', execute: hanging })]);
    expect(await run(plain({ deadlineAtMs: runtime.wallNow() + 700 }))).toMatchObject({
      status: 'timeout',
      durationMs: 700,
      error: { code: 'deadline_exceeded' },
    });
    expect(await run(plain({ deadlineAtMs: runtime.wallNow() - 1 }))).toMatchObject({
      attempts: 0,
      error: { code: 'deadline_exceeded' },
    });
    runtime.jumpWall(3_600_000);
    expect((await run(plain({ deadlineAtMs: runtime.wallNow() + 700 }))).durationMs).toBe(700);
  });

  it('R-8.3 transport.retryBudget replaces the tool’s attempts and total time, to both sides', async () => {
    const flaky = tool({
      name: 't',
      policy: {
        breaker: false,
        retry: { maxAttempts: 3, maxTotalTimeMs: 1_000, strategy: 'constant', initialDelayMs: 100, jitterPercent: 0 },
      },
      execute: () => down(),
    });
    const { run } = world([flaky]);
    for (const [maxAttempts, maxElapsedMs, attempts] of [
      [1, 60_000, 1],
      [2, 60_000, 2],
      [30, 60_000, 30],
      [30, 250, 3],
      [30, 0, 1],
    ] as const) {
      expect((await run(plain({ retryBudget: { maxAttempts, maxElapsedMs } }))).attempts).toBe(attempts);
    }
  });

  it('R-8.3 callHints.timeoutMs shortens an attempt and never lengthens it', async () => {
    const { run } = world([tool({ name: 't', policy: { timeoutMs: 1_000 }, execute: hanging })]);
    for (const [timeoutMs, durationMs] of [
      [300, 300],
      [5_000, 1_000],
    ] as const)
      expect(await run(plain({ callHints: { timeoutMs } }))).toMatchObject({ error: { code: 'timeout' }, durationMs });
  });

  it('R-8.3 callHints.expectedRetrySafe lets an uncertain mutation be retried; safetyCritical forbids it, whatever else allows it', async () => {
    let runs = 0;
    const unsure = tool({
      name: 't',
      policy: { effects: 'mutating', timeoutMs: 10, retry: { initialDelayMs: 1, jitterPercent: 0 } },
      execute: () => (++runs % 2 === 1 ? hanging() : 'well'),
    });
    const { run } = world([unsure]);
    const attempts = async (callHints: NonNullable<ToolCallEnvelope['payload']['callHints']>): Promise<number> => {
      runs = 0;
      return (await run(plain({ callHints, retryBudget: { maxAttempts: 3, maxElapsedMs: 60_000 } }))).attempts;
    };
    expect([
      await attempts({}),
      await attempts({ expectedRetrySafe: true }),
      await attempts({ expectedRetrySafe: true, safetyCritical: true }),
    ]).toEqual([1, 2, 1]);
  });

  it('R-8.3 transport.circuitBreakerHint picks the breaker: of the tool, of what it depends on, of all', async () => {
    const named = (name: string): AnyTool => ({
      ...tool({ name, policy: { retry: { maxAttempts: 1 } }, execute: () => down() }),
      dependency: 'db',
    });
    for (const [circuitBreakerHint, opened, alike] of [
      ['tool', 't', false],
      ['dependency', 'db', true],
      ['global', '*', true],
      [undefined, 't', false],
    ] as const) {
      const { run, layer } = world([named('t'), named('u')]);
      const request = plain({
        ...(circuitBreakerHint === undefined ? {} : { circuitBreakerHint }),
        retryBudget: { maxAttempts: 1, maxElapsedMs: 1 },
      });
      for (let failure = 0; failure < 5; failure++) await run(request);
      expect(
        layer.breakers
          .list()
          .filter(({ breaker }) => breaker.state.type === 'open')
          .map(({ toolName }) => toolName),
      ).toEqual([opened]);
      expect((await run({ ...request, toolName: 'u' })).status === 'circuit_open').toBe(alike);
    }
  });

  it('R-8.3 transport.dedupeMode: disabled, enforced and bestEffort differ', async () => {
    let runs = 0;
    const { run } = world([tool({ name: 't', execute: () => ++runs })]);
    const twice = async (part: Part): Promise<boolean> => {
      await run(plain({ ...part }));
      return (await run(plain({ ...part }))).fromCache;
    };
    expect([
      await twice({ dedupeMode: 'disabled' }),
      await twice({ dedupeMode: 'enforced', sessionKey: 'x' }),
      await twice({ dedupeMode: 'bestEffort', sessionKey: 'y' }),
    ]).toEqual([false, true, true]);
  });

  it('R-8.3 target: session, actor and tenant make the key, and the tenant the breaker', async () => {
    let runs = 0;
    const { run, layer } = world([tool({ name: 't', execute: () => ++runs })]);
    for (const part of [{}, { sessionKey: 'x' }, { actorId: 'bob' }, { tenantId: 'a' }])
      expect((await run(plain({ dedupeMode: 'enforced', ...part }))).fromCache).toBe(false);
    expect(layer.breakers.list().map(({ scope }) => scope)).toHaveLength(2);
  });

  it('R-8.3 what a call is found by reaches the trace; traceparent and baggage reach trace and tool', async () => {
    const contexts: ToolContext[] = [];
    const { run, events } = world([
      tool({ name: 't', execute: (_input: unknown, context) => void contexts.push(context) }),
    ]);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await run(
      plain({
        requestTags: ['a', 'b'],
        fromHook: 'cron',
        correlationId: 'c-1',
        traceparent,
        baggage: { user: 'ada' },
        agentId: 'a-1',
        workspaceId: 'w-1',
        sessionKey: 's1',
        tenantId: 't1',
      }),
    );
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({
      tags: ['a', 'b'],
      fromHook: 'cron',
      correlationId: 'c-1',
      agentId: 'a-1',
      workspaceId: 'w-1',
      traceparent,
      session: 's1',
      tenant: 't1',
    });
    expect(contexts[0]).toMatchObject({ traceparent, baggage: { user: 'ada' } });
  });

  it('R-8.3 requestId and toolCallId name the call in result, trace and record', async () => {
    const store = memoryStore();
    const { run, events } = world([tool({ name: 't', execute: () => 1 })], { store });
    const request = { ...plain({ dedupeMode: 'enforced' }), requestId: 'r-1', toolCallId: 'call_7' };
    expect((await run(request)).requestId).toBe('r-1');
    expect(events.every((event) => event.source !== 'call' || event.callId === 'r-1')).toBe(true);
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({ toolCallId: 'call_7' });
    expect((await records(store))[0]?.request).toMatchObject({
      requestId: 'r-1',
      toolCallId: 'call_7',
      sessionKey: 's',
      actorId: 'ada',
    });
  });
});

describe('R-8.3 results are true to the trace', () => {
  it('R-8.3 attempts, durationMs, retriedBy and cache are those of the trace, call by call', async () => {
    let runs = 0;
    const flaky = tool({
      name: 't',
      policy: { breaker: false, timeoutMs: 50, retry: { maxAttempts: 4, initialDelayMs: 20, maxTotalTimeMs: 60_000 } },
      execute: (): unknown => {
        runs++;
        if (runs % 4 === 1) return hanging();
        if (runs % 4 === 2) return down();
        return runs;
      },
    });
    const { layer, runtime, events } = world([flaky]);
    const results: Array<Promise<ToolResultEnvelope>> = [];
    for (let n = 0; n < 24; n++) {
      results.push(
        layer.execute({
          ...asked({ key: `k${n % 5}`, params: { n: n % 6 }, mode: n % 3 === 0 ? 'bestEffort' : 'enforced' }),
          transport: {
            dedupeMode: n % 3 === 0 ? 'bestEffort' : 'enforced',
            retryBudget: { maxAttempts: 4, maxElapsedMs: 60_000 },
          },
        }),
      );
      await runtime.advance(7);
    }
    await runtime.run();
    for (const result of await Promise.all(results)) {
      expect(toolResultEnvelopeSchema.safeParse(result).error).toBeUndefined();
      const own = events.filter((event) => event.source === 'call' && event.callId === result.requestId);
      expect(own.filter(({ type }) => type === 'attempt_started')).toHaveLength(result.attempts);
      expect((own.at(-1)?.atMs ?? NaN) - (own[0]?.atMs ?? NaN)).toBeCloseTo(result.durationMs, 6);
      const retries = own.flatMap((event) =>
        event.type === 'decision' && event.strategy === 'retry'
          ? [[event.attempt, event.delayMs, event.error.kind]]
          : [],
      );
      expect(
        (result.retriedBy ?? []).map(({ attempt, delayMs, reasonCode }) => [attempt, delayMs, reasonCode]),
      ).toEqual(retries);
      const replay = own.find((event) => event.type === 'dedupe' && event.step === 'replayed');
      expect(replay === undefined).toBe(!result.fromCache);
      if (replay?.type === 'dedupe')
        expect(result.cache).toMatchObject({
          ageMs: replay.ageMs,
          keyFingerprint: replay.keyFingerprint,
          matchedOn: own.some((event) => event.type === 'dedupe' && event.step === 'waiting')
            ? 'inflight'
            : 'completed',
        });
      expect(own.filter(({ type }) => type === 'settled')).toHaveLength(1);
    }
  });
});
