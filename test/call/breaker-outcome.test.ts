import { createSpillway, tool, ToolExecutionError, type ToolErrorKind, type ToolExecutionErrorOptions } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

/** What a breaker has measured of one attempt that ended so. */
const measured = async (kind: ToolErrorKind, options: ToolExecutionErrorOptions = {}): Promise<unknown> => {
  const runtime = virtualRuntime();
  const flaky = tool({
    name: 'flaky',
    policy: {
      effects: 'read',
      retry: { maxAttempts: 1 },
      classification: { timeout: 'permanent', transport_error: 'permanent', internal_error: 'permanent' },
    },
    execute: () => {
      throw new ToolExecutionError(kind, 'no', options);
    },
  });
  const spillway = createSpillway({ tools: [flaky], runtime });
  const called = spillway.execute({ toolName: 'flaky' });
  await runtime.run();
  await called;
  const { measured, failures } = spillway.breakers.get('flaky').state;
  return measured === 0 ? 'neutral' : failures === 0 ? 'success' : 'failure';
};

describe('R-3.3 what a failure tells the breaker', () => {
  it.each(['timeout', 'transport_error', 'internal_error'] as const)(
    'R-3.3 a permanent %s is no answer: neutral',
    async (kind) => {
      expect(await measured(kind)).toBe('neutral');
    },
  );

  it('R-3.3 a permanent failure that the tool answered is a success, one that never reached it is neutral', async () => {
    expect(await measured('execution_error', { status: 404 })).toBe('success');
    expect(await measured('execution_error', { status: 404, executed: false })).toBe('neutral');
  });

  it('R-3.3 a transient one is a failure', async () => {
    expect(await measured('execution_error', { status: 503 })).toBe('failure');
  });
});
