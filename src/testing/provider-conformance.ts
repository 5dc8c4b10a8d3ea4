import { callCases } from './provider-conformance/calls.ts';
import {
  bench,
  check,
  type ConformanceLayer,
  type MakeLayer,
  type ProviderCapability,
  type ProviderHarness,
} from './provider-conformance/check.ts';
import { errorCases } from './provider-conformance/errors.ts';

/** One thing that every provider must do. */
export interface ProviderCase {
  /** What the provider must do, as the name of a test. */
  readonly name: string;
  /** Rejects with an Error that says what was expected and what came instead. */
  run(): Promise<void>;
}

/** What the cases are tried on. */
export interface ProviderConformanceOptions {
  /** Makes a provider and a backend that nobody else uses. Called once for each case. */
  readonly make: () => ProviderHarness | Promise<ProviderHarness>;
  /** `createSpillway` of this package: the cases look at what a layer makes of errors, timeouts and aborts. */
  readonly createSpillway: MakeLayer;
  /** What the backend has no way to do. Default: nothing. */
  readonly lacks?: readonly ProviderCapability[];
  /**
   * How long a case waits for what has to happen, in milliseconds. Default 10,000: longer than anything takes on a busy
   * machine.
   */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 10_000;

/** What a harness has for each. */
const MEANS: Readonly<Record<ProviderCapability, (harness: ProviderHarness) => unknown>> = {
  progress: ({ calls }) => calls.steps,
  retryAfter: ({ calls }) => calls.busy,
  gone: ({ calls }) => calls.gone,
  kill: ({ backend }) => backend.kill,
  close: ({ provider }) => provider,
};

/**
 * What a `ToolProvider` must do, as cases for any test runner: answers go to their own calls, an abort reaches the
 * backend, progress, the key and the trace context pass through, invalid input never runs, errors are typed, no error
 * tells a secret, `close()` leaves nothing. Each case makes a harness of its own and closes it. They work on real
 * backends in real time, about a second each.
 *
 * A harness that lacks what a case needs fails it, unless `lacks` says so.
 *
 * @example
 * const text = z.object({ text: z.string(), delayMs: z.number() });
 * const echo = tool({ name: 'mine.echo', input: text, execute: async ({ text }) => text });
 * const hang = tool({ name: 'mine.hang', execute: () => new Promise(() => undefined) });
 * const fail = tool({ name: 'mine.fail', execute: () => Promise.reject(new Error('broken')) });
 * const cases = providerConformance({
 *   createSpillway,
 *   lacks: ['progress', 'retryAfter', 'gone', 'kill', 'close'],
 *   make: () => ({
 *     provider: { name: 'mine', tools: [echo, hang, fail], close: async () => undefined },
 *     backend: { calls: () => [], close: () => undefined },
 *     calls: {
 *       echo: (text, delayMs) => ({ toolName: 'mine.echo', input: { text, delayMs } }),
 *       hang: () => ({ toolName: 'mine.hang', input: {} }),
 *       fail: () => ({ toolName: 'mine.fail', input: {} }),
 *       invalid: [{ toolName: 'mine.echo', input: { text: 1 } }],
 *     },
 *   }),
 * });
 * for (const { name, run } of cases) await run().catch((error: unknown) => console.error(name, error));
 */
export function providerConformance({
  make,
  createSpillway,
  lacks = [],
  patienceMs = PATIENCE_MS,
}: ProviderConformanceOptions): readonly ProviderCase[] {
  const wanted = [...callCases, ...errorCases].filter(({ about }) => about === undefined || !lacks.includes(about));
  return wanted.map(({ name, about, run }) => ({
    name,
    run: async () => {
      const harness = await make();
      let layer: ConformanceLayer | undefined;
      try {
        check(
          about === undefined || MEANS[about](harness) !== undefined,
          `the harness has nothing for "${name}"; give it what the case needs, or name ${about} among what it lacks`,
        );
        const made = bench(harness, createSpillway, patienceMs);
        ({ layer } = made);
        await run(made);
      } finally {
        await layer?.close();
        await harness.provider.close();
        await harness.backend.close();
      }
    },
  }));
}
