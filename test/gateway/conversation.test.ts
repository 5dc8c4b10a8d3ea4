import fc from 'fast-check';
import { virtualRuntime } from 'spillway/testing';
import {
  conversationClient,
  memoryConversationState,
  type ConversationRecord,
  type ConversationState,
} from 'spillway/gateway/anthropic';
import { ToolExecutionError } from 'spillway';
import { describe, expect, it } from 'vitest';
import { TOMBSTONE, storedAfter, storedTextOf, recordOf } from '../../src/gateway/conversation/conversation.ts';
import { counting, handClock } from '../support.ts';

const record = (id: string, chars = 2): ConversationRecord => ({
  author: 'a turn',
  toolUseIds: [id],
  before: '[]',
  content: `[${' '.repeat(chars)}]`,
  results: '',
});

describe('R-13.4 state in memory', () => {
  it('R-13.4 gives what was stored, for as long as it is kept', async () => {
    const clock = handClock();
    const state = memoryConversationState({ ttlMs: 100, runtime: clock.runtime });
    await state.store('a', record('a'));
    clock.pass(60);
    await state.store('b', record('b'));
    await state.store('b', record('c'));
    expect(await state.retrieve(['a', 'b', 'x'])).toStrictEqual(
      new Map([
        ['a', record('a')],
        ['b', record('c')],
      ]),
    );
    clock.pass(40);
    expect([...(await state.retrieve(['a', 'b'])).keys()]).toStrictEqual(['b']);
    expect(clock.runtime.timers).toBe(0);
  });

  it('R-13.4 is bounded by records and by characters, the oldest going first', async () => {
    const few = memoryConversationState({ maxRecords: 2 });
    for (const id of ['a', 'b', 'c']) await few.store(id, record(id));
    expect([...(await few.retrieve(['a', 'b', 'c'])).keys()]).toStrictEqual(['b', 'c']);
    const short = memoryConversationState({ maxChars: 1_000 });
    for (const id of ['a', 'b', 'c']) await short.store(id, record(id, 450));
    expect([...(await short.retrieve(['a', 'b', 'c'])).keys()]).toStrictEqual(['b', 'c']);
  });

  it('R-2.9 its options are checked', () => {
    expect(() => memoryConversationState({ ttlMs: 0 })).toThrow(/ttlMs must be a duration above 0/);
    expect(() => memoryConversationState({ maxRecords: 0.5 })).toThrow(/maxRecords must be an integer/);
    expect(() => memoryConversationState({ ttl: 1 } as object)).toThrow(/has no option "ttl"/);
  });
});

describe('R-13.4 the client that retries', () => {
  /** A state that fails so often, and when it was asked. */
  const failing = (
    times: number,
    error: unknown = new Error('down'),
  ): ConversationState & { readonly atMs: number[]; clock: { now(): number } } => {
    const atMs: number[] = [];
    const state = {
      atMs,
      clock: { now: () => 0 },
      ask: <T>(value: T): T => {
        atMs.push(state.clock.now());
        if (atMs.length <= times) throw error;
        return value;
      },
      store: () => state.ask(undefined),
      retrieve: () => state.ask(new Map()),
    };
    return state;
  };
  const settle = async (runtime: ReturnType<typeof virtualRuntime>, work: Promise<unknown>): Promise<unknown> => {
    let outcome: unknown;
    work.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    );
    await runtime.run(1_000);
    return outcome;
  };

  it.each([
    ['retrieve', [50, 100]],
    ['store', [100, 400]],
  ] as const)('R-13.4 %s: two retries with backoff, then its last error', async (operation, delays) => {
    const runtime = virtualRuntime({ seed: 7 });
    const state = failing(99);
    state.clock = runtime;
    const client = conversationClient(state, { runtime });
    const outcome = await settle(
      runtime,
      operation === 'store' ? client.store('k', record('a')) : client.retrieve(['k']),
    );
    expect(outcome).toMatchObject({ error: { message: 'down' } });
    expect(state.atMs).toHaveLength(3);
    delays.forEach((delayMs, at) => {
      const waited = (state.atMs[at + 1] ?? 0) - (state.atMs[at] ?? 0);
      expect(waited).toBeGreaterThanOrEqual(delayMs * 0.9);
      expect(waited).toBeLessThanOrEqual(delayMs * 1.1);
    });
  });

  it('R-13.4 a failure that asking again cannot mend is not retried', async () => {
    const runtime = virtualRuntime({ seed: 7 });
    const state = failing(99, new ToolExecutionError('execution_error', 'no', { status: 400 }));
    expect(await settle(runtime, conversationClient(state, { runtime }).retrieve(['k']))).toMatchObject({
      error: { status: 400 },
    });
    expect(state.atMs).toHaveLength(1);
  });

  it('R-13.4 an attempt that hangs is given up, and no timer is left', async () => {
    const virtual = virtualRuntime({ seed: 7 });
    const runtime = counting(virtual);
    let asked = 0;
    const state: ConversationState = {
      store: () => undefined,
      retrieve: () => (++asked < 3 ? new Promise(() => undefined) : new Map()),
    };
    expect(
      await settle(virtual, conversationClient(state, { runtime, retrieve: { timeoutMs: 100 } }).retrieve(['k'])),
    ).toStrictEqual({ value: new Map() });
    expect([asked, runtime.timers]).toStrictEqual([3, 0]);
  });

  it('R-13.4 with a breaker, a state that keeps failing is not asked', async () => {
    const runtime = virtualRuntime({ seed: 7 });
    const state = failing(99);
    const client = conversationClient(state, { runtime, breaker: { failureThreshold: 2 } });
    await settle(runtime, client.retrieve(['k']));
    expect(state.atMs).toHaveLength(2);
    expect(await settle(runtime, client.retrieve(['k']))).toMatchObject({ error: { kind: 'circuit_open' } });
    expect(state.atMs).toHaveLength(2);
  });

  it('R-2.9 its options are checked', () => {
    const state = failing(0);
    expect(() => conversationClient(state, { retrieve: { timeoutMs: -1 } })).toThrow(/retrieve.timeoutMs/);
    expect(() => conversationClient(state, { store: { retry: { maxAttempts: 0 } } })).toThrow(/maxAttempts/);
    expect(() => conversationClient(state, { store: { retries: 2 } as object })).toThrow(
      /store has no option "retries"/,
    );
  });
});

it('R-13.4 text that is no record is not taken for one', () => {
  expect(recordOf(storedAfter(undefined, storedTextOf(record('a'))))).toStrictEqual(record('a'));
  expect(recordOf(TOMBSTONE)).toBeUndefined();
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((text) => `author\n${text}`),
      ),
      (text) => {
        expect(recordOf(text)).toBeUndefined();
      },
    ),
    { numRuns: 300, verbose: 1 },
  );
});
