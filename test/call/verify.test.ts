import { NEVER, of, throwError } from 'rxjs';
import {
  createSpillway,
  tool,
  ToolExecutionError,
  type SpillwayOptions,
  type Spillway,
  type ToolPolicy,
  type TraceEvent,
  type VerifyAnswer,
  type VerifyContext,
} from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { traceFaults, typed } from './kit.ts';

/** A payment that hangs, or loses its answer, and what `verify` says of it. */
interface Scene {
  readonly runtime: VirtualRuntime;
  readonly layer: Spillway;
  readonly trace: TraceEvent[];
  readonly starts: number[];
  readonly asked: Array<VerifyContext & { readonly atMs: number }>;
}

const PATIENT = {
  strategy: 'constant',
  initialDelayMs: 100,
  jitterPercent: 0,
  maxAttempts: 3,
  maxTotalTimeMs: 600_000,
} as const;

const scene = (
  verify: (context: VerifyContext, nth: number) => unknown,
  pay: (attempt: number, signal: AbortSignal) => unknown,
  policy: ToolPolicy = {},
  options: SpillwayOptions = {},
): Scene => {
  const runtime = virtualRuntime();
  const beginMs = runtime.now();
  const starts: number[] = [];
  const asked: Array<VerifyContext & { atMs: number }> = [];
  const payment = tool({
    name: 'pay',
    policy: { timeoutMs: 1_000, retry: PATIENT, ...policy },
    execute: (_input: unknown, { attempt, signal }): unknown => {
      starts.push(runtime.now() - beginMs);
      return pay(attempt, signal);
    },
    verify: (_input: unknown, context): VerifyAnswer => {
      asked.push({ ...context, atMs: runtime.now() - beginMs });
      return verify(context, asked.length) as VerifyAnswer;
    },
  });
  const layer = createSpillway({ tools: [payment], runtime, ...options });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  return { runtime, layer, trace, starts, asked };
};

const lost = (): never => {
  throw new ToolExecutionError('transport_error', 'connection reset', { code: 'ECONNRESET', uncertain: true });
};

const ended = async ({ runtime, layer, trace }: Scene, signal?: AbortSignal) => {
  const result = layer.execute({ toolName: 'pay', input: { amount: 7 } }, signal === undefined ? {} : { signal });
  await runtime.run();
  expect(traceFaults(trace.slice(1))).toEqual([]);
  return result;
};

