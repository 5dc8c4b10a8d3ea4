import { ignoreElements, lastValueFrom, take } from 'rxjs';
import { createSpillway, plan, type TraceEvent } from 'spillway';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';
import {
  World,
  answers,
  envelope,
  fails,
  hangs,
  messages,
  noJitter,
  nodeOf,
  resultOf,
  states,
  traceFaults,
  turnResultOf,
  typed,
} from './kit.ts';

const patient = { timeoutMs: 400_000 } as const;

/** A signal whose listeners are counted. */
const countingSignal = (): { readonly controller: AbortController; readonly listeners: () => number } => {
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    listeners++;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    listeners--;
    remove(...given);
  };
  return { controller, listeners: () => listeners };
};

describe('R-4.2 unsubscribing', () => {
  it(
    'R-4.2 mid-attempt aborts the signal at that instant and leaves no timer',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [hangs], patient);
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      const seen = world.watch(layer.call({ toolName: 'slow' }));
      let timers = NaN;
      world.at(40, () => {
        seen.unsubscribe();
        timers = world.runtime.timers;
      });
      world.flush();
      expect(tried.aborts).toStrictEqual([40]);
      // The timer of this test itself is under way.
      expect(timers).toBe(1);
      expect(seen.events.map(({ type }) => type)).toStrictEqual(['call_started', 'attempt_started']);
      expect(trace.slice(-2)).toMatchObject([
        { type: 'attempt_canceled', attempt: 1, durationMs: 40 },
        { type: 'abandoned' },
      ]);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(layer.breakers.get('slow').state).toMatchObject({ type: 'closed', measured: 0 });
    }),
  );

  it(
    'R-2.7 mid-backoff cancels its timer, and no attempt follows',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flaky', [fails(5, transient)], { retry: noJitter });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      const seen = world.watch(layer.call({ toolName: 'flaky' }));
      let timers = NaN;
      world.at(50, () => {
        seen.unsubscribe();
        timers = world.runtime.timers;
      });
      world.flush();
      expect(timers).toBe(1);
      expect(tried.starts).toStrictEqual([0]);
      expect(trace.map(({ type }) => type).slice(-2)).toStrictEqual(['decision', 'abandoned']);
    }),
  );

  it(
    'R-4.2 a turn: every signal is aborted in that instant, nothing starts, no timer is left',
    marbles((m) => {
      const world = new World(m);
      const tools = [
        world.scripted('a', [hangs], patient),
        world.scripted('b', [hangs], patient),
        world.scripted('c', [fails(5, transient)], { retry: noJitter }),
        world.scripted('d', [answers(1)]),
      ];
      const layer = world.layer(tools);
      const trace = world.watch(layer.trace$).events;
      const seen = world.watch(
        layer.turn(
          plan.from([
            { id: 'a', tool: 'a' },
            { id: 'b', tool: 'b' },
            { id: 'c', tool: 'c' },
            { id: 'd', tool: 'd', needs: ['a'] },
          ]),
        ),
      );
      let timers = NaN;
      world.at(50, () => {
        seen.unsubscribe();
        timers = world.runtime.timers;
      });
      world.flush();
      expect(tools.map(({ aborts }) => aborts)).toStrictEqual([[50], [50], [], []]);
      expect(tools.map(({ starts }) => starts)).toStrictEqual([[0], [0], [0], []]);
      expect(timers).toBe(1);
      expect(trace.filter(({ atMs }) => atMs > 5).map(({ type }) => type)).toStrictEqual([
        'attempt_canceled',
        'abandoned',
        'attempt_canceled',
        'abandoned',
        'abandoned',
        'abandoned',
      ]);
      expect(traceFaults(trace)).toStrictEqual([]);
    }),
  );

  it(
    'R-4.2 work that has settled is not aborted after the fact',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flaky', [fails(5, transient), answers(5)], { retry: noJitter });
      world.call(world.layer([tried]), 'flaky');
      expect(tried.aborts).toStrictEqual([]);
    }),
  );

  it(
    'R-3.6 gives the permit back: a cancelled probe does not wedge the breaker',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flaky', [fails(0, transient), hangs, answers(1)], {
        ...patient,
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, cooldownMs: 100, successThreshold: 1 },
      });
      const layer = world.layer([tried]);
      world.watch(layer.call({ toolName: 'flaky' }));
      world.at(100, () => {
        const probe = world.watch(layer.call({ toolName: 'flaky' }));
        world.at(10, () => probe.unsubscribe());
      });
      world.at(120, () => world.watch(layer.call({ toolName: 'flaky' })));
      world.flush();
      expect(tried.starts).toStrictEqual([0, 100, 120]);
      expect(layer.breakers.get('flaky').state.type).toBe('closed');
    }),
  );

  it(
    'R-3.6 after a value it is a success, as with firstValueFrom',
    marbles((m) => {
      const world = new World(m);
      const policy = {
        ...patient,
        retry: { maxAttempts: 1 },
        breaker: { failureThreshold: 1, cooldownMs: 100, successThreshold: 1 },
      } as const;
      const tried = world.scripted('stream', [fails(0, transient), () => m.cold('a----------|')], policy);
      const layer = world.layer([tried]);
      world.watch(layer.call({ toolName: 'stream' }));
      world.at(100, () => {
        const probe = world.watch(layer.call({ toolName: 'stream' }));
        world.at(5, () => probe.unsubscribe());
      });
      world.flush();
      expect(layer.breakers.get('stream').state.type).toBe('closed');
    }),
  );

  it(
    'R-4.2 operators that take only a part end the rest',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [hangs], patient);
      const layer = world.layer([tried]);
      world.watch(layer.call({ toolName: 'slow' }).pipe(take(1)));
      world.watch(layer.turn(plan.from([{ id: 's', tool: 'slow' }])).pipe(take(3)));
      world.flush();
      expect(tried.starts).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
      expect(world.runtime.now()).toBe(0);
    }),
  );
});

