import { Subject, config, filter, map } from 'rxjs';
import { createSpillway, plan, type TraceEvent, type TurnEvent } from 'spillway';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { marbles } from '../marbles.ts';
import { permanent, transient } from '../support.ts';
import {
  World,
  answers,
  envelope,
  fails,
  hangs,
  messages,
  noBackoff,
  noJitter,
  once,
  traceFaults,
  turnResultOf,
  typed,
} from '../call/kit.ts';

describe('R-7.1 the trace', () => {
  it(
    'R-7.1 tells every attempt, error, class, breaker state, decision and outcome, in order and without gaps',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(5, transient), answers(7, 'secret')], { retry: noJitter }),
      ]);
      const trace = world.watch(layer.trace$).events;
      const result = world.call(layer, { toolName: 'flight_search', toolCallId: 'toolu_1', input: 'secret' });
      expect(trace).toMatchObject([
        { seq: 1, atMs: 0, type: 'call_started', toolCallId: 'toolu_1' },
        { seq: 2, atMs: 0, type: 'attempt_started', attempt: 1 },
        {
          seq: 3,
          atMs: 5,
          type: 'attempt_failed',
          attempt: 1,
          durationMs: 5,
          classification: 'transient',
          rule: 'code',
          breakerState: 'closed',
          error: { kind: 'transport_error', code: 'ECONNRESET' },
        },
        {
          seq: 4,
          atMs: 5,
          type: 'decision',
          strategy: 'retry',
          code: 'transient',
          classification: 'transient',
          breakerState: 'closed',
          delayMs: 100,
        },
        { seq: 5, atMs: 105, type: 'attempt_started', attempt: 2 },
        {
          seq: 6,
          atMs: 112,
          type: 'attempt_succeeded',
          attempt: 2,
          durationMs: 7,
          message: 'Tool succeeded on retry 2',
        },
        { seq: 7, atMs: 112, type: 'settled', result: { status: 'success', attempts: 2 } },
      ]);
      expect(new Set(trace.map((event) => event.source === 'call' && event.callId))).toStrictEqual(
        new Set([result.requestId]),
      );
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(JSON.stringify(trace)).not.toContain('secret');
      expect(result.output?.content).toBe('secret');
    }),
  );

  it(
    'R-7.1 a turn’s events carry its id, and those of its calls their node',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(5, permanent)]),
        world.scripted('hotel_search', [answers(9, 'secret')]),
      ]);
      const trace = world.watch(layer.trace$).events;
      const planned = plan.from([
        { id: 'flights', tool: 'flight_search', toolCallId: 'toolu_1' },
        { id: 'hotels', tool: 'hotel_search' },
        { id: 'book', tool: 'hotel_search', needs: ['flights'] },
      ]);
      const own = world.watch(layer.turn(planned)).events;
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      const ofTurn = trace.filter(({ source }) => source !== 'layer');
      expect(own.map(({ seq }) => seq)).toStrictEqual(ofTurn.map(({ seq }) => seq));
      expect(new Set(ofTurn.map((event) => 'turnId' in event && event.turnId)).size).toBe(1);
      expect(typed(trace, 'call_started')).toMatchObject([
        { nodeId: 'flights', toolCallId: 'toolu_1' },
        { nodeId: 'hotels' },
      ]);
      expect(own.at(-1)).toMatchObject({ type: 'settled', result: { values: { hotels: 'secret' } } });
      expect(trace.at(-1)).toMatchObject({ type: 'settled', result: { status: 'escalated' } });
      // Outputs stay with the caller.
      expect(JSON.stringify(trace)).not.toContain('secret');
    }),
  );

  it(
    'R-7.1 phrases: opening, success on a retry, alternatives, defaults, required nodes that were skipped',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(0, transient)], {
          retry: { ...noBackoff, maxAttempts: 2 },
          breaker: { failureThreshold: 2 },
          alternatives: ['flight_search_backup'],
        }),
        world.scripted('flight_search_backup', [fails(0, transient), answers(0)], { retry: noBackoff }),
        world.scripted('broken', [fails(0, permanent)]),
      ]);
      const trace = world.watch(layer.trace$).events;
      world.watch(
        layer.turn(
          plan.from([
            { id: 'flights', tool: 'flight_search' },
            { id: 'cars', tool: 'broken' },
            { id: 'prices', tool: 'flight_search_backup', needs: ['cars'], default: [] },
            { id: 'garage', tool: 'flight_search_backup', needs: ['cars'] },
          ]),
        ),
      );
      world.flush();
      for (const phrase of [
        'Circuit breaker opened for flight_search',
        'Tool succeeded on retry 2',
        'Used alternative tool',
        'Used default value for prices',
        'Required tool skipped due to dependency failure',
      ]) {
        expect(messages(trace)).toContain(phrase);
      }
      expect(traceFaults(trace)).toStrictEqual([]);
    }),
  );

  it(
    'R-7.1 two calls at once: each attempt has its own start and end',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([
        world.scripted('flight_search', [fails(5, transient), fails(7, transient), answers(9), answers(11)], {
          retry: noBackoff,
        }),
      ]);
      const trace = world.watch(layer.trace$).events;
      world.watch(layer.call({ toolName: 'flight_search' }));
      world.watch(layer.call({ toolName: 'flight_search' }));
      world.flush();
      expect(traceFaults(trace)).toStrictEqual([]);
      expect(typed(trace, 'attempt_started')).toHaveLength(4);
      expect(typed(trace, 'settled')).toHaveLength(2);
    }),
  );

  it(
    'R-7.1 a late subscriber hears what comes, with the numbers it has',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [answers(20)])]);
      const early = world.watch(layer.trace$).events;
      const late: TraceEvent[] = [];
      world.at(10, () => layer.trace$.subscribe((event) => late.push(event)));
      world.call(layer, 'flight_search');
      expect(late.map(({ type }) => type)).toStrictEqual(['layer_started', 'attempt_succeeded', 'settled']);
      expect(late.slice(1)).toStrictEqual(early.slice(-2));
    }),
  );

  it(
    'R-7.1 a turn and a call are cold: each subscription is a run of its own',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [answers(20)]);
      const layer = world.layer([tried]);
      const turn$ = layer.turn(plan.from([{ id: 'flights', tool: 'flight_search' }]));
      const call$ = layer.call({ toolName: 'flight_search' });
      expect(tried.starts).toStrictEqual([]);
      const first = world.watch<TurnEvent>(turn$);
      const second: TurnEvent[] = [];
      world.at(10, () => turn$.subscribe((event) => second.push(event)));
      world.at(15, () => world.watch(call$));
      world.flush();
      expect(tried.starts).toStrictEqual([0, 10, 15]);
      expect(turnResultOf(first.events).status).toBe('completed');
      expect(turnResultOf(second).status).toBe('completed');
      expect(first.events[0]).not.toHaveProperty('turnId', second[0]?.turnId);
    }),
  );

  it(
    'R-7.1 what an attempt reports is told, until its end',
    marbles((m) => {
      const world = new World(m);
      const steps = [() => world.runtime.after(30)];
      const scripted = world.scripted('flight_search', steps);
      const { execute } = scripted.tool;
      const layer = world.layer([
        {
          ...scripted.tool,
          execute: (input, context) => {
            world.at(10, () => context.progress({ progress: 1, total: 2 }));
            world.at(50, () => context.progress({ progress: 2, total: 2 }));
            return execute(input, context);
          },
        },
      ]);
      const trace = world.watch(layer.trace$).events;
      world.call(layer, 'flight_search');
      expect(typed(trace, 'progress')).toMatchObject([{ atMs: 10, attempt: 1, report: { progress: 1, total: 2 } }]);
    }),
  );

  it(
    'R-8.3 tags and correlationId reach it',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [answers(1)])]);
      const trace = world.watch(layer.trace$).events;
      world.call(
        layer,
        envelope('flight_search', {
          control: { requestTags: ['nightly', 'eu'] },
          target: { sessionKey: 's', actorId: 'a', correlationId: 'corr-7' },
        }),
      );
      expect(trace[0]).toMatchObject({ type: 'call_started', tags: ['nightly', 'eu'], correlationId: 'corr-7' });
    }),
  );
});

