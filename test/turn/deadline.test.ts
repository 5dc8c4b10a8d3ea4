import { concatMap, map } from 'rxjs';
import { ToolExecutionError, createSpillway, plan, type Runtime, type TurnResult } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { counting, handClock, transient } from '../support.ts';
import {
  World,
  answers,
  fails,
  hangs,
  noBackoff,
  noJitter,
  nodeOf,
  once,
  stallingClock,
  states,
  traceFaults,
  turnResultOf,
  typed,
  type Step,
} from '../call/kit.ts';

const patient = { timeoutMs: 400_000 } as const;

describe('R-4.4 the deadline of a turn', () => {
  it(
    'R-4.4 harvests what completed; the rest timed out; nothing new starts',
    marbles((m) => {
      const world = new World(m);
      const quick = world.scripted('quick', [answers(50, 'a')]);
      const slow = world.scripted('slow', [answers(500, 'b')]);
      const after = world.scripted('after', [answers(1)]);
      const layer = world.layer([quick, slow, after]);
      const result = world.turn(
        layer,
        plan.from(
          [
            { id: 'q', tool: 'quick' },
            { id: 's', tool: 'slow' },
            { id: 'd', tool: 'after', needs: ['s'] },
          ],
          { timeoutMs: 100 },
        ),
      );
      expect(result).toMatchObject({
        settledAtMs: 100,
        status: 'partial',
        executedTools: 2,
        hadToolFailure: false,
        values: { q: 'a' },
      });
      expect(states(result)).toStrictEqual({ q: 'succeeded', s: 'timed_out', d: 'timed_out' });
      expect(nodeOf(result, 's').reason).toBe('It was running when the turn ended');
      expect(nodeOf(result, 'd').reason).toBe('It had not started when the turn ended');
      expect(after.starts).toStrictEqual([]);
    }),
  );

  it(
    'R-4.4 the default is 300,000',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [hangs], patient)]);
      expect(world.turn(layer, plan.from([{ id: 's', tool: 'slow' }])).settledAtMs).toBe(300_000);
    }),
  );

  it(
    'R-4.4 detach: the running tool finishes in the background, and only the trace hears of it',
    marbles((m) => {
      const world = new World(m);
      const slow = world.scripted('slow', [answers(500, 'b')]);
      const layer = world.layer([slow]);
      const trace = world.watch(layer.trace$).events;
      const own = world.watch(layer.turn(plan.from([{ id: 's', tool: 'slow' }], { timeoutMs: 100 })));
      world.flush();
      expect(own.endedAtMs).toBe(100);
      expect(slow.aborts).toStrictEqual([]);
      expect(trace.slice(-3)).toMatchObject([
        { type: 'settled', source: 'turn', atMs: 100 },
        { type: 'attempt_succeeded', atMs: 500, late: true },
        { type: 'settled', source: 'call', atMs: 500, late: true, result: { status: 'success' } },
      ]);
      expect(own.events.at(-1)?.type).toBe('settled');
      expect(own.events.some((event) => 'late' in event)).toBe(false);
      expect(traceFaults(trace)).toStrictEqual([]);
    }),
  );

  it(
    'R-4.4 detached tools keep their attempt timeouts, and no retry follows',
    marbles((m) => {
      const world = new World(m);
      const hung = world.scripted('hung', [hangs], { timeoutMs: 300, retry: { ...noBackoff, maxTotalTimeMs: 60_000 } });
      const flaky = world.scripted('flaky', [fails(150, transient)], { retry: noBackoff });
      const layer = world.layer([hung, flaky]);
      const trace = world.watch(layer.trace$).events;
      world.turn(
        layer,
        plan.from(
          [
            { id: 'h', tool: 'hung' },
            { id: 'f', tool: 'flaky' },
          ],
          { timeoutMs: 100 },
        ),
      );
      expect(hung.starts).toStrictEqual([0]);
      expect(hung.aborts).toStrictEqual([300]);
      expect(flaky.starts).toStrictEqual([0]);
      expect(typed(trace, 'decision')).toMatchObject([
        { code: 'turn_deadline', strategy: 'partial', late: true },
        { code: 'turn_deadline', late: true },
      ]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.4 detached work runs on timers that do not hold the process',
    marbles((m) => {
      const background = counting(runtimeOn(m.scheduler));
      const runtime: Runtime = { ...runtimeOn(m.scheduler), background };
      const world = new World(m);
      const hung = world.scripted('hung', [hangs], { timeoutMs: 300 });
      const layer = world.layer([hung], { runtime });
      const trace = world.watch(layer.trace$).events;
      world.watch(layer.turn(plan.from([{ id: 'h', tool: 'hung' }], { timeoutMs: 100 })));
      let held = NaN;
      world.at(200, () => (held = background.timers));
      world.flush();
      expect(held).toBe(1);
      expect(background.timers).toBe(0);
      expect(trace.at(-1)).toMatchObject({ late: true, type: 'settled', result: { status: 'timeout' } });
    }),
  );

  it(
    'R-4.4 close() aborts what was detached',
    marbles((m) => {
      const world = new World(m);
      const slow = world.scripted('slow', [hangs], patient);
      const layer = world.layer([slow]);
      const trace = world.watch(layer.trace$).events;
      world.watch(layer.turn(plan.from([{ id: 's', tool: 'slow' }], { timeoutMs: 100 })));
      world.at(250, () => void layer.close());
      world.flush();
      expect(slow.aborts).toStrictEqual([250]);
      expect(trace.at(-1)).toMatchObject({
        type: 'settled',
        source: 'call',
        late: true,
        result: { error: { code: 'canceled' } },
      });
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.4 abort: running tools are aborted at the deadline, and each of their calls settles',
    marbles((m) => {
      const world = new World(m);
      const slow = world.scripted('slow', [hangs], patient);
      const waiting = world.scripted('waiting', [fails(90, transient)], {
        retry: { ...noJitter, initialDelayMs: 5, maxAttempts: 9 },
      });
      const layer = world.layer([slow, waiting]);
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(
        layer,
        plan.from(
          [
            { id: 's', tool: 'slow' },
            { id: 'w', tool: 'waiting' },
          ],
          { timeoutMs: 100, onDeadline: 'abort' },
        ),
      );
      expect(result).toMatchObject({ settledAtMs: 100, status: 'partial', executedTools: 2 });
      expect(slow.aborts).toStrictEqual([100]);
      expect(typed(trace, 'attempt_canceled')).toHaveLength(2);
      expect(typed(trace, 'deadline')).toMatchObject([{ unfinished: ['s', 'w'], onDeadline: 'abort' }]);
      // RES-2: every call of a turn that was not unsubscribed has exactly one result.
      const results = typed(trace, 'settled').filter((event) => event.source === 'call');
      expect(results).toMatchObject([
        { nodeId: 's', result: { status: 'timeout', error: { code: 'deadline_exceeded' } } },
        { nodeId: 'w' },
      ]);
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'R-4.4 a backoff that would reach the deadline ends at once',
    marbles((m) => {
      const world = new World(m);
      const flaky = world.scripted('flaky', [fails(5, transient)], { retry: { ...noJitter, initialDelayMs: 95 } });
      const layer = world.layer([flaky]);
      const trace = world.watch(layer.trace$).events;
      const result = world.turn(layer, plan.from([{ id: 'f', tool: 'flaky' }], { timeoutMs: 100 }));
      expect(result).toMatchObject({ settledAtMs: 5, status: 'escalated' });
      expect(typed(trace, 'decision')).toMatchObject([{ strategy: 'partial', code: 'turn_deadline' }]);
      const roomy = world.scripted('flaky', [fails(5, transient), answers(1)], {
        retry: { ...noJitter, initialDelayMs: 94 },
      });
      expect(
        states(world.turn(world.layer([roomy]), plan.from([{ id: 'f', tool: 'flaky' }], { timeoutMs: 100 }))),
      ).toStrictEqual({ f: 'succeeded' });
    }),
  );

  it('R-4.4 the time that synchronous tools take counts', () => {
    const clock = handClock();
    const planned = plan.from(
      [
        { id: 'busy', tool: { name: 'busy', execute: () => clock.pass(60) } },
        { id: 'hung', tool: { name: 'hung', execute: () => new Promise(() => undefined) } },
      ],
      { timeoutMs: 100 },
    );
    const layer = createSpillway({ runtime: clock.runtime });
    let settledAfterMs = NaN;
    const startedAtMs = clock.runtime.now();
    layer.turn(planned).subscribe({ complete: () => (settledAfterMs = clock.runtime.now() - startedAtMs) });
    clock.pass(39);
    expect(settledAfterMs).toBeNaN();
    clock.pass(1);
    expect(settledAfterMs).toBe(100);
  });
});

describe('R-4.6 a result at the very instant of the deadline', () => {
  const later =
    (ms: number, steps: number): Step =>
    (runtime) => {
      let step$ = runtime.after(ms);
      for (let i = 0; i < steps; i++) step$ = step$.pipe(concatMap(() => runtime.after(0)));
      return step$.pipe(map(() => 'in time'));
    };
  it.each([0, 1, 2])('R-4.6 beats the turn’s, also when it took %i more steps', (steps) =>
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [later(100, steps)])]);
      const result = world.turn(layer, plan.from([{ id: 's', tool: 'slow' }], { timeoutMs: 100 }));
      expect(result).toMatchObject({ status: 'completed', values: { s: 'in time' }, settledAtMs: 100 });
    })(),
  );

  it.each([0, 1, 2])('R-4.6 beats the attempt’s, also when it took %i more steps', (steps) =>
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('slow', [later(100, steps)], { timeoutMs: 100, retry: once });
      expect(world.call(world.layer([tried]), 'slow')).toMatchObject({
        status: 'success',
        output: { content: 'in time' },
        durationMs: 100,
      });
      expect(tried.aborts).toStrictEqual([]);
    })(),
  );

  it(
    'R-4.6 a millisecond later it does not',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [answers(101)])]);
      expect(states(world.turn(layer, plan.from([{ id: 's', tool: 'slow' }], { timeoutMs: 100 })))).toStrictEqual({
        s: 'timed_out',
      });
    }),
  );

  it('R-4.6 a result that had arrived while the event loop was stalled beats its timeout', () => {
    const clock = stallingClock();
    const layer = createSpillway({ runtime: clock.runtime });
    const results: TurnResult[] = [];
    const planned = plan.from([
      {
        id: 's',
        tool: {
          name: 'slow',
          policy: { timeoutMs: 50 },
          execute: () => clock.runtime.after(80).pipe(map(() => 'in time')),
        },
      },
    ]);
    layer.turn(planned).subscribe((event) => {
      if (event.source === 'turn' && event.type === 'settled') results.push(event.result);
    });
    clock.stall(5_000);
    expect(results).toMatchObject([{ status: 'completed', values: { s: 'in time' } }]);
  });

  it.each([1_000, 60_000])(
    'DL-1 a retry whose timer comes after the deadline makes no attempt, with %i ms in all',
    (maxTotalTimeMs) => {
      const clock = stallingClock();
      const layer = createSpillway({ runtime: clock.runtime });
      let attempts = 0;
      const flaky = {
        name: 'flaky',
        policy: { retry: { ...noJitter, initialDelayMs: 50, maxTotalTimeMs } },
        execute: () => {
          attempts++;
          throw new ToolExecutionError('transport_error', 'reset');
        },
      };
      const events: string[] = [];
      layer.turn(plan.from([{ id: 'f', tool: flaky }], { timeoutMs: 100 })).subscribe(({ type }) => events.push(type));
      clock.stall(5_000);
      expect(attempts).toBe(1);
      expect(events.at(-1)).toBe('settled');
      expect(clock.runtime.timers).toBe(0);
    },
  );
});

