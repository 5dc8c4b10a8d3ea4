import { Observable, delay, of } from 'rxjs';
import {
  ToolExecutionError,
  createSpillway,
  tool,
  type BreakerOptions,
  type DedupeStore,
  type Spillway,
} from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

interface Dependency {
  up: boolean;
  runs: number;
  tookMs: number;
  retryAfterMs: number | undefined;
  /** In place of one answer: values, until this many. */
  values: number;
}

export interface World {
  readonly layers: readonly [Spillway, Spillway, Spillway];
  readonly dependency: Dependency;
  readonly runtime: VirtualRuntime;
  readonly store: DedupeStore;
  /** The statuses of calls that begin at once, after they had `ms`. */
  calls(layers: readonly Spillway[], ms?: number): Promise<string[]>;
  call(layer: Spillway, ms?: number): Promise<string>;
  open(layer: Spillway): Promise<void>;
}

const failed = (retryAfterMs: number | undefined): Error =>
  retryAfterMs === undefined
    ? new Error('ECONNRESET')
    : new ToolExecutionError('execution_error', 'slow down', { status: 503, retryAfterMs });

export const world = (
  breaker: BreakerOptions,
  change: (memory: DedupeStore, runtime: VirtualRuntime) => Partial<DedupeStore> = () => ({}),
  timeoutMs = 30_000,
): World => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime, sweepMs: Infinity });
  const store = { ...memory, ...change(memory, runtime) };
  const dependency: Dependency = { up: false, runs: 0, tookMs: 0, retryAfterMs: undefined, values: 0 };
  const answer = (): Observable<unknown> => {
    if (dependency.values === 0)
      return dependency.tookMs === 0 ? of('fine') : of('fine').pipe(delay(dependency.tookMs, runtime.scheduler));
    const { values, tookMs } = dependency;
    return new Observable((subscriber) => {
      for (let value = 1; value <= values; value++)
        subscriber.add(
          runtime
            .after(value * tookMs)
            .subscribe(() => (value === values ? subscriber.complete() : subscriber.next(value))),
        );
    });
  };
  const made = (): Spillway => {
    const flaky = tool({
      name: 't',
      policy: { retry: { maxAttempts: 1 }, timeoutMs, breaker: { failureThreshold: 2, cooldownMs: 1_000, ...breaker } },
      execute: () => {
        dependency.runs++;
        if (!dependency.up) throw failed(dependency.retryAfterMs);
        return answer();
      },
    });
    return createSpillway({ tools: [flaky], store, runtime, shareBreakers: true });
  };
  const calls: World['calls'] = async (layers, ms = 0) => {
    const results = layers.map((layer) => layer.execute({ toolName: 't' }));
    await runtime.advance(ms);
    return (await Promise.all(results)).map(({ status }) => status);
  };
  const call: World['call'] = async (layer, ms) => (await calls([layer], ms))[0] ?? 'none';
  const open: World['open'] = async (layer) => {
    for (let failure = 0; failure < 2; failure++) await call(layer);
  };
  return { layers: [made(), made(), made()], dependency, runtime, store, calls, call, open };
};

export const stateOf = (layer: Spillway): string => layer.breakers.get('t').state.type;