describe('R-7.1 subscribers that throw', () => {
  const unhandled: unknown[] = [];
  beforeEach(() => {
    vi.useFakeTimers();
    unhandled.length = 0;
    config.onUnhandledError = (error) => unhandled.push(error);
  });
  afterEach(() => {
    config.onUnhandledError = null;
    vi.useRealTimers();
  });
  const thrower = (): never => {
    throw new Error('a listener’s own');
  };

  it(
    'R-7.1 change no outcome, are counted, and do not end the process',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [answers(5, 'value')])]);
      layer.trace$.subscribe(thrower);
      layer.trace$.subscribe({ next: thrower });
      const seen = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({ status: 'success', output: { content: 'value' } });
      expect(seen).toHaveLength(4);
      // Four each, and what a subscriber is told before.
      expect(layer.droppedEvents).toBe(10);
      vi.runAllTimers();
      expect(unhandled).toStrictEqual([]);
    }),
  );

  it(
    'R-7.1 also behind a pipe, and in an operator of it',
    marbles((m) => {
      const world = new World(m);
      const layer = world.layer([world.scripted('flight_search', [answers(5)])]);
      layer.trace$.pipe(filter(({ type }) => type === 'settled')).subscribe(thrower);
      layer.trace$.pipe(map(thrower)).subscribe(() => undefined);
      const errors: unknown[] = [];
      layer.trace$.pipe(map(thrower)).subscribe({ error: (error) => errors.push(error) });
      const subject = new Subject<TraceEvent>();
      const seen = world.watch(subject).events;
      layer.trace$.subscribe(subject);
      expect(world.call(layer, 'flight_search').status).toBe('success');
      vi.runAllTimers();
      expect(unhandled).toStrictEqual([]);
      expect(errors).toHaveLength(1);
      expect(seen).toHaveLength(4);
      expect(layer.droppedEvents).toBe(2);
    }),
  );

  it('R-7.1 at the end of the trace too', async () => {
    const layer = createSpillway({});
    layer.trace$.subscribe({ complete: thrower });
    let completed = false;
    class Listener {
      next(): void {
        completed = false;
      }
      complete(): void {
        this.next();
        completed = true;
      }
    }
    layer.trace$.subscribe(new Listener());
    await layer.close();
    vi.runAllTimers();
    expect(completed).toBe(true);
    expect(unhandled).toStrictEqual([]);
    expect(layer.droppedEvents).toBe(1);
  });

  it(
    'R-8.2 a throwing subscriber of a call does not change its result',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(5, transient), answers(5)], { retry: noBackoff });
      const layer = world.layer([tried, world.scripted('other', [hangs], { timeoutMs: 50, retry: once })]);
      const trace = world.watch(layer.trace$).events;
      layer
        .turn(
          plan.from([
            { id: 'a', tool: 'flight_search' },
            { id: 'b', tool: 'other' },
          ]),
        )
        .subscribe(thrower);
      world.flush();
      expect(trace.at(-1)).toMatchObject({
        type: 'settled',
        result: { nodes: [{ state: 'succeeded' }, { state: 'failed' }] },
      });
      expect(traceFaults(trace)).toStrictEqual([]);
    }),
  );
});
