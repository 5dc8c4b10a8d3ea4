import { take } from 'rxjs';
import { createSpillway, tool, type SpillwayOptions, type ToolProvider, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };

type Started = Extract<TraceEvent, { type: 'layer_started' }>;
const echo = tool({ name: 'echo', policy: { effects: 'read' }, execute: (input: unknown) => input });
const failing = tool({
  name: 'failing',
  policy: {
    effects: 'read',
    retry: { maxAttempts: 1 },
    breaker: { failureThreshold: 1, cooldownMs: 1_000, successThreshold: 1 },
  },
  execute: (up: boolean) => (up ? 'ok' : Promise.reject(new Error('ECONNRESET'))),
});

const watched = (options: SpillwayOptions = {}) => {
  const runtime: VirtualRuntime = virtualRuntime();
  const spillway = createSpillway({ tools: [echo, failing], runtime, ...options });
  const events: TraceEvent[] = [];
  const subscription = spillway.trace$.subscribe((event) => events.push(event));
  const call = async (toolName: string, input: unknown = 1): Promise<void> => {
    const result = spillway.execute({ toolName, input });
    await runtime.advance(1);
    await result;
  };
  return { runtime, spillway, events, subscription, call };
};
const startedIn = (events: readonly TraceEvent[]): Started => {
  const [first] = events;
  if (first?.type !== 'layer_started') throw new Error(`it begins with ${first?.type}`);
  return first;
};

describe('R-7.1 layer_started', () => {
  it('R-7.1 is what each subscriber hears first, when it subscribes, with the number of the event before', async () => {
    const { spillway, events, call } = watched();
    expect(events.map(({ type, seq }) => [type, seq])).toEqual([['layer_started', 0]]);
    await call('echo');
    const late: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => late.push(event));
    await call('echo');
    // No number is missing for either, and the first one hears nothing again.
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place));
    expect(late.map(({ seq }) => seq)).toEqual([4, 5, 6, 7, 8]);
    expect([events, late].map((heard) => heard.filter(({ type }) => type === 'layer_started').length)).toEqual([1, 1]);
    expect(late[0]).toEqual({ ...startedIn(events), seq: 4, atMs: expect.any(Number) as number });
  });

  it('R-7.1 also for one who subscribes inside an event: nothing is missing between', () => {
    const { spillway, events } = watched();
    const inner: TraceEvent[] = [];
    let begun = false;
    spillway.call({ toolName: 'echo' }).subscribe(() => {
      if (begun) return;
      begun = true;
      spillway.trace$.subscribe((event) => inner.push(event));
    });
    expect(inner.map(({ seq }) => seq)).toEqual(inner.map((_, place) => (inner[0]?.seq ?? NaN) + place));
    expect(inner.length).toBeGreaterThan(2);
    expect(inner.at(-1)).toEqual(events.at(-1));
  });

  it('R-7.1 says the version and, of every tool, the policy with all its defaults, as JSON can hold it', () => {
    const provider: ToolProvider = {
      name: 'far',
      tools: [
        {
          name: 'far.book',
          policy: { effects: 'mutating', mode: 'shadow', breaker: false, idleTimeoutMs: 7 },
          execute: () => 1,
        },
      ],
      close: () => Promise.resolve(),
    };
    const { events } = watched({
      providers: [provider],
      profile: 'resilient',
      defaults: { timeoutMs: 9_000 },
      breakerKey: ({ name }) => `of ${name}`,
    });
    const { version, tools } = startedIn(events);
    expect(version).toBe(packageJson.version);
    expect(tools.map(({ name, effects, mode, breakerKey }) => ({ name, effects, mode, breakerKey }))).toEqual([
      { name: 'echo', effects: 'read', mode: 'on', breakerKey: 'of echo' },
      { name: 'failing', effects: 'read', mode: 'on', breakerKey: 'of failing' },
      { name: 'far.book', effects: 'mutating', mode: 'shadow', breakerKey: undefined },
    ]);
    expect(tools[0]?.policy).toMatchObject({
      timeoutMs: 9_000,
      retry: { strategy: 'full_jitter', maxAttempts: 4, maxTotalTimeMs: 30_000 },
      breaker: { failureThreshold: 8, cooldownMs: 20_000 },
      dedupe: { doneTtlMs: 86_400_000 },
      alternatives: [],
      cost: 0,
    });
    expect(tools[2]?.policy).toMatchObject({ idleTimeoutMs: 7 });
    expect(tools[2]?.policy).not.toHaveProperty('breaker');
    expect(JSON.parse(JSON.stringify(tools))).toStrictEqual(tools);
  });

  it('R-11.4 names in it are redacted', () => {
    const secret = 'sk-abcdefghij1234567890';
    const { events } = watched({
      tools: [tool({ name: secret, policy: { dedupe: { volatile: [secret] } }, execute: () => 1 })],
    });
    expect(startedIn(events).tools).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain(secret);
  });

  it('R-7.1 who changes what it heard changes no policy', async () => {
    const { spillway, events } = watched();
    const [first] = startedIn(events).tools;
    Object.assign(first?.policy.retry ?? {}, { maxAttempts: 99 });
    Object.assign(first?.policy.dedupe ?? {}, { leaseMs: 1 });
    const again: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => again.push(event));
    expect(startedIn(again).tools[0]?.policy).toMatchObject({
      retry: { maxAttempts: 5 },
      dedupe: { leaseMs: 120_000 },
    });
  });

  it('R-7.1 is not made where nobody listens, and takes no trace away where a list of tools cannot be read', async () => {
    let reads = 0;
    const provider = {
      name: 'far',
      close: () => Promise.resolve(),
      get tools(): [] {
        reads++;
        if (reads > readsAtFirst) throw new Error('no list');
        return [];
      },
    };
    let readsAtFirst = Infinity;
    const spillway = createSpillway({ tools: [echo], providers: [provider] });
    const before = reads;
    await spillway.execute({ toolName: 'echo' });
    expect(reads).toBe(before);
    readsAtFirst = reads;
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    await spillway.execute({ toolName: 'echo' });
    expect(events.map(({ type }) => type)).toEqual([
      'layer_started',
      'call_started',
      'attempt_started',
      'attempt_succeeded',
      'settled',
    ]);
  });

  it('R-7.1 one who leaves at once, and a layer that is closed', async () => {
    const { spillway } = watched();
    const heard: string[] = [];
    spillway.trace$
      .pipe(take(1))
      .subscribe({ next: ({ type }) => heard.push(type), complete: () => heard.push('done') });
    await spillway.close();
    spillway.trace$.subscribe({ next: ({ type }) => heard.push(type), complete: () => heard.push('closed') });
    expect(heard).toEqual(['layer_started', 'done', 'closed']);
  });
});