describe('verify', () => {
  it('R-16.1 what took effect is a success, with the output that verify gives', async () => {
    const at = scene(() => ({ done: true, output: { id: 'p1' } }), lost);
    const result = await ended(at);
    expect(result).toMatchObject({ status: 'success', verified: 'done', attempts: 1, output: { content: { id: 'p1' } } });
    expect(result.error).toBeUndefined();
    expect(at.starts).toEqual([0]);
    expect(at.asked).toHaveLength(1);
    const types = at.trace.flatMap(({ source, type }) => (source === 'call' ? [type] : []));
    expect(types).toEqual(['call_started', 'attempt_started', 'attempt_failed', 'verified', 'settled']);
    expect(typed(at.trace, 'verified')).toMatchObject([{ attempt: 1, finding: 'done', asked: 1, durationMs: 0 }]);
    // The trace shows it, too, without the output.
    expect(typed(at.trace, 'settled')).toMatchObject([{ result: { status: 'success', verified: 'done' } }]);
    expect(JSON.stringify(at.trace)).not.toContain('p1');
  });

  it('R-16.1 what did not take effect is certain and is tried again', async () => {
    const at = scene(
      () => ({ done: false }),
      (attempt) => (attempt === 1 ? lost() : 'paid'),
      { verify: { settleMs: 0 } },
    );
    const result = await ended(at);
    expect(result).toMatchObject({ status: 'success', attempts: 2, output: { content: 'paid' } });
    expect(result.verified).toBeUndefined();
    expect(at.starts).toEqual([0, 100]);
    expect(typed(at.trace, 'decision')).toMatchObject([{ strategy: 'retry', code: 'transient' }]);
    expect(typed(at.trace, 'decision')[0]?.error.uncertain).toBeUndefined();
  });

  it('R-16.1 a failure that was found to be without effect is told as certain', async () => {
    const at = scene(() => ({ done: false }), lost, { retry: { maxAttempts: 1 }, verify: { settleMs: 0 } });
    const { error, verified } = await ended(at);
    expect(verified).toBe('not_done');
    expect(error).toMatchObject({ code: 'transport_error', retriable: true });
    expect(error?.uncertain).toBeUndefined();
    expect(error?.modelText).toContain('It was checked: it has not taken effect.');
  });

  it.each([
    ['the word', () => 'unknown'],
    ['a throw', () => { throw new Error('no answer'); }],
    ['a rejection', () => Promise.reject(new Error('no answer'))],
    ['a stream that errors', () => throwError(() => new Error('no answer'))],
    ['a stream that ends without a value', () => of()],
    ['silence', () => NEVER],
    ['nothing', () => undefined],
    ['a truth', () => true],
    ['a list', () => [{ done: true }]],
    ['a word for done', () => ({ done: 'yes' })],
    ['a getter that throws', () => ({ get done() { throw new Error('unreadable'); } })],
  ])('R-16.1 %s leaves it uncertain, and nothing is tried again', async (_what, answer) => {
    const at = scene(answer, lost);
    const { error, verified, status } = await ended(at);
    expect({ verified, status }).toEqual({ verified: 'unknown', status: 'retriable_error' });
    expect(error?.uncertain).toBe(true);
    expect(at.starts).toEqual([0]);
    expect(at.asked).toHaveLength(3);
    expect(typed(at.trace, 'decision')).toMatchObject([{ code: 'uncertain_mutation' }]);
    expect(at.runtime.pending).toBe(0);
  });

  it('R-16.1 it is asked again while it is not known, and the first that is known counts', async () => {
    const at = scene((_, nth) => (nth < 3 ? 'unknown' : { done: true }), lost, { verify: { delayMs: 200 } });
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([0, 200, 400]);
  });

  it('R-16.1 what verify gives as output has to fit the schema of the tool', async () => {
    const runtime = virtualRuntime();
    const payment = tool({
      name: 'pay',
      execute: lost,
      verify: () => ({ done: true, output: 'text' as never }),
      output: { safeParse: (value: unknown) => ({ success: value === 7, data: value, error: { issues: [] } }) } as never,
    });
    const result = createSpillway({ tools: [payment], runtime }).execute({ toolName: 'pay' });
    await runtime.run();
    expect(await result).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
  });

  it('R-16.1 the breaker hears of the attempt, and never of its verification', async () => {
    const at = scene((_, nth) => (nth % 2 === 0 ? NEVER : 'unknown'), lost);
    const opened = at.layer.breakers.get('pay');
    for (let i = 0; i < 4; i++) await ended(at);
    expect(opened.state).toMatchObject({ type: 'closed', consecutiveFailures: 4 });
    const done = scene(() => ({ done: true }), lost);
    for (let i = 0; i < 5; i++) await ended(done);
    expect(done.layer.breakers.get('pay').state.type).toBe('open');
  });

  it('R-16.1 a safety-critical tool is tried again where nothing was done, and only there', async () => {
    const critical = { safetyCritical: true, verify: { settleMs: 0 } };
    const undone = scene(() => ({ done: false }), (attempt) => (attempt === 1 ? lost() : 'paid'), critical);
    expect(await ended(undone)).toMatchObject({ status: 'success', attempts: 2 });
    const open = scene(() => 'unknown', lost, critical);
    expect(await ended(open)).toMatchObject({ attempts: 1, error: { uncertain: true } });
  });

  it('R-16.1 it is given the key, the error, the attempt, and a signal of its own', async () => {
    const at = scene(() => 'unknown', lost, { verify: { maxAttempts: 1 } });
    const result = at.layer.execute({ toolName: 'pay', input: {}, idempotencyKey: 'k1' });
    await at.runtime.run();
    await result;
    expect(at.asked).toMatchObject([{ callKey: 'k1', attempt: 1, error: { kind: 'transport_error', uncertain: true } }]);
    expect(at.asked[0]?.fence).toBeTypeOf('number');
    expect(at.asked[0]?.signal.aborted).toBe(false);
  });

  it('R-16.1 ending the call ends its verification, and the call says that it is uncertain', async () => {
    const abort = new AbortController();
    const at = scene(() => NEVER, lost);
    at.runtime.after(50).subscribe(() => abort.abort());
    const result = await ended(at, abort.signal);
    expect(result).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    expect(at.asked[0]?.signal.aborted).toBe(true);
    expect(at.runtime.pending).toBe(0);
  });

  it('R-16.1 the error handler is asked after the verification', async () => {
    const seen: boolean[] = [];
    const at = scene(
      () => ({ done: false }),
      (attempt) => (attempt === 1 ? lost() : 'paid'),
      { verify: { settleMs: 0 } },
      {
        errorHandler: ({ error }) => {
          seen.push(error.uncertain);
          return { strategy: 'retry', code: 'transient', reason: 'again', delayMs: 0 };
        },
      },
    );
    expect(await ended(at)).toMatchObject({ status: 'success' });
    expect(seen).toEqual([false]);
  });

  it.each([
    ['a certain failure', () => { throw new ToolExecutionError('execution_error', 'no such account', { status: 404 }); }],
    ['a success', () => 'paid'],
  ])('R-16.1 nobody asks about %s', async (_what, pay) => {
    const at = scene(() => ({ done: true }), pay);
    await ended(at);
    expect(at.asked).toEqual([]);
  });
});

