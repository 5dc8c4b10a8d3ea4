import { ToolFailure, createHarvest, guardTool as guardMastra } from 'spillway/adapters/mastra';
import { guardTool as guardAdk } from 'spillway/adapters/google-adk';
import { guardTool as guardLlama } from 'spillway/adapters/llamaindex';
import { guardTool as guardStrands } from 'spillway/adapters/strands';
import { guardTool as guardVolt } from 'spillway/adapters/voltagent';
import { describe, expect, expectTypeOf, it } from 'vitest';

const once = { policy: { retry: { maxAttempts: 1 } } };
interface Definition<Input> {
  readonly id: string;
  readonly execute?: (input: Input) => unknown;
}
const make = <Input>(definition: Definition<Input>): Definition<Input> => definition;

describe('what makes a framework’s tools, guarded', () => {
  it('R-12.4 is typed as it was, and changes a definition in nothing but its function', async () => {
    const guarded = guardMastra(make, once);
    expectTypeOf(guarded).toEqualTypeOf(make);
    const mark = Symbol('mark');
    const definition = Object.defineProperties(Object.create({ inherited: 1 }) as Definition<number>, {
      id: { value: 'double', enumerable: true },
      execute: { value: (n: number) => n * 2, enumerable: true },
      [mark]: { value: 'kept' },
      lazy: { get: () => 'read' },
    });
    const made = guarded(definition);
    expect(Object.getPrototypeOf(made)).toBe(Object.getPrototypeOf(definition));
    expect([Reflect.get(made, mark), Object.getOwnPropertyDescriptor(made, 'lazy')?.get]).toEqual([
      'kept',
      Object.getOwnPropertyDescriptor(definition, 'lazy')?.get,
    ]);
    expect([await made.execute?.(21), made.execute?.name, made.execute?.length]).toEqual([42, 'value', 1]);
  });

  it('R-12.4 a class stays one: its instances, statics and subclasses', async () => {
    class FunctionTool {
      static readonly kind = 'function';
      readonly options: Definition<number>;
      constructor(options: Definition<number>) {
        this.options = options;
      }
    }
    const Guarded = guardAdk(FunctionTool, once);
    class Own extends Guarded {}
    const [made, own] = [new Guarded({ id: 'a', execute: () => 'x' }), new Own({ id: 'b', execute: () => 'y' })];
    expect([made instanceof FunctionTool, own instanceof Own, Guarded.kind]).toEqual([true, true, 'function']);
    expect([await made.options.execute?.(1), await own.options.execute?.(1)]).toEqual(['x', 'y']);
  });

  it('R-12.4 a tool without a function, which others run, is made as it is', () => {
    const definition = { id: 'client' };
    expect(guardMastra(make)(definition)).toBe(definition);
  });

  it('R-7.1 the name is that of the definition, its id, or its function’s', async () => {
    const named = async (one: { name?: string; id?: string; execute: () => unknown }): Promise<unknown> => {
      const harvest = createHarvest();
      await harvest.run(() => guardVolt((given: typeof one) => given)(one).execute());
      return harvest.calls[0]?.toolName;
    };
    const lookUp = (): string => 'x';
    expect([
      await named({ name: 'n', id: 'i', execute: lookUp }),
      await named({ id: 'i', execute: lookUp }),
      await named({ execute: lookUp }),
    ]).toEqual(['n', 'i', 'lookUp']);
  });

  it('R-12.4 LlamaIndex: a function with its metadata after it, too, and a signal of the host’s', async () => {
    const tool = (fn: (input: number) => unknown, metadata: { name: string }): { fn: typeof fn; metadata: object } => ({
      fn,
      metadata,
    });
    const controller = new AbortController();
    const made = guardLlama(tool, { signalOf: () => controller.signal })(() => new Promise(() => undefined), {
      name: 'hang',
    });
    const failure = Promise.resolve(made.fn(1)).catch((error: unknown) => error);
    controller.abort();
    expect([await failure, made.metadata]).toMatchObject([{ kind: 'canceled' }, { name: 'hang' }]);
  });

  it('R-4.2 VoltAgent: both ways to the signal lead to the attempt’s, and the controller is the run’s', async () => {
    const run = new AbortController();
    interface Given {
      readonly toolContext: { readonly callId: string; readonly abortSignal: AbortSignal };
      readonly abortController: AbortController;
    }
    const seen: Given[] = [];
    const made = guardVolt(
      (definition: { name: string; execute: (input: unknown, given: Given) => unknown }) => definition,
    )({ name: 't', execute: (_input, given) => seen.push(given) });
    await made.execute({}, { toolContext: { callId: 'c1', abortSignal: run.signal }, abortController: run });
    const [given] = seen;
    expect(given?.toolContext.callId).toBe('c1');
    expect(given?.toolContext.abortSignal).toBe(given?.abortController.signal);
    expect(given?.toolContext.abortSignal).not.toBe(run.signal);
    given?.abortController.abort();
    expect(run.signal.aborted).toBe(true);
  });

  it('R-3.3 what steers the framework is thrown on, and is no failure', async () => {
    const steering = (name: string): Error => Object.assign(new Error('stop here'), { name });
    for (const [guard, name, member] of [
      [guardStrands, 'InterruptError', 'callback'],
      [guardVolt, 'ToolDeniedError', 'execute'],
    ] as const) {
      const thrown = steering(name);
      const made = guard((one: Record<string, unknown>) => one)({ name: 't', [member]: () => Promise.reject(thrown) });
      await expect((made[member] as () => Promise<unknown>)()).rejects.toBe(thrown);
      const other = guard(
        (one: Record<string, unknown>) => one,
        once,
      )({
        name: 't',
        [member]: () => Promise.reject(steering('Error')),
      });
      await expect((other[member] as () => Promise<unknown>)()).rejects.toBeInstanceOf(ToolFailure);
    }
  });

  it('R-2.9 what cannot be guarded is refused', () => {
    expect(() => guardMastra({} as never)).toThrow(/takes what makes the framework’s tools, not object/);
    expect(() => guardMastra(make, { policies: {} } as never)).toThrow(/no option "policies"/);
    expect(() => guardMastra(make, { policy: { timeoutMs: -1 } })).toThrow(/timeoutMs must be a duration/);
    expect(() => guardMastra(make)({ execute: () => 1 } as never)).not.toThrow();
    expect(() =>
      guardMastra(make)(
        Object.assign({
          execute: (
            () => () =>
              1
          )(),
        }) as never,
      ),
    ).toThrow(/a tool needs a name/);
    const stream = async function* (): AsyncGenerator<number> {
      yield await Promise.resolve(1);
    };
    expect(() => guardMastra(make)({ id: 's', execute: stream })).toThrow(/s is a generator function/);
  });
});