describe('R-7.1 what an event says beside what happened', () => {
  it('R-3.4 a breaker: until when it is open, and by which call; of an order and of time, by none', async () => {
    const { runtime, spillway, events, call } = watched();
    spillway.breakers.get('failing').state$.subscribe();
    await call('failing', false);
    await runtime.advance(2_000);
    await call('failing', true);
    await spillway.orderBreakers('force_open', { tool: 'failing' });
    const changes = events.flatMap((event) => (event.type === 'breaker_changed' ? [event] : []));
    const callIds = events.flatMap((event) => (event.type === 'call_started' ? [event.callId] : []));
    expect(
      changes.map(({ to, untilMs, callId, atMs }) => ({
        to,
        openMs: untilMs === undefined ? undefined : untilMs - atMs,
        callId,
      })),
    ).toEqual([
      { to: 'open', openMs: 1_000, callId: callIds[0] },
      { to: 'half_open', openMs: undefined, callId: undefined },
      { to: 'closed', openMs: undefined, callId: callIds[1] },
      { to: 'forced_open', openMs: undefined, callId: undefined },
    ]);
  });

  it('R-3.10 so does one that is shared, in the process of that call alone', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const [here, there] = [
      watched({ runtime, store, shareBreakers: true }),
      watched({ runtime, store, shareBreakers: true }),
    ];
    const call = async ({ spillway }: typeof here, up: boolean): Promise<string> => {
      const result = spillway.execute({ toolName: 'failing', input: up });
      await runtime.advance(50);
      return (await result).requestId;
    };
    const opener = await call(here, false);
    await call(there, false);
    await runtime.advance(2_000);
    const closer = await call(here, true);
    const changesOf = ({ events }: typeof here): unknown[] =>
      events.flatMap((event) => (event.type === 'breaker_changed' ? [[event.to, event.callId]] : []));
    expect(changesOf(here)).toEqual([
      ['open', opener],
      ['half_open', closer],
      ['closed', closer],
    ]);
    expect(changesOf(there)[0]).toEqual(['open', undefined]);
  });

  it('R-3.7 a call: the breaker as it stands, none made for that, whatever its tool shares', async () => {
    const { spillway, events, call } = watched({ breakerKey: () => 'shared' });
    await call('echo');
    await spillway.orderBreakers('force_open', { tool: 'echo' });
    await call('echo');
    await call('nothing');
    const started = events.flatMap((event) => (event.type === 'call_started' ? [event.breaker] : []));
    expect(started).toEqual([{ key: 'shared', state: 'closed' }, { key: 'shared', state: 'forced_open' }, undefined]);
  });

  it('R-3.7 of a call that is refused no breaker is made', async () => {
    const { spillway } = watched();
    const stop = new AbortController();
    stop.abort();
    await spillway.execute({ toolName: 'echo' }, { signal: stop.signal });
    expect(spillway.breakers.list()).toEqual([]);
    expect(spillway.breakers.stateOf('echo')).toBe('closed');
  });

  it('R-7.1 who changes its own event changes nothing for the others', () => {
    const { spillway, events } = watched();
    spillway.call({ toolName: 'echo' }).subscribe((event) => {
      if (event.type === 'call_started') Object.assign(event.breaker ?? {}, { key: 'mine' });
    });
    expect(events[1]).toMatchObject({ type: 'call_started', breaker: { key: 'echo' } });
  });

  it('R-11.2 a call that goes straight through has no limit to tell', async () => {
    const { events, call } = watched({ mode: 'off' });
    await call('echo');
    expect(events.find(({ type }) => type === 'attempt_started')).not.toHaveProperty('dueAtMs');
  });

  it('R-2.6 without a budget there is none left to tell', async () => {
    const { events, call } = watched({ retryBudget: false });
    await call('failing', false);
    const decision = events.find(({ type }) => type === 'decision');
    expect(decision).toMatchObject({ strategy: 'escalate' });
    expect(decision).not.toHaveProperty('budgetLeft');
  });
});
