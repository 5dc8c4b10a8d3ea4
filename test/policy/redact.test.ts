import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type ToolEvent, type TraceEvent } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { redactorOf, createRedactor } from '../../src/policy/redact/values.ts';
import { createTrace, STAMP } from '../../src/layer/trace.ts';

const settled = (content: unknown, toolName = 'search'): TraceEvent => ({
  source: 'call',
  type: 'settled',
  seq: 1,
  atMs: 0,
  callId: 'c',
  toolName,
  result: {
    requestId: 'c',
    status: 'success',
    fromCache: false,
    toolName,
    durationMs: 1,
    attempts: 1,
    output: { content },
  },
});
const outputOf = (event: TraceEvent): unknown =>
  event.source === 'call' && event.type === 'settled' ? event.result.output : 'no result';

describe('R-11.4 events', () => {
  it('R-11.4 the trace has redacted messages, the caller the whole ones, and both the same where there is nothing to hide', async () => {
    const runtime = virtualRuntime();
    const down = tool({
      name: 'down',
      policy: { retry: { maxAttempts: 1 } },
      execute: () => {
        throw new Error('login failed, password=hunter2');
      },
    });
    const layer = createSpillway({ tools: [down], runtime });
    const trace: TraceEvent[] = [];
    const own: ToolEvent[] = [];
    layer.trace$.subscribe((event) => trace.push(event));
    layer.call({ toolName: 'down', input: { password: 'hunter2' } }).subscribe((event) => own.push(event));
    await runtime.advance(1_000);
    expect(JSON.stringify(trace)).not.toContain('hunter2');
    expect(JSON.stringify(trace)).toContain('password=[redacted]');
    expect(own.at(-1)).toMatchObject({
      type: 'settled',
      result: { error: { message: 'login failed, password=hunter2' } },
    });
    expect(trace.find(({ type }) => type === 'attempt_started')).toStrictEqual(
      own.find(({ type }) => type === 'attempt_started'),
    );
  });

  it('R-11.4 nothing is looked at while nobody watches', () => {
    let looked = 0;
    const show = (event: TraceEvent): TraceEvent => {
      looked++;
      return event;
    };
    const trace = createTrace(virtualRuntime(), { ...redactorOf(), show });
    const tell = (): void =>
      trace.publish({ ...STAMP, source: 'layer', type: 'breaker_evicted', toolName: 't', scope: '' });
    tell();
    expect(looked).toBe(0);
    trace.events$.subscribe();
    tell();
    expect(looked).toBe(1);
  });

  it('R-11.4 inputs and outputs are in no event by default', () => {
    const redact = createRedactor();
    expect(outputOf(redact(settled({ city: 'Oulu' })))).toBeUndefined();
    const started = {
      source: 'call',
      type: 'call_started',
      seq: 1,
      atMs: 0,
      callId: 'c',
      toolName: 'search',
      input: { city: 'Oulu' },
    } as TraceEvent;
    expect(redact(started)).not.toHaveProperty('input');
  });

  it('R-11.4 a tool’s allowed paths are shown, redacted, and no other', () => {
    const redact = createRedactor(
      {},
      {
        search: {
          input: ['city', 'passengers.0.age', 'missing', 'apiKey', '__proto__.x'],
          output: ['offers', 'credentials.user'],
        },
      },
    );
    const content = {
      offers: [{ id: 1, token: 'abc', note: 'Bearer abc123def456' }],
      credentials: { user: 'ann' },
      total: 7,
    };
    expect(outputOf(redact(settled(content)))).toEqual({
      content: {
        offers: [{ id: 1, token: '[redacted]', note: 'Bearer [redacted]' }],
        'credentials.user': '[redacted]',
      },
    });
    expect(outputOf(redact(settled(content, 'other')))).toBeUndefined();
    const input = { city: 'Oulu', passengers: [{ age: 7, name: 'Ann' }], apiKey: 'k' };
    const started = {
      source: 'call',
      type: 'call_started',
      seq: 1,
      atMs: 0,
      callId: 'c',
      toolName: 'search',
      input,
    } as TraceEvent;
    expect(redact(started)).toHaveProperty('input', { city: 'Oulu', 'passengers.0.age': 7, apiKey: '[redacted]' });
  });

  it('R-11.4 what is captured may be cyclic, deep, huge or hostile', () => {
    const cyclic: Record<string, unknown> = {
      text: 'x'.repeat(10_000),
      big: 10n,
      at: new Date(0),
      call: () => 1,
      many: Array.from({ length: 100_000 }, (_, n) => n),
    };
    cyclic['self'] = cyclic;
    const hostile = {
      get trap(): unknown {
        throw new Error('token=abc');
      },
    };
    const redact = createRedactor({}, { search: { output: ['cyclic', 'hostile', 'trap'] } });
    const event = redact(
      settled({
        cyclic,
        hostile,
        get trap(): unknown {
          throw new Error('no');
        },
      }),
    );
    const text = JSON.stringify(event);
    expect(text.length).toBeLessThan(100_000);
    expect(event).toMatchObject({
      result: {
        output: {
          content: {
            cyclic: { big: '10', at: '1970-01-01T00:00:00.000Z' },
            hostile: '[unreadable]',
            trap: '[unreadable]',
          },
        },
      },
    });
  });

  it('R-11.4 of a progress report only what a progress has is shown', () => {
    const redact = createRedactor();
    const progress = (report: object): TraceEvent =>
      redact({ source: 'call', type: 'progress', seq: 1, atMs: 0, callId: 'c', toolName: 't', attempt: 1, report });
    expect(progress({ progress: 1, total: 2, message: 'token=abc', details: { password: 'p' } })).toMatchObject({
      report: { progress: 1, total: 2, message: 'token=[redacted]' },
    });
    expect(JSON.stringify(progress({ details: 'secret' }))).not.toContain('details');
    expect(
      progress({
        get message(): string {
          throw new Error('no');
        },
      }),
    ).toHaveProperty('report', {});
  });

  it('R-11.4 secret names of a host’s own, and its own say about texts', () => {
    const redact = createRedactor(
      { keys: ['loyalty-number'], also: (text) => text.replaceAll('Ann', 'A.') },
      { search: { output: ['guest'] } },
    );
    expect(outputOf(redact(settled({ guest: { name: 'Ann', loyaltyNumber: '42' } })))).toEqual({
      content: { guest: { name: 'A.', loyaltyNumber: '[redacted]' } },
    });
    const failing = createRedactor({
      also: () => {
        throw new Error('no');
      },
    });
    expect(
      failing({ source: 'layer', type: 'store_changed', seq: 1, atMs: 0, state: 'lost', message: 'm' }),
    ).toMatchObject({ message: '[redacted]' });
    const shouting = createRedactor({ also: (text) => text.toUpperCase() });
    expect(
      shouting({ source: 'layer', type: 'store_changed', seq: 1, atMs: 0, state: 'lost', message: 'm' }),
    ).toMatchObject({ source: 'layer', type: 'store_changed', message: 'M' });
    const silent = createRedactor({ also: (() => undefined) as unknown as (text: string) => string });
    expect(
      silent({ source: 'layer', type: 'store_changed', seq: 1, atMs: 0, state: 'lost', message: 'm' }),
    ).toMatchObject({ message: '[redacted]' });
  });

  it('R-11.4 every text of every event is looked at, lists included', () => {
    const redact = createRedactor({ secrets: ['C4nary!'] });
    const events: TraceEvent[] = [
      {
        source: 'call',
        type: 'call_started',
        seq: 1,
        atMs: 0,
        callId: 'C4nary!',
        toolName: 'C4nary!',
        tags: ['a', 'C4nary!'],
        correlationId: 'C4nary!',
        session: 'C4nary!',
        tenant: 'C4nary!',
        fromHook: 'C4nary!',
        toolCallId: 'C4nary!',
        traceparent: 'C4nary!',
      },
      {
        source: 'turn',
        type: 'turn_started',
        seq: 1,
        atMs: 0,
        turnId: 't',
        timeoutMs: 1,
        nodes: [{ id: 'C4nary!', toolName: 'C4nary!', needs: ['C4nary!'] }],
      },
      {
        source: 'turn',
        type: 'settled',
        seq: 1,
        atMs: 0,
        turnId: 't',
        result: {
          status: 'failed',
          nodes: [{ id: 'C4nary!', toolName: 'x', state: 'failed', reason: 'C4nary!' }],
          values: { a: 'C4nary!' },
          executedTools: 0,
          hadToolFailure: true,
          toolFailureKinds: [],
          summary: 'C4nary!',
        },
      },
      {
        source: 'call',
        type: 'hook',
        seq: 1,
        atMs: 0,
        callId: 'c',
        toolName: 't',
        hook: 'prepareCall',
        outcome: 'blocked',
        attempt: 0,
        message: 'C4nary!',
      },
    ];
    expect(JSON.stringify(events.map(redact))).not.toContain('C4nary!');
  });

  it('R-11.4 the codes that a policy classifies are names, and what they get stays readable: a replay needs it', () => {
    const show = createRedactor({ secrets: ['C4nary!'] });
    const classification = { invalid_token: 'permanent', 503: 'transient', 'x-C4nary!': 'permanent' } as const;
    const policy = { classification, alternatives: [] };
    const event = { seq: 1, atMs: 0, source: 'layer', type: 'layer_started', tools: [{ name: 'a', policy }] };
    expect(show(event as never)).toMatchObject({
      tools: [
        { policy: { classification: { invalid_token: 'permanent', 503: 'transient', '[redacted]': 'permanent' } } },
      ],
    });
    for (const odd of [null, undefined, 'transient']) {
      const failed = { ...event, type: 'decision', classification: odd };
      expect(show(failed as never)).toMatchObject(odd === undefined ? { type: 'decision' } : { classification: odd });
    }
  });

  it.each([
    [{ secrets: ['abc'] }, {}, 'redact.secrets must be a list of at most 1024 texts of 4 to 4096 characters'],
    [{ secrets: 'abcdef' }, {}, 'redact.secrets must be a list'],
    [{ secret: [] }, {}, 'redact has no option "secret"'],
    [
      { secrets: Array.from({ length: 1025 }, (_, n) => `secret${n}`) },
      {},
      'redact.secrets must be a list of at most 1024 texts',
    ],
    [{ keys: [''] }, {}, 'redact.keys must be a list of names'],
    [{ also: 1 }, {}, 'redact.also must be a function, not number'],
    [{}, { search: ['city'] }, 'capture.search has no option'],
    [{}, { search: { input: ['a..b'] } }, 'capture.search.input must be a list of dotted paths'],
    [{}, { search: null }, 'capture.search must be { input, output }'],
  ])('R-2.9 refuses %j %j', (redact, capture, message) => {
    expect(() => createRedactor(redact as never, capture as never)).toThrow(message);
    expect(() => createRedactor(redact as never, capture as never)).toThrow(RangeError);
  });
});
