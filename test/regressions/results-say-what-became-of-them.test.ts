// Was: a success whose outcome the store refused or never got looked like any other, and only the trace told.
// Now: the result itself says so.
import { describe, expect, it } from 'vitest';
import type { DedupeStore, ToolResultEnvelope } from 'spillway';
import { toolResultEnvelopeSchema } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, gate, watched } from '../spec/tr-02-stores.ts';

type Runtime = ReturnType<typeof virtualRuntime>;

/** A store of which some methods do otherwise. */
const storeThat = (runtime: Runtime, other: (store: DedupeStore) => Partial<DedupeStore>): DedupeStore => {
  const store = memoryStore({ runtime, sweepMs: Infinity });
  const methods = [
    'get',
    'setIfNotExists',
    'compareAndSet',
    'renew',
    'delete',
    'byTool',
    'bySession',
    'sweep',
  ] as const;
  const own = Object.fromEntries(
    methods.map((name) => [name, (store[name] as (...args: unknown[]) => unknown).bind(store)]),
  );
  return { ...(own as unknown as DedupeStore), ...other(store) };
};

const lost = (): never => {
  throw new Error('the store is gone');
};
const paid = (): string => 'paid';
const declined = (): never => {
  throw Object.assign(new Error('declined'), { status: 402 });
};

const resultOf = async (
  runtime: Runtime,
  store: DedupeStore,
  execute: () => unknown,
  mode: 'enforced' | 'bestEffort' = 'enforced',
): Promise<{ readonly result: ToolResultEnvelope; readonly steps: string[] }> => {
  const { layer, steps, events } = watched(store, execute, { effects: 'mutating' }, { runtime });
  const result = layer.execute(asked({ mode }));
  await runtime.advance(600_000);
  const settled = await result;
  expect(toolResultEnvelopeSchema.parse(settled)).toEqual(settled);
  const shown = events.find((event) => event.source === 'call' && event.type === 'settled');
  expect(shown).toMatchObject({
    result: { status: settled.status, ...(settled.recorded === undefined ? {} : { recorded: settled.recorded }) },
  });
  return { result: settled, steps: steps() };
};

describe('R-10.3 the result itself says what became of its record', () => {
  it('R-10.3 a recorded success says nothing', async () => {
    const runtime = virtualRuntime();
    const { result } = await resultOf(runtime, memoryStore({ runtime, sweepMs: Infinity }), paid);
    expect(result.status).toBe('success');
    expect(result).not.toHaveProperty('recorded');
  });

  it('R-10.3 a success that the store never got is `unrecorded`', async () => {
    const runtime = virtualRuntime();
    const { result, steps } = await resultOf(
      runtime,
      storeThat(runtime, () => ({ compareAndSet: lost })),
      paid,
    );
    expect(steps).toEqual(['claimed', 'unrecorded']);
    expect(result).toMatchObject({ status: 'success', recorded: 'unrecorded', output: { content: 'paid' } });
  });

  it('R-10.3 a success that the store refused is `superseded`', async () => {
    const runtime = virtualRuntime();
    const { result, steps } = await resultOf(
      runtime,
      storeThat(runtime, () => ({ compareAndSet: () => undefined, get: () => undefined })),
      paid,
    );
    expect(steps).toEqual(['claimed', 'superseded']);
    expect(result).toMatchObject({ status: 'success', recorded: 'superseded', fromCache: false });
  });

  it('R-10.3 a failure that could not be recorded is uncertain', async () => {
    for (const compareAndSet of [lost, (): undefined => undefined]) {
      const runtime = virtualRuntime();
      const { result } = await resultOf(
        runtime,
        storeThat(runtime, () => ({ compareAndSet, get: () => undefined })),
        declined,
      );
      expect(result).toMatchObject({ status: 'error', error: { code: 'execution_error', uncertain: true } });
      expect(result).not.toHaveProperty('recorded');
    }
  });

  it('R-10.3 a call that ran without the store is `unrecorded`, and uncertain if it failed', async () => {
    for (const [execute, expected] of [
      [paid, { status: 'success', recorded: 'unrecorded' }],
      [declined, { error: { uncertain: true } }],
    ] as const) {
      const runtime = virtualRuntime();
      const { result, steps } = await resultOf(
        runtime,
        storeThat(runtime, () => ({ setIfNotExists: lost })),
        execute,
        'bestEffort',
      );
      expect(steps).toEqual(['unprotected']);
      expect(result).toMatchObject(expected);
    }
  });

  it('R-10.3 a success whose caller’s time ends before the store has answered is `unrecorded`', async () => {
    const runtime = virtualRuntime();
    const store = storeThat(runtime, () => ({ compareAndSet: () => new Promise<undefined>(() => undefined) }));
    const { layer } = watched(store, paid, { effects: 'mutating' }, { runtime });
    const abort = new AbortController();
    const result = layer.execute(asked(), { signal: abort.signal });
    await runtime.advance(10);
    abort.abort();
    await runtime.advance(10);
    expect(await result).toMatchObject({ status: 'success', recorded: 'unrecorded' });
  });

  it('R-10.3 a call that was refused before it ran says nothing of a record', async () => {
    const runtime = virtualRuntime();
    const { result } = await resultOf(
      runtime,
      storeThat(runtime, () => ({ setIfNotExists: lost })),
      paid,
    );
    expect(result).toMatchObject({ status: 'retriable_error', error: { code: 'store_unavailable' } });
    expect(result).not.toHaveProperty('recorded');
    expect(result.error).not.toHaveProperty('uncertain');
  });
});

