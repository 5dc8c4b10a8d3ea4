// Was: a failure that was replayed under its key lost its safe message, and read "The tool ran and failed. The tool did
// not run." Now: it reads as it did.
import { ToolExecutionError, createSpillway, tool } from 'spillway';
import { runAgent } from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';
import { memoryStore } from 'spillway/stores/memory';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';

const replayed = async (thrown: unknown): Promise<readonly string[]> => {
  const bad = tool({
    name: 'bad',
    policy: { effects: 'read', retry: { maxAttempts: 1 } },
    execute: () => Promise.reject(thrown),
  });
  const hooks = { prepareCall: () => ({ idempotencyKey: 'one' }) };
  const spillway = createSpillway({ tools: [bad], store: memoryStore(), hooks });
  const call = { calls: [{ name: 'bad', input: {} }] };
  const options = {
    model: scriptedModel([call, call, { text: 'ok' }]),
    spillway,
    tools: [bad],
    messages: [{ role: 'user', content: 'go' }] as const,
  };
  const events = await lastValueFrom(runAgent(options).pipe(toArray()));
  return events.flatMap((event) => (event.type === 'tool_result' ? [event.result.text] : []));
};

it.each([
  [
    'a bare error',
    Object.assign(new Error('x'), { status: 404 }),
    /^The tool ran and failed\. Its service answered 404/,
  ],
  [
    'a safe message',
    new ToolExecutionError('execution_error', 'x', { safeMessage: 'Sold out', classification: 'permanent' }),
    /^Sold out$/,
  ],
])('R-12.4 %s', async (_what, thrown, text) => {
  const [first, second] = await replayed(thrown);
  expect(first).toMatch(text);
  expect(second).toBe(first);
});
