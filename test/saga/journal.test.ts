import { NEVER, Subject } from 'rxjs';
import { ToolExecutionError, createSpillway, plan, tool, type Spillway, type TurnEvent } from 'spillway';
import type { TurnJournal } from 'spillway/contract';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { states, turnResultOf } from '../call/kit.ts';
import { survivors } from './survivors.ts';

const processOf = (
  runtime: VirtualRuntime,
  { store }: ReturnType<typeof survivors>,
  execute: (name: string, attempt: number, signal: AbortSignal) => unknown,
): Spillway =>
  createSpillway({
    runtime,
    store,
    tools: ['a', 'b', 'c'].map((name) =>
      tool({
        name,
        policy: {
          effects: 'read',
          timeoutMs: 50_000,
          retry: { initialDelayMs: 1_000, maxDelayMs: 1_000, jitterPercent: 0, maxTotalTimeMs: 50_000, maxAttempts: 3 },
        },
        execute: (_input: unknown, { attempt, signal }) => execute(name, attempt, signal),
      }),
    ),
  });

const trip = plan.from([
  { id: 'first', tool: 'a' },
  { id: 'then', tool: 'b', needs: ['first'] },
  { id: 'last', tool: 'c', needs: ['then'] },
]);

const run = (layer: Spillway, journal: TurnJournal): TurnEvent[] => {
  const events: TurnEvent[] = [];
  layer.turn(trip, { journal }).subscribe((event) => events.push(event));
  return events;
};