describe('R-10.3 a key that ran twice', () => {
  const LEASE_MS = 1_000;

  /** Two processes with clocks of their own: the first stands still beyond its lease while the second takes over. */
  const twice = async (
    first: (late: Promise<string>) => unknown,
    second: () => unknown,
  ): Promise<{ readonly stopped: ToolResultEnvelope; readonly next: ToolResultEnvelope }> => {
    const [stopped, well] = [virtualRuntime(), virtualRuntime()];
    const store = memoryStore({ runtime: well, sweepMs: Infinity });
    const late = gate<string>();
    const policy = { effects: 'mutating', dedupe: { leaseMs: LEASE_MS } } as const;
    const frozen = watched(store, () => first(late.opened), policy, { runtime: stopped }).call();
    await stopped.advance(0);
    await well.advance(LEASE_MS + 100);
    const taker = watched(store, second, policy, { runtime: well }).call();
    await well.advance(10);
    late.open('first');
    await stopped.advance(0);
    await stopped.advance(10_000);
    await well.advance(10_000);
    return { stopped: await frozen, next: await taker };
  };

  it('R-10.3 its first owner, who was stopped beyond its lease, says so beside the result of the second', async () => {
    const { stopped, next } = await twice(
      (late) => late,
      () => 'second',
    );
    expect(stopped).toMatchObject({
      status: 'success',
      fromCache: true,
      recorded: 'superseded',
      output: { content: 'second' },
    });
    expect(next).toMatchObject({ status: 'success', fromCache: false, output: { content: 'second' } });
    expect(next).not.toHaveProperty('recorded');
  });

  it('R-10.3 where the second failed, the first owner’s failure is uncertain', async () => {
    const { stopped } = await twice((late) => late, declined);
    expect(stopped).toMatchObject({
      fromCache: true,
      status: 'error',
      error: { code: 'execution_error', uncertain: true },
    });
  });

  it('R-9.6 who finds out while its tool still runs says so too', async () => {
    const { stopped } = await twice(
      () => new Promise(() => undefined),
      () => 'second',
    );
    expect(stopped).toMatchObject({ status: 'success', recorded: 'superseded', output: { content: 'second' } });
  });
});