describe('R-4.2 the caller’s signal', () => {
  it(
    'R-4.2 ends a call with canceled, never timeout, and leaves no listener',
    marbles((m) => {
      const world = new World(m);
      const { controller, listeners } = countingSignal();
      const tried = world.scripted('slow', [hangs], patient);
      const layer = world.layer([tried]);
      world.at(40, () => controller.abort());
      const result = world.call(layer, 'slow', controller.signal);
      expect(result).toMatchObject({
        status: 'error',
        attempts: 1,
        durationMs: 40,
        error: { code: 'canceled', terminal: true, breakerState: 'closed' },
      });
      expect(tried.aborts).toStrictEqual([40]);
      expect(listeners()).toBe(0);
      expect(layer.breakers.get('slow').state).toMatchObject({ measured: 0, consecutiveFailures: 0 });
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.2 a tool that rejects because of the abort does not change that',
    marbles((m) => {
      const world = new World(m);
      const controller = new AbortController();
      const layer = world.layer([
        {
          name: 'polite',
          execute: (_input: unknown, { signal }: { signal: AbortSignal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new DOMException('aborted', 'TimeoutError')));
            }),
        },
      ]);
      world.at(40, () => controller.abort());
      expect(world.call(layer, 'polite', controller.signal).error?.code).toBe('canceled');
    }),
  );

  it(
    'R-4.2 aborted before the call: canceled, without an attempt',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [answers(1)]);
      expect(world.call(world.layer([tried]), 'slow', AbortSignal.abort())).toMatchObject({
        attempts: 0,
        error: { code: 'canceled' },
      });
      expect(tried.starts).toStrictEqual([]);
    }),
  );

  it(
    'R-4.2 ends a turn: what completed is kept, unfinished nodes are canceled, each call settles',
    marbles((m) => {
      const world = new World(m);
      const { controller, listeners } = countingSignal();
      const slow = world.scripted('slow', [hangs], patient);
      const layer = world.layer([world.scripted('quick', [answers(5, 'a')]), slow]);
      const trace = world.watch(layer.trace$).events;
      world.at(40, () => controller.abort());
      const result = world.turn(
        layer,
        plan.from([
          { id: 'q', tool: 'quick' },
          { id: 's', tool: 'slow' },
          { id: 'd', tool: 'quick', needs: ['s'] },
        ]),
        { signal: controller.signal },
      );
      expect(states(result)).toStrictEqual({ q: 'succeeded', s: 'canceled', d: 'canceled' });
      expect(result).toMatchObject({
        settledAtMs: 40,
        status: 'partial',
        executedTools: 2,
        hadToolFailure: false,
        values: { q: 'a' },
      });
      expect(nodeOf(result, 's').reason).toBe('It was running when the turn was canceled');
      expect(slow.aborts).toStrictEqual([40]);
      expect(listeners()).toBe(0);
      expect(typed(trace, 'settled').map(({ source }) => source)).toStrictEqual(['call', 'call', 'turn']);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.2 a turn leaves no listener on it',
    marbles((m) => {
      const world = new World(m);
      const { controller, listeners } = countingSignal();
      const layer = world.layer([world.scripted('quick', [answers(5, 'a')])]);
      world.turn(layer, plan.from([{ id: 'q', tool: 'quick' }]), { signal: controller.signal });
      world.watch(layer.turn(plan.from([{ id: 'q', tool: 'quick' }]), { signal: controller.signal })).unsubscribe();
      world.watch(layer.call({ toolName: 'quick' }, { signal: controller.signal })).unsubscribe();
      expect(listeners()).toBe(0);
    }),
  );

  it(
    'R-4.2 aborted before the turn: nothing runs, and it failed',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('quick', [answers(5)])]);
      const result = world.turn(layer, plan.from([{ id: 'q', tool: 'quick' }]), { signal: AbortSignal.abort() });
      expect(result).toMatchObject({
        status: 'failed',
        executedTools: 0,
        settledAtMs: 0,
        nodes: [{ state: 'canceled' }],
      });
    }),
  );

  it('R-4.2 execute takes one too', async () => {
    const controller = new AbortController();
    const layer = createSpillway({ tools: [{ name: 'slow', execute: () => new Promise(() => undefined) }] });
    const running = layer.execute({ toolName: 'slow' }, { signal: controller.signal });
    controller.abort();
    await expect(running).resolves.toMatchObject({ status: 'error', error: { code: 'canceled' } });
  });
});

