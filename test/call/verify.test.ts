import { NEVER, of, throwError } from 'rxjs';
import { createSpillway, tool, ToolExecutionError } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { typed } from './kit.ts';
import { ended, lost, scene } from './verified-payment.ts';

describe('verify', () => {
  it('R-18.1 what took effect is a success, with the output that verify gives', async () => {
    const at = scene(() => ({ done: true, output: { id: 'p1' } }), lost);
    const result = await ended(at);
    expect(result).toMatchObject({
      status: 'success',
      verified: 'done',
      attempts: 1,
      output: { content: { id: 'p1' } },
    });
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

  it('R-18.1 what did not take effect is certain and is tried again', async () => {
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

  it('R-18.1 a failure that was found to be without effect is told as certain', async () => {
    const at = scene(() => ({ done: false }), lost, { retry: { maxAttempts: 1 }, verify: { settleMs: 0 } });
    const { error, verified } = await ended(at);
    expect(verified).toBe('not_done');
    expect(error).toMatchObject({ code: 'transport_error', retriable: true });
    expect(error?.uncertain).toBeUndefined();
    expect(error?.modelText).toContain('It was checked: it has not taken effect.');
  });

  it.each([
    ['the word', () => 'unknown'],
    [
      'a throw',
      () => {
        throw new Error('no answer');
      },
    ],
    ['a rejection', () => Promise.reject(new Error('no answer'))],
    ['a stream that errors', () => throwError(() => new Error('no answer'))],
    ['a stream that ends without a value', () => of()],
    ['silence', () => NEVER],
    ['nothing', () => undefined],
    ['a truth', () => true],
    ['a list', () => [{ done: true }]],
    ['a word for done', () => ({ done: 'yes' })],
    [
      'a getter that throws',
      () => ({
        get done() {
          throw new Error('unreadable');
        },
      }),
    ],
  ])('R-18.1 %s leaves it uncertain, and nothing is tried again', async (_what, answer) => {
    const at = scene(answer, lost);
    const { error, verified, status } = await ended(at);
    expect({ verified, status }).toEqual({ verified: 'unknown', status: 'retriable_error' });
    expect(error?.uncertain).toBe(true);
    expect(at.starts).toEqual([0]);
    expect(at.asked).toHaveLength(3);
    expect(typed(at.trace, 'decision')).toMatchObject([{ code: 'uncertain_mutation' }]);
    expect(at.runtime.pending).toBe(0);
  });

  it('R-18.1 it is asked again while it is not known, and the first that is known counts', async () => {
    const at = scene((_, nth) => (nth < 3 ? 'unknown' : { done: true }), lost, { verify: { delayMs: 200 } });
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([0, 200, 400]);
  });

  it('R-18.1 what verify gives as output has to fit the schema of the tool', async () => {
    const runtime = virtualRuntime();
    const payment = tool({
      name: 'pay',
      execute: lost,
      verify: () => ({ done: true, output: 'text' as never }),
      output: {
        safeParse: (value: unknown) => ({ success: value === 7, data: value, error: { issues: [] } }),
      } as never,
    });
    const result = createSpillway({ tools: [payment], runtime }).execute({ toolName: 'pay' });
    await runtime.run();
    expect(await result).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
  });

  it('R-18.1 the breaker hears of the attempt, and never of its verification', async () => {
    const at = scene((_, nth) => (nth % 2 === 0 ? NEVER : 'unknown'), lost);
    const opened = at.layer.breakers.get('pay');
    for (let i = 0; i < 4; i++) await ended(at);
    expect(opened.state).toMatchObject({ type: 'closed', consecutiveFailures: 4 });
    const done = scene(() => ({ done: true }), lost);
    for (let i = 0; i < 5; i++) await ended(done);
    expect(done.layer.breakers.get('pay').state.type).toBe('open');
  });

  it('R-18.1 a safety-critical tool is tried again where nothing was done, and only there', async () => {
    const critical = { safetyCritical: true, verify: { settleMs: 0 } };
    const undone = scene(
      () => ({ done: false }),
      (attempt) => (attempt === 1 ? lost() : 'paid'),
      critical,
    );
    expect(await ended(undone)).toMatchObject({ status: 'success', attempts: 2 });
    const open = scene(() => 'unknown', lost, critical);
    expect(await ended(open)).toMatchObject({ attempts: 1, error: { uncertain: true } });
  });

  it('R-18.1 it is given the key, the error, the attempt, and a signal of its own', async () => {
    const at = scene(() => 'unknown', lost, { verify: { maxAttempts: 1 } });
    const result = at.layer.execute({ toolName: 'pay', input: {}, idempotencyKey: 'k1' });
    await at.runtime.run();
    await result;
    expect(at.asked).toMatchObject([
      { callKey: 'k1', attempt: 1, error: { kind: 'transport_error', uncertain: true } },
    ]);
    expect(at.asked[0]?.fence).toBeTypeOf('number');
    expect(at.asked[0]?.signal.aborted).toBe(false);
  });

  it('R-18.1 ending the call ends its verification, and the call says that it is uncertain', async () => {
    const abort = new AbortController();
    const at = scene(() => NEVER, lost);
    at.runtime.after(50).subscribe(() => abort.abort());
    const result = await ended(at, abort.signal);
    expect(result).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    expect(at.asked[0]?.signal.aborted).toBe(true);
    expect(at.runtime.pending).toBe(0);
  });

  it('R-18.1 the error handler is asked after the verification', async () => {
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
    [
      'a certain failure',
      () => {
        throw new ToolExecutionError('execution_error', 'no such account', { status: 404 });
      },
    ],
    ['a success', () => 'paid'],
  ])('R-18.1 nobody asks about %s', async (_what, pay) => {
    const at = scene(() => ({ done: true }), pay);
    await ended(at);
    expect(at.asked).toEqual([]);
  });
});
