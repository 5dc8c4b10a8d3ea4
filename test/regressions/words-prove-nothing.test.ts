// Was: `Unknown error` was permanent, and so a success for the breaker. Now: it is transient, and what words alone call
// permanent is neutral.
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { createSpillway } from '../../src/spillway.ts';
import { toToolError } from '../../src/errors/read-error.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { createBreaker, type Breaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { breakerOutcome } from '../../src/policy/breaker/outcome.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { handClock } from '../support.ts';

const fails = async (breaker: Breaker, thrown: unknown): Promise<unknown> =>
  firstValueFrom(abortable(() => Promise.reject(thrown as Error)).pipe(circuitBreaker(breaker))).catch(
    (error: unknown) => error,
  );

const WORDS = new Error('Flight not found');
const ANSWERED = Object.assign(new Error('Flight not found'), { status: 404 });

describe('R-1.3 what words prove', () => {
  it.each([
    'Unknown error',
    'websocket: bad handshake',
    'unexpected end of file',
    'not the leader',
    'remaining connection slots are reserved',
  ])('R-1.3 %s is transient', (text) => {
    expect(classify(new Error(text)).classification).toBe('transient');
  });

  it('R-1.5 says that words decided, and that a status, a code or a flag did not', () => {
    expect(classify(WORDS)).toMatchObject({ classification: 'permanent', rule: 'words' });
    expect(classify(ANSWERED).rule).toBe('status');
    expect(classify(Object.assign(new Error('Flight not found'), { code: 'NOT_FOUND' })).rule).toBe('code');
    expect(classify(Object.assign(new Error('Flight not found'), { retryable: false })).rule).toBe('entrance');
    expect(classify(WORDS, { execution_error: 'permanent' }).rule).toBe('override');
  });

  it('R-3.3 only words leave the window and a probe alone; a status counts', () => {
    const read = (thrown: unknown): string => {
      const error = toToolError(thrown, 'tool');
      const { classification, rule } = classify(error);
      return breakerOutcome(error, classification, rule);
    };
    expect(read(WORDS)).toBe('answered');
    expect(read(ANSWERED)).toBe('success');
    expect(read(new ToolExecutionError('invalid_parameters', 'x'))).toBe('ignored');
    const failed = { isError: true, content: [{ type: 'text', text: 'Flight not found' }] };
    expect(toToolError(failed, 'mcp').worded).toBe(true);
  });

  it('SI-T 7.2 a row of failures ends at a refusal in words, which is in no window', async () => {
    const breaker = createBreaker({ failureThreshold: 5 }, handClock().runtime);
    for (let i = 0; i < 4; i++) await fails(breaker, new Error('Service unavailable'));
    expect(breaker.state).toMatchObject({ consecutiveFailures: 4, measured: 4, failures: 4 });
    await fails(breaker, WORDS);
    expect(breaker.state).toMatchObject({ type: 'closed', consecutiveFailures: 0, measured: 4, failures: 4 });
    await fails(breaker, new Error('Service unavailable'));
    expect(breaker.state).toMatchObject({ type: 'closed', consecutiveFailures: 1, measured: 5 });
  });

  it('R-3.3 a probe that is refused in words neither closes nor reopens, and gives its place back', async () => {
    const clock = handClock();
    const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 10, successThreshold: 1 }, clock.runtime);
    await fails(breaker, new Error('Service unavailable'));
    clock.pass(10);
    await fails(breaker, WORDS);
    expect(breaker.state.type).toBe('half_open');
    await fails(breaker, ANSWERED);
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.2 a tool that fails with `Unknown error` every time is retried, and opens its breaker', async () => {
    let executions = 0;
    const tool = {
      name: 'search',
      policy: {
        effects: 'read' as const,
        retry: { maxAttempts: 3, initialDelayMs: 0, jitterPercent: 0 },
        breaker: { failureThreshold: 3 },
      },
      execute: () => {
        executions++;
        throw new Error('Unknown error');
      },
    };
    const spillway = createSpillway({ tools: [tool] });
    const result = await spillway.execute({ toolName: 'search', input: {} });
    expect(executions).toBe(3);
    expect(result.status).toBe('retry_exhausted');
    expect(spillway.breakers.get('search')?.state.type).toBe('open');
    await spillway.close();
  });
});