describe('close()', () => {
  it(
    'cancels what runs, refuses what comes, and ends the trace',
    marbles((m) => {
      const world = new World(m);
      const slow = world.scripted('slow', [hangs], patient);
      const flaky = world.scripted('flaky', [fails(1, transient)], { retry: noJitter });
      const layer = world.layer([slow, flaky]);
      const trace = world.watch(layer.trace$).events;
      const calls = [world.watch(layer.call({ toolName: 'slow' })), world.watch(layer.call({ toolName: 'flaky' }))];
      const turn = world.watch(
        layer.turn(
          plan.from([
            { id: 's', tool: 'slow' },
            { id: 'd', tool: 'flaky', needs: ['s'] },
          ]),
        ),
      );
      const after: TraceEvent[] = [];
      world.at(50, () => {
        void layer.close();
        layer.call({ toolName: 'slow' }).subscribe((event) => after.push(event));
      });
      world.flush();
      for (const { events, endedAtMs } of calls) {
        expect(resultOf(events)).toMatchObject({ status: 'error', error: { code: 'canceled' } });
        expect(endedAtMs).toBe(50);
      }
      expect(states(turnResultOf(turn.events))).toStrictEqual({ s: 'canceled', d: 'skipped' });
      // Nothing of this was a tool's failure.
      expect(turnResultOf(turn.events)).toMatchObject({ hadToolFailure: false, toolFailureKinds: [] });
      expect(resultOf(after)).toMatchObject({
        attempts: 0,
        error: { code: 'canceled', message: 'The layer is closed' },
      });
      expect(slow.aborts).toStrictEqual([50, 50]);
      expect(slow.starts).toHaveLength(2);
      expect(world.runtime.timers).toBe(0);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(messages(trace)).not.toContain('Tool succeeded on retry 2');
    }),
  );

  it('is idempotent, closes providers once, and completes trace$', async () => {
    let closed = 0;
    const layer = createSpillway({
      providers: [{ name: 'none', tools: [], close: () => Promise.resolve(void closed++) }],
    });
    const end = lastValueFrom(layer.trace$.pipe(ignoreElements()), { defaultValue: 'completed' });
    expect(layer.close()).toBe(layer.close());
    await layer.close();
    expect(closed).toBe(1);
    await expect(end).resolves.toBe('completed');
  });

  it(
    'a tool that closes the layer while it runs is canceled like the others',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        {
          name: 'closer',
          execute: () => {
            void layer.close();
            return m.cold('--a|');
          },
        },
      ]);
      expect(world.call(layer, envelope('closer'))).toMatchObject({ error: { code: 'canceled' }, attempts: 1 });
      expect(world.runtime.timers).toBe(0);
    }),
  );
});
