import { expect, it } from 'vitest';
import { createSpillway, tool } from 'spillway';
import { adminHandler } from 'spillway/gateway/admin';
import { prometheusSink } from 'spillway/sinks/prometheus';
import { PATH, TOKEN, read, withToken } from './kit.ts';

const CANARY = 'canary-7f3a-sk-live-0123456789abcdef';

it('TR-15 a canary in inputs, outputs, errors, stacks, keys and sessions is not on the admin page, nor in its metrics', async () => {
  const failing = tool({
    name: 'failing',
    policy: { retry: { maxAttempts: 2, initialDelayMs: 0 } },
    execute: (): never => {
      throw Object.assign(new Error(`https://user:${CANARY}@example.com/?token=${CANARY}`), {
        headers: { authorization: `Bearer ${CANARY}` },
      });
    },
  });
  const echoing = tool({ name: 'echoing', execute: (input: unknown) => input });
  const layer = createSpillway({ tools: [failing, echoing] });
  const metrics = prometheusSink({ tools: [failing, echoing], inspect: () => layer.inspect() });
  layer.trace$.subscribe(metrics);
  const admin = adminHandler(layer, {
    token: TOKEN,
    metrics,
    onRefused: (refusal) => expect(JSON.stringify(refusal)).not.toContain(CANARY),
  });
  for (const toolName of ['failing', 'echoing', CANARY]) {
    await layer.execute({
      toolName,
      input: { password: CANARY, text: `Bearer ${CANARY}` },
      idempotencyKey: CANARY,
      session: CANARY,
      toolCallId: CANARY,
    });
  }
  const asked: Array<readonly [string, RequestInit]> = [
    [PATH, { headers: withToken }],
    ['/metrics', { headers: withToken }],
    [PATH, { headers: { authorization: `Bearer ${CANARY}` } }],
    [
      PATH,
      {
        method: 'POST',
        headers: { ...withToken, 'content-type': 'application/json' },
        body: JSON.stringify({ action: 'flush', session: CANARY }),
      },
    ],
    [
      PATH,
      {
        method: 'POST',
        headers: { ...withToken, 'content-type': 'application/json' },
        body: JSON.stringify({ action: CANARY, tool: CANARY }),
      },
    ],
  ];
  for (const [path, init] of asked)
    expect((await read(await admin.fetch(new Request(`http://localhost${path}`, init)))).text).not.toContain(CANARY);
});