describe('R-17.2 a turn with a journal', () => {
  it('R-17.2 goes on in another process with what it had found, and runs nothing of that again', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const ran: string[] = [];
    // Its process dies while the second node runs: nothing of it is ever heard again.
    const first = processOf(runtime, kept, (name) => {
      ran.push(`1 ${name}`);
      return name === 'b' ? NEVER : `${name} of 1`;
    });
    const before = run(first, kept.taken('one'));
    await runtime.advance(1_000);
    const second = processOf(runtime, kept, (name) => {
      ran.push(`2 ${name}`);
      return `${name} of 2`;
    });
    const after = run(second, kept.taken('two'));
    await runtime.advance(1_000);
    expect(ran).toStrictEqual(['1 a', '1 b', '2 b', '2 c']);
    expect(turnResultOf(after)).toMatchObject({
      status: 'completed',
      values: { first: 'a of 1', then: 'b of 2', last: 'c of 2' },
      executedTools: 3,
    });
    expect(before.filter(({ type }) => type === 'turn_started')).toHaveLength(1);
    expect(after.map(({ type }) => type)).not.toContain('turn_started');
    expect(after[0]).toMatchObject({ type: 'turn_moved', turnId: 'trip-1', from: 'one', to: 'two' });
    expect(after.filter(({ type }) => type === 'node_settled')).toHaveLength(2);
  });

  it('R-17.4 takes over a claim whose owner was given up, long before its lease has passed', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const first = processOf(runtime, kept, () => NEVER);
    run(first, kept.taken('one'));
    await runtime.advance(10);
    const startedMs = runtime.now();
    const fences: string[] = [];
    const second = processOf(runtime, kept, (name) => name);
    second.trace$.subscribe((event) => {
      if (event.type === 'dedupe') fences.push(event.step);
    });
    const after = run(second, kept.taken('two'));
    await runtime.advance(100);
    expect(turnResultOf(after).status).toBe('completed');
    const settled = after.find(({ type, source }) => type === 'settled' && source === 'turn');
    expect((settled?.atMs ?? Infinity) - startedMs).toBeLessThan(50);
    expect(fences).toContain('taken_over');
  });

  it('R-17.4 leaves a claim alone where the turn is no longer its own', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    run(
      processOf(runtime, kept, () => NEVER),
      kept.taken('one'),
    );
    await runtime.advance(10);
    let ran = 0;
    const late = kept.taken('two');
    kept.taken('three');
    run(
      processOf(runtime, kept, () => ran++),
      late,
    );
    await runtime.advance(30_000);
    expect(ran).toBe(0);
  });

  it('R-17.2 decides nothing again: attempts are counted on, and the chosen delay is waited to its end', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const attempts: string[] = [];
    const failing = (worker: string) => (_name: string, attempt: number) => {
      attempts.push(`${worker}.${attempt}`);
      throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET', executed: false });
    };
    const first = processOf(runtime, kept, failing('one'));
    const left$ = new Subject<void>();
    run(first, kept.taken('one', left$));
    await runtime.advance(400);
    left$.next();
    const movedMs = runtime.now();
    const second = processOf(runtime, kept, failing('two'));
    const decisions: string[] = [];
    second.trace$.subscribe((event) => {
      if (event.type === 'decision') decisions.push(`${event.code} ${event.attempt}`);
    });
    const after = run(second, kept.taken('two'));
    await runtime.advance(10);
    expect(attempts).toStrictEqual(['one.1']);
    await runtime.advance(5_000);
    // The second attempt, 600 ms after the move, and the third one: three in all, as the policy has it.
    expect(attempts).toStrictEqual(['one.1', 'two.2', 'two.3']);
    expect(decisions[0]).toBe('transient 2');
    const started = after.find((event) => event.type === 'attempt_started');
    expect((started?.atMs ?? 0) - movedMs).toBe(600);
    expect(states(turnResultOf(after))).toStrictEqual({ first: 'failed', then: 'skipped', last: 'skipped' });
  });

  it('R-17.3 keeps its end when it moves, and one whose time is over is harvested at once', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    run(
      processOf(runtime, kept, (name) => (name === 'a' ? 'kept' : NEVER)),
      kept.taken('one'),
    );
    await runtime.advance(40_000);
    const second = run(
      processOf(runtime, kept, () => NEVER),
      kept.taken('two'),
    );
    await runtime.advance(20_000);
    expect(turnResultOf(second)).toMatchObject({ status: 'partial', values: { first: 'kept' } });
    // Nobody was there when its time was over.
    const later = survivors(runtime);
    const left$ = new Subject<void>();
    run(
      processOf(runtime, later, (name) => (name === 'a' ? 'kept' : NEVER)),
      later.taken('one', left$),
    );
    await runtime.advance(1_000);
    left$.next();
    await runtime.advance(90_000);
    let ran = 0;
    const third = run(
      processOf(runtime, later, () => ran++),
      later.taken('two'),
    );
    await runtime.advance(1);
    expect(turnResultOf(third)).toMatchObject({ status: 'partial', values: { first: 'kept' } });
    expect(ran).toBe(0);
  });

  it('R-17.2 a turn that goes elsewhere settles nothing here, starts nothing, and leaves what runs to its lease', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    let aborted = 0;
    let ran = 0;
    const left$ = new Subject<void>();
    const first = processOf(runtime, kept, (_name, _attempt, signal) => {
      ran++;
      signal.addEventListener('abort', () => aborted++);
      return NEVER;
    });
    const told: string[] = [];
    first.trace$.subscribe(({ source, type }) => told.push(`${source} ${type}`));
    const before = run(first, kept.taken('one', left$));
    await runtime.advance(1_000);
    left$.next();
    await runtime.advance(1);
    expect({ ran, aborted }).toStrictEqual({ ran: 1, aborted: 0 });
    const after = run(
      processOf(runtime, kept, (name) => name),
      kept.taken('two'),
    );
    await runtime.advance(50_000);
    expect(turnResultOf(after).status).toBe('completed');
    expect({ ran, aborted }).toStrictEqual({ ran: 1, aborted: 1 });
    expect(before.map(({ type }) => type)).not.toContain('node_settled');
    expect(told).not.toContain('turn settled');
  });
});

describe('R-17.2 a turn that goes elsewhere while its call backs off', () => {
  it('R-17.2 tells of no end here', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const left$ = new Subject<void>();
    const first = processOf(runtime, kept, () => {
      throw new ToolExecutionError('transport_error', 'reset', { code: 'ECONNRESET', executed: false });
    });
    const told: string[] = [];
    first.trace$.subscribe(({ source, type }) => told.push(`${source} ${type}`));
    run(first, kept.taken('one', left$));
    await runtime.advance(100);
    left$.next();
    await runtime.advance(20_000);
    expect(told).not.toContain('turn settled');
    expect(told.filter((event) => event === 'call attempt_started')).toHaveLength(1);
  });

  it('R-4.6 a result beats the deadline though its journal is slow', async () => {
    const runtime = virtualRuntime();
    const kept = survivors(runtime);
    const journal = kept.taken('one');
    const slow: TurnJournal = { ...journal, remainingMs: 1_000, settle: () => NEVER };
    const events = run(
      processOf(runtime, kept, (name) => name),
      slow,
    );
    await runtime.advance(2_000);
    expect(states(turnResultOf(events))).toStrictEqual({ first: 'succeeded', then: 'timed_out', last: 'timed_out' });
    expect(events.filter((event) => event.type === 'node_settled' && event.nodeId === 'first')).toHaveLength(1);
  });
});
