// Was: what the schema of a tool or a hand-off threw reached the model. Now: the input is refused, nothing runs, and
// only the host is told the cause.
import { createSpillway, tool, type FailureNotification } from 'spillway';
import { scriptedModel } from 'spillway/agent';
import { routerProvider } from 'spillway/providers/router';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asked, lived, resultsOf } from '../agent/kit.ts';

const CANARY = 'password=hunter2';
const schemas = {
  throws: z.object({ id: z.string() }).refine((): boolean => {
    throw new Error(CANARY);
  }),
  'can only answer later': z.object({ id: z.string() }).refine(() => Promise.resolve(false)),
};

describe.each(Object.entries(schemas))('R-12.4 a schema that %s', (_how, schema) => {
  it('refuses a tool’s input, and the model hears nothing of what it threw', async () => {
    let ran = 0;
    const find = tool({ name: 'find', input: schema, execute: () => void ran++ });
    const spillway = createSpillway({ tools: [find] });
    const failures: FailureNotification[] = [];
    spillway.failures$.subscribe((failure) => failures.push(failure));
    const events = await lived({
      model: scriptedModel([{ calls: [{ name: 'find', input: { id: 'a' } }] }, { text: 'done' }]),
      spillway,
      tools: [find],
      messages: asked,
    });
    expect(resultsOf(events)).toMatchObject([
      {
        isError: true,
        text: 'The input is malformed: its schema cannot check it: it throws, or can only answer later. Do not try again with the same input: correct it first.',
      },
    ]);
    expect(JSON.stringify(events)).not.toContain(CANARY);
    // The host is told.
    expect(failures[0]?.error.cause).toBeInstanceOf(Error);
    expect(ran).toBe(0);
  });

  it('refuses the parameters of a hand-off, and nothing ran', async () => {
    let ran = 0;
    const router = routerProvider({
      agents: [{ name: 'billing', description: 'Invoices', parameters: schema, run: () => ran++ }],
    });
    const result = await createSpillway({ providers: [router] }).execute({
      toolName: 'router.handoff-to',
      input: { agent: 'billing', parameters: { id: 'a' } },
    });
    expect(result).toMatchObject({ status: 'error', error: { code: 'invalid_parameters' } });
    expect(JSON.stringify(result)).not.toContain(CANARY);
    expect(ran).toBe(0);
  });
});