describe('verify and effects that come late', () => {
  it('R-16.2 an effect that comes within settleMs after the attempt has stopped is found', async () => {
    let done = false;
    const at = scene(() => ({ done }), () => NEVER, { verify: { settleMs: 2_000 } });
    // The server goes on with a request whose caller has gone.
    at.runtime.after(2_500).subscribe(() => (done = true));
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done', attempts: 1 });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_000, 3_000]);
  });

  it('R-16.2 it is asked only once the work that was aborted has stopped', async () => {
    let stop: (() => void) | undefined;
    const at = scene(
      () => ({ done: true }),
      () => new Promise((_, reject) => (stop = () => reject(new Error('aborted at last')))),
    );
    at.runtime.after(1_700).subscribe(() => stop?.());
    expect(await ended(at)).toMatchObject({ verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_700]);
  });

  it('R-16.2 of work that does not stop, "not done" is not believed', async () => {
    const at = scene(() => ({ done: false }), () => new Promise(() => undefined));
    expect(await ended(at)).toMatchObject({ verified: 'unknown', attempts: 1, error: { uncertain: true } });
    expect(at.starts).toHaveLength(1);
  });

  it('R-16.2 what the aborted attempt gives after all goes before what verify says', async () => {
    let answer: ((value: string) => void) | undefined;
    const at = scene(() => ({ done: false }), () => new Promise((resolve) => (answer = resolve)));
    at.runtime.after(1_500).subscribe(() => answer?.('paid'));
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done', output: { content: 'paid' } });
    expect(at.starts).toHaveLength(1);
  });

  it('R-16.2 a thenable that acts each time it is asked is asked once', async () => {
    let acts = 0;
    // As the query builders of some databases are.
    const query = { then: (resolve: (value: string) => void) => { acts++; resolve('paid'); } };
    const at = scene(() => 'unknown', () => query);
    expect(await ended(at)).toMatchObject({ status: 'success', output: { content: 'paid' } });
    expect(acts).toBe(1);
  });

  it('R-16.2 an async iterable has stopped when its generator has', async () => {
    let stop: (() => void) | undefined;
    const at = scene(
      () => ({ done: true }),
      async function* () {
        yield await new Promise<string>((_, reject) => (stop = () => reject(new Error('stopped'))));
      },
    );
    at.runtime.after(1_800).subscribe(() => stop?.());
    expect(await ended(at)).toMatchObject({ verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_800]);
  });

  it('R-16.2 no attempt starts after the total time, however long the verification took', async () => {
    const at = scene(() => ({ done: false }), lost, {
      retry: { ...PATIENT, maxTotalTimeMs: 900 },
      verify: { settleMs: 1_000 },
    });
    const { error, attempts } = await ended(at);
    expect({ attempts, uncertain: error?.uncertain }).toEqual({ attempts: 1, uncertain: undefined });
  });
});
