import { defer, isObservable, map, of, type Observable } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { describe, expect, it } from 'vitest';
import type { Tool, ToolContext } from '../../src/contract/tool.ts';
import { toToolExecutionError } from '../../src/errors/tool.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { withFaults, type FaultOptions } from '../../src/testing/faults.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { context } from '../providers/support.ts';

const echo: Tool<string, string, 'echo'> = { name: 'echo', policy: { effects: 'read' }, execute: (input) => input };

const run$ = (tool: Tool<string, string>, ctx: ToolContext = context()): Observable<string> =>
  defer(() => {
    const output = tool.execute('a', ctx);
    const output$: Observable<unknown> = isObservable(output) ? output : of(output);
    return output$;
  }).pipe(map(String));

const virtual = (
  body: (helpers: Parameters<Parameters<TestScheduler['run']>[0]>[0], scheduler: TestScheduler) => void,
): void => {
  const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
  scheduler.run((helpers) => body(helpers, scheduler));
};

const kinds = (faults: FaultOptions, count: number, seed = 1): string[] => {
  const tool = withFaults(echo, faults, runtimeOn(new TestScheduler(() => undefined), seed));
  return Array.from({ length: count }, () => {
    try {
      const output = tool.execute('ok', context());
      return typeof output === 'string' ? output : 'no value';
    } catch (error) {
      const { code, status } = toToolExecutionError(error);
      return String(status ?? code);
    }
  });
};

describe('withFaults', () => {
  it('without options changes nothing, and keeps what the tool says of itself', () => {
    const tool = withFaults(echo, {});
    expect(tool.name).toBe('echo');
    expect(tool.policy).toBe(echo.policy);
    expect(tool.execute('a', context())).toBe('a');
  });

  it('failFirst 2: two failures with the code, then the tool', () => {
    expect(kinds({ failFirst: 2, code: 'ETIMEDOUT' }, 4)).toEqual(['ETIMEDOUT', 'ETIMEDOUT', 'ok', 'ok']);
  });

  it('failFirst without a code: ECONNRESET', () => {
    expect(kinds({ failFirst: 1 }, 2)).toEqual(['ECONNRESET', 'ok']);
  });

  it('a number or digits as code: a status', () => {
    expect(kinds({ failFirst: 1, code: 503 }, 1)).toEqual(['503']);
    expect(kinds({ failFirst: 1, code: '404' }, 1)).toEqual(['404']);
  });

  it('rate 0.3: about that share fails, the same one for the same seed', () => {
    const first = kinds({ rate: 0.3 }, 1_000, 7);
    expect(first).toEqual(kinds({ rate: 0.3 }, 1_000, 7));
    expect(first).not.toEqual(kinds({ rate: 0.3 }, 1_000, 8));
    const failed = first.filter((kind) => kind === 'ECONNRESET').length;
    expect(failed).toBeGreaterThan(240);
    expect(failed).toBeLessThan(360);
  });

  it('rate 0 and 1: none and all', () => {
    expect(kinds({ rate: 0 }, 3)).toEqual(['ok', 'ok', 'ok']);
    expect(kinds({ rate: 1 }, 3)).toEqual(['ECONNRESET', 'ECONNRESET', 'ECONNRESET']);
  });

  it('each wrapped tool counts for itself', () => {
    const [one, other] = [withFaults(echo, { failFirst: 1 }), withFaults(echo, { failFirst: 1 })];
    expect(() => one.execute('a', context())).toThrow('ECONNRESET');
    expect(one.execute('a', context())).toBe('a');
    expect(() => other.execute('a', context())).toThrow('ECONNRESET');
  });

  it('latencyMs 3: the tool is called after it', () => {
    virtual(({ expectObservable }, scheduler) => {
      const tool = withFaults(echo, { latencyMs: 3 }, runtimeOn(scheduler));
      expectObservable(run$(tool)).toBe('---(a|)');
    });
  });

  it('unsubscribed during the latency: the tool is not called', () => {
    virtual(({ expectObservable, flush }, scheduler) => {
      let calls = 0;
      const counted: Tool<string, string> = { ...echo, execute: (input) => (calls++, input) };
      expectObservable(run$(withFaults(counted, { latencyMs: 3 }, runtimeOn(scheduler))), '--!').toBe('---');
      flush();
      expect(calls).toBe(0);
    });
  });

  it('hang true: no answer, aborted or not', () => {
    virtual(({ expectObservable }, scheduler) => {
      const tool = withFaults(echo, { hang: true }, runtimeOn(scheduler));
      expectObservable(run$(tool, context(AbortSignal.abort())), '20ms !').toBe('-');
    });
  });

  it('hang 1: the first execution has no answer, the second does', () => {
    virtual(({ expectObservable }, scheduler) => {
      const tool = withFaults(echo, { hang: 1 }, runtimeOn(scheduler));
      expectObservable(run$(tool)).toBe('-');
      expectObservable(run$(tool)).toBe('(a|)');
    });
  });

  it('failures come at once, and a retry gets through', () => {
    virtual(({ expectObservable }, scheduler) => {
      const runtime = runtimeOn(scheduler);
      const tool = withFaults(echo, { failFirst: 2, latencyMs: 1 }, runtime);
      const policy = { strategy: 'constant', initialDelayMs: 2, jitterPercent: 0 } as const;
      expectObservable(run$(tool).pipe(retryBackoff(policy, runtime))).toBe('-----(a|)');
    });
  });

  it.each<[FaultOptions, string]>([
    [{ failFirst: -1 }, 'failFirst must be an integer from 0'],
    [{ failFirst: 1.5 }, 'failFirst must be an integer'],
    [{ rate: 1.1 }, 'rate must be a number from 0 to 1, not 1.1'],
    [{ rate: Number.NaN }, 'rate must be a number'],
    [{ latencyMs: Infinity }, 'latencyMs must be a duration'],
    [{ hang: -1 }, 'hang must be an integer'],
    [{ code: 200 }, 'code must be an error code such as ECONNRESET, or an HTTP status from 400 to 599, not 200'],
    [{ code: '200' }, 'code must be'],
    [{ code: '' }, 'code must be'],
    [{ code: 'no code' }, 'code must be'],
    [Object.fromEntries([['fail_first', 1]]), 'has no option "fail_first"'],
  ])('%j: a RangeError that names option, rule and value', (faults, message) => {
    expect(() => withFaults(echo, faults)).toThrow(RangeError);
    expect(() => withFaults(echo, faults)).toThrow(message);
  });
});