describe('R-4.5 the sentence for a person', () => {
  const sentence = (
    results: Readonly<Record<string, Step>>,
    needs: Readonly<Record<string, readonly string[]>> = {},
  ): string => {
    let summary = '';
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer(
        Object.entries(results).map(([name, step]) => world.scripted(name, [step], { retry: once })),
      );
      const planned = plan.from(
        Object.keys(results).map((name) => ({
          id: name,
          tool: name,
          ...(needs[name] === undefined
            ? {}
            : { needs: needs[name], ...(name.startsWith('default') ? { default: 0 } : {}) }),
        })),
        { timeoutMs: 100 },
      );
      ({ summary } = world.turn(layer, planned));
    })();
    return summary;
  };
  it.each([
    ['Completed flight search backup', { flight_search_backup: answers(1) }, {}],
    ['Completed flight search, but hotel search timed out', { flight_search: answers(1), hotel_search: hangs }, {}],
    [
      'Completed flight search, but hotel search and activity search timed out',
      { flight_search: answers(1), hotel_search: hangs, activity_search: hangs },
      {},
    ],
    [
      'Completed flight search, but hotel search failed',
      { flight_search: answers(1), hotel_search: fails(1, transient) },
      {},
    ],
    [
      'Completed flight search, but hotel search failed and book was skipped',
      { flight_search: answers(1), hotel_search: fails(1, transient), book: answers(1) },
      { book: ['hotel_search'] },
    ],
    [
      'Completed flight search, but hotel search failed and default book used a default',
      { flight_search: answers(1), hotel_search: fails(1, transient), default_book: answers(1) },
      { default_book: ['hotel_search'] },
    ],
    ['Completed nothing, but flight search timed out', { flight_search: hangs }, {}],
  ] as const)('R-4.5 %s', (expected, results, needs) => {
    expect(sentence(results, needs)).toBe(expected);
  });

  it(
    'R-4.5 an empty plan completes with nothing to do',
    marbles((m) => {
      const world = new World(m);
      expect(world.turn(world.layer([]), plan())).toMatchObject({
        status: 'completed',
        nodes: [],
        executedTools: 0,
        settledAtMs: 0,
        summary: 'There was nothing to do',
      });
      expect(world.runtime.timers).toBe(0);
    }),
  );
});

describe('R-5.4 results', () => {
  it(
    'R-5.4 come in plan order, one per node, whatever settles first',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('slow', [answers(50)]), world.scripted('quick', [answers(1)])]);
      const seen = world.watch(
        layer.turn(
          plan.from([
            { id: 'b', tool: 'slow' },
            { id: 'a', tool: 'quick' },
            { id: 'c', tool: 'slow' },
          ]),
        ),
      );
      world.flush();
      expect(turnResultOf(seen.events).nodes.map(({ id }) => id)).toStrictEqual(['b', 'a', 'c']);
      expect(typed(seen.events, 'node_settled').map(({ nodeId }) => nodeId)).toStrictEqual(['a', 'b', 'c']);
    }),
  );
});
