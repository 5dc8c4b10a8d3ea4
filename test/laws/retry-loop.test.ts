import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createSpillway, ToolExecutionError, tool, type ToolResultEnvelope } from '../../src/index.ts';
import { virtualRuntime, type VirtualRuntime } from '../../src/testing/index.ts';

/**
 * The retry loop of one call against a model of a page: what it has started and how it has ended, after whatever has
 * happened to it.
 */
const DELAY_MS = 10;
const TIMEOUT_MS = 30;

interface Limits {
  readonly maxAttempts: number;
  readonly maxTotalTimeMs: number;
}

class Model {
  readonly limits: Limits;
  nowMs = 0;
  attempts = 1;
  attemptMs: number | undefined = 0;
  retryMs: number | undefined;
  status: ToolResultEnvelope['status'] | undefined;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  ends(status: ToolResultEnvelope['status']): void {
    this.status = status;
    this.attemptMs = undefined;
    this.retryMs = undefined;
  }

  fails(timeout: boolean): void {
    this.attemptMs = undefined;
    const { maxAttempts, maxTotalTimeMs } = this.limits;
    if (this.attempts < maxAttempts && this.nowMs + DELAY_MS < maxTotalTimeMs) this.retryMs = this.nowMs + DELAY_MS;
    else this.ends(this.attempts > 1 ? 'retry_exhausted' : timeout ? 'timeout' : 'retriable_error');
  }

  passes(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const timeoutMs = this.attemptMs === undefined ? Infinity : this.attemptMs + TIMEOUT_MS;
      const nextMs = Math.min(timeoutMs, this.retryMs ?? Infinity);
      if (nextMs > untilMs) break;
      this.nowMs = nextMs;
      if (nextMs === this.retryMs) {
        this.retryMs = undefined;
        this.attempts++;
        this.attemptMs = nextMs;
      } else this.fails(true);
    }
    this.nowMs = untilMs;
  }
}

/** The real call, its attempts in the test's hands. */
class Real {
  readonly runtime: VirtualRuntime = virtualRuntime();
  readonly caller: AbortController = new AbortController();
  attempts = 0;
  settle: PromiseWithResolvers<string> | undefined;
  result: ToolResultEnvelope | undefined;

  constructor(limits: Limits) {
    const work = tool({
      name: 'work',
      policy: {
        timeoutMs: TIMEOUT_MS,
        breaker: false,
        retry: { strategy: 'constant', initialDelayMs: DELAY_MS, jitterPercent: 0, ...limits },
      },
      execute: () => {
        this.attempts++;
        this.settle = Promise.withResolvers<string>();
        return this.settle.promise;
      },
    });
    void createSpillway({ tools: [work], runtime: this.runtime })
      .execute({ toolName: 'work' }, { signal: this.caller.signal })
      .then((result) => (this.result = result));
  }

  async agrees(model: Model): Promise<void> {
    await this.runtime.advance(0);
    expect({
      attempts: this.attempts,
      status: this.result?.status,
      timers: this.result === undefined ? 1 : this.runtime.pending,
    }).toStrictEqual({
      attempts: model.attempts,
      status: model.status,
      timers: model.status === undefined ? 1 : 0,
    });
  }
}

type Command = fc.AsyncCommand<Model, Real>;
const command = (
  name: string,
  check: (model: Readonly<Model>) => boolean,
  run: (model: Model, real: Real) => Promise<void> | void,
): Command => ({
  check,
  run: async (model, real) => {
    await run(model, real);
    await real.agrees(model);
  },
  toString: () => name,
});
const attempting = (model: Readonly<Model>): boolean => model.attemptMs !== undefined;
const succeed = command('succeed', attempting, (model, real) => {
  model.ends('success');
  real.settle?.resolve('done');
});
const fail = command('fail', attempting, (model, real) => {
  model.fails(false);
  real.settle?.reject(new ToolExecutionError('transport_error', 'lost'));
});
const refuse = command('refuse', attempting, (model, real) => {
  model.ends('error');
  real.settle?.reject(new ToolExecutionError('execution_error', 'never', { status: 404 }));
});
const cancel = command(
  'cancel',
  ({ status }) => status === undefined,
  (model, real) => {
    model.ends('error');
    real.caller.abort();
  },
);
const pass = (ms: number): Command =>
  command(
    `pass ${ms}`,
    () => true,
    async (model, real) => {
      model.passes(ms);
      await real.runtime.advance(ms);
    },
  );

const limits: fc.Arbitrary<Limits> = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  maxTotalTimeMs: fc.constantFrom(10, 25, 60, 1_000),
});
const passing = fc.constantFrom(0, 5, 10, 15, 29, 30, 31, 100).map(pass);
const commands = fc.commands(
  [
    fc.constant(fail),
    fc.constant(fail),
    passing,
    passing,
    fc.constant(succeed),
    fc.constant(refuse),
    fc.constant(cancel),
  ],
  { maxCommands: 20 },
);

it('R-2 the retry loop does what its model does', async () => {
  const law = fc.asyncProperty(limits, commands, async (given, run) => {
    const setup = (): { model: Model; real: Real } => ({ model: new Model(given), real: new Real(given) });
    await fc.asyncModelRun(setup, run);
  });
  await fc.assert(law, { numRuns: 400 });
});
