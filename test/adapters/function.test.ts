import { createSpillway, type TraceEvent } from 'spillway';
import { ToolFailure, createHarvest, guardFunction } from 'spillway/adapters/function';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { CANARY } from './frameworks/kit.ts';

interface Call {
  readonly callId: string;
  readonly options: { readonly signal?: AbortSignal; readonly user: string };
}
const callOf = (signal?: AbortSignal): Call => ({ callId: 'c1', options: { user: 'u', ...(signal && { signal }) } });
const reads = { effects: 'read', retry: { initialDelayMs: 0 } } as const;
const failed = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
const reset = (): Error => Object.assign(new Error(`read ECONNRESET ${CANARY}`), { code: 'ECONNRESET' });

describe('guardFunction', () => {
  it('R-4.1 a function that ignores its signal settles at its timeout, and its signal is aborted', async () => {
    const runtime = virtualRuntime();
    const signals: AbortSignal[] = [];
    const hang = (_input: object, { signal }: { signal: AbortSignal }): Promise<never> => {
      signals.push(signal);
      return new Promise(() => undefined);
    };
    const guarded = guardFunction('hang', hang, {
      runtime,
      policy: { timeoutMs: 5_000 },
      signalOf: (_input, { signal }) => signal,
    });
    const { signal } = new AbortController();
    const failure = failed(guarded({}, { signal }));
    await runtime.advance(5_000);
    expect(await failure).toMatchObject({ name: 'ToolFailure', kind: 'timeout' });
    expect(signals).toHaveLength(1);
    expect([signals[0] === signal, signals[0]?.aborted, signal.aborted]).toEqual([false, true, false]);
  });

  it('R-2.5 a payment whose connection broke after the effect is made once, and a read is tried again', async () => {
    const tries = async (policy: object): Promise<number> => {
      let ran = 0;
      const run = (_input: object): Promise<string> => (++ran < 3 ? Promise.reject(reset()) : Promise.resolve('ok'));
      await failed(guardFunction('pay', run, { policy })({}));
      return ran;
    };
    expect([await tries({ retry: { initialDelayMs: 0 } }), await tries(reads)]).toEqual([1, 3]);
  });

  it('R-4.2 a cancel is heard at once, whatever the function does', async () => {
    const controller = new AbortController();
    const guarded = guardFunction(
      'hang',
      (_input: object, _call: { signal: AbortSignal }) => new Promise(() => undefined),
      {
        signalOf: (_input, { signal }) => signal,
      },
    );
    const failure = failed(guarded({}, { signal: controller.signal }));
    controller.abort();
    expect(await failure).toMatchObject({ kind: 'canceled' });
  });

  it('R-3.8 a breaker opens, and says so without a call', async () => {
    let ran = 0;
    const guarded = guardFunction('down', (_input: object) => Promise.reject(new Error(`down ${++ran}`)), {
      policy: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 2 } },
    });
    await failed(guarded({}));
    await failed(guarded({}));
    expect([await failed(guarded({})), ran]).toMatchObject([{ kind: 'circuit_open' }, 2]);
  });

  it('R-12.4 a failure is thrown as a sentence for the model, or becomes what `fail` gives', async () => {
    const boom = (_input: string): Promise<number> => Promise.reject(new Error(CANARY));
    const thrown = await failed(guardFunction('boom', boom)('x'));
    expect(thrown).toBeInstanceOf(ToolFailure);
    expect(String(thrown)).not.toContain(CANARY);
    const told = guardFunction('boom', boom, { fail: ({ message }, input) => ({ input, error: message }) });
    expectTypeOf(told).returns.resolves.toEqualTypeOf<number | { input: string; error: string }>();
    expect(await told('x')).toEqual({
      input: 'x',
      error: expect.stringContaining('It may have taken effect') as string,
    });
  });

  it('R-7.1 the call has its framework’s id, on a layer of the host’s, and a harvest keeps it', async () => {
    const spillway = createSpillway();
    const events: TraceEvent[] = [];
    spillway.trace$.subscribe((event) => events.push(event));
    const guarded = guardFunction('weather', ({ city }: { city: string }, _call: Call) => `${city}: 21 °C`, {
      spillway,
      policy: reads,
      idOf: (_input, { callId }) => callId,
    });
    const harvest = createHarvest();
    expect(await harvest.run(() => guarded({ city: 'Oslo' }, callOf()))).toBe('Oslo: 21 °C');
    expect(events.find(({ type }) => type === 'call_started')).toMatchObject({ toolName: 'weather', toolCallId: 'c1' });
    expect(harvest.calls).toMatchObject([
      { framework: 'function', toolName: 'weather', toolCallId: 'c1', input: { city: 'Oslo' }, state: 'succeeded' },
    ]);
  });

  it('R-4.2 the attempt’s signal stands where the caller’s stood; all else is as it was', async () => {
    class Context {
      readonly #secret = 7;
      readonly signal: AbortSignal;
      constructor(signal: AbortSignal) {
        this.signal = signal;
      }
      secret(): number {
        return this.#secret;
      }
    }
    const { signal } = new AbortController();
    const seen: unknown[] = [];
    const run = Object.assign(
      function run(this: unknown, _input: object, context: Context, plain: { user: string; signal: AbortSignal }) {
        seen.push(
          this,
          context instanceof Context,
          context.secret(),
          context.signal === plain.signal && plain.signal !== signal,
          plain.user,
        );
        return context.signal;
      },
      { version: 3 },
    );
    const guarded = guardFunction('run', run as (...args: Parameters<typeof run>) => AbortSignal, {
      signalOf: (_input, { signal }) => signal,
    });
    const host = { guarded };
    expect(await host.guarded({}, new Context(signal), { user: 'u', signal })).not.toBe(signal);
    expect(seen).toEqual([host, true, 7, true, 'u']);
    expect([guarded.name, guarded.length, Reflect.get(guarded, 'version')]).toEqual(['run', 3, 3]);
  });

  it('R-4.2 `withSignal` gives the attempt’s signal to a function whose caller gave none', async () => {
    const guarded = guardFunction('run', (_input: object, options: { signal?: AbortSignal }) => options.signal, {
      withSignal: (signal, options) => [{ ...options, signal }],
    });
    expect(await guarded({}, {})).toBeInstanceOf(AbortSignal);
  });

  it('R-9.1 two calls with one key run once, and both are answered, with a failure, too', async () => {
    let paid = 0;
    const run = ({ order }: { order: string }): Promise<string> =>
      ++paid && order === 'lost' ? Promise.reject(reset()) : Promise.resolve(`paid ${paid}`);
    const pay = guardFunction('pay', run, { keyOf: ({ order }) => order });
    expect(await Promise.all([pay({ order: 'a' }), pay({ order: 'a' }), pay({ order: 'b' })])).toEqual([
      'paid 1',
      'paid 1',
      'paid 2',
    ]);
    const first = await failed(pay({ order: 'lost' }));
    expect([await failed(pay({ order: 'lost' })), paid]).toMatchObject([{ message: (first as Error).message }, 3]);
  });

  it('R-2.9 what cannot be guarded is refused, before anything runs', async () => {
    expect(() => guardFunction('x', 7 as never)).toThrow(/takes a function, not number/);
    expect(() => guardFunction(7 as never, () => 1)).toThrow(/name of the tool must be a string/);
    expect(() =>
      guardFunction('x', async function* () {
        yield await Promise.resolve(1);
      }),
    ).toThrow(/x is a generator function/);
    expect(() => guardFunction('x', () => 1, { policy: { timeoutMs: -1 } })).toThrow(/timeoutMs must be a duration/);
    expect(() => guardFunction('x', () => 1, { policies: {} } as never)).toThrow(/no option "policies"/);
    let ran = 0;
    const pay = guardFunction('pay', (_account: string, _amount: number) => ++ran);
    await expect(pay('a', 5)).rejects.toThrow(/called with a number beside its input/);
    expect(ran).toBe(0);
  });
});
