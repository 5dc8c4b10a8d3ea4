import { createSpillway, tool, ToolExecutionError, type TraceEvent } from 'spillway';
import { evidenceFromTrace } from 'spillway/agent';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const lost = (): ToolExecutionError =>
  new ToolExecutionError('transport_error', 'the connection was lost', { uncertain: true });
const late = (): ToolExecutionError => new ToolExecutionError('timeout', 'it took too long', { uncertain: true });

/**
 * What the trace of a real call says of it, whose attempts fail with these errors, and then succeed where one is left
 * out.
 */
const evidenceOf = async (...attempts: ReadonlyArray<ToolExecutionError | undefined>): Promise<unknown> => {
  const runtime = virtualRuntime();
  let made = 0;
  const flaky = tool({
    name: 'flaky',
    policy: { effects: 'read', retry: { maxAttempts: attempts.length } },
    execute: () => {
      const error = attempts[made++];
      if (error !== undefined) throw error;
      return 'fine';
    },
  });
  const spillway = createSpillway({ tools: [flaky], runtime });
  const events: TraceEvent[] = [];
  spillway.trace$.subscribe((event) => events.push(event));
  const settled = spillway.execute({ toolName: 'flaky', toolCallId: 'c1' });
  await runtime.run();
  await settled;
  expect(made).toBe(attempts.length);
  return evidenceFromTrace(events).get('c1');
};

describe('evidenceFromTrace of calls that were retried', () => {
  it('a success settles what earlier attempts left open', async () => {
    expect(await evidenceOf(lost(), undefined)).toBe('ran');
    expect(await evidenceOf(lost(), late(), undefined)).toBe('ran');
  });

  it('a failure settles nothing that may have happened before it', async () => {
    const refused = new ToolExecutionError('transport_error', 'refused', { executed: false });
    const answered = new ToolExecutionError('execution_error', 'no', { status: 500 });
    expect(await evidenceOf(late(), answered)).toBe('may_have_run');
    expect(await evidenceOf(answered, answered)).toBe('ran');
    expect(await evidenceOf(late(), refused)).toBe('may_have_run');
  });
});
