// Was: a tool's error shaped like its framework's own for bad input was passed to the model, or the tool was said not
// to have run. Now: only the tool's schema says what does not fit.
import { Agent, run, tool, type Tool } from '@openai/agents-core';
import { guardTools } from 'spillway/adapters/openai-agents';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { nothingSeen } from '../adapters/frameworks/kit.ts';
import { langChainWith, loadLangChain, scriptedModel, type LangChain } from '../adapters/frameworks/langchain.ts';
import { spillwayMiddleware } from '../../src/adapters/langchain.ts';
import { scriptedModel as openaiModel } from '../adapters/frameworks/openai-agents.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

const SECRETS = ['sk-live-4f9a8d77', 'redis://:hunter2@cache.internal:6379', '/srv/app/src/tool.ts:41:7'] as const;
const LEAK = SECRETS.join(' at ');

let lc: LangChain;
beforeAll(async () => {
  lc = await loadLangChain();
}, SIDE_INSTALL_TIMEOUT_MS);

/** What the model is told of one call of a tool. */
const told = async (execute: () => unknown, schema: unknown, input: unknown = { n: 1 }): Promise<string> => {
  const seen = nothingSeen();
  const made = lc.tool(execute, { name: 't', description: 'a tool of the test', schema });
  const middleware = lc.createMiddleware(
    spillwayMiddleware({ ToolMessage: lc.ToolMessage, defaults: { retry: { maxAttempts: 1 } } }),
  );
  await lc
    .createAgent({
      model: scriptedModel(lc, { guarded: true, calls: [{ id: 'c1', name: 't', input }] }, seen),
      tools: [made],
      middleware: [middleware],
    })
    .invoke({ messages: [{ role: 'user', content: 'go' }] });
  return seen.told.get('c1') ?? '';
};
const shaped =
  (inner: unknown): (() => never) =>
  () => {
    throw Object.assign(new Error(LEAK), { toolError: inner, toolCall: { name: 't', args: {}, id: 'c1' } });
  };

describe('LangChain', () => {
  it.each([
    ['an error', new Error(LEAK)],
    ['a text', LEAK],
    ['an object', { message: LEAK }],
  ])('R-12.4 an error that holds %s as its own: nothing of it, and it may have run', async (_what, inner) => {
    const said = await told(shaped(inner), z.object({ n: z.number() }));
    for (const secret of SECRETS) expect(said).not.toContain(secret);
    expect(said).toContain('may have run');
  });

  it('R-12.4 a schema that throws tells nothing', async () => {
    const throwing = z.object({ n: z.number() }).refine(() => {
      throw new Error(LEAK);
    });
    const said = await told(() => 'ran', throwing);
    for (const secret of SECRETS) expect(said).not.toContain(secret);
    expect(said).toContain('may have run');
  });

  it.each<[string, unknown, string]>([
    ['zod', z.object({ n: z.number() }), 'The input is malformed: n: Invalid input: expected number'],
    [
      'JSON Schema',
      { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      'The input is malformed: n: must be number',
    ],
  ])('R-12.4 what does not fit a schema of %s is named', async (_what, schema, text) => {
    expect(await told(() => 'ran', schema, { n: 'one' })).toContain(text);
    const seen = nothingSeen();
    await langChainWith(lc).run({ guarded: true, calls: [{ id: 'c1', name: 'strict', input: { n: 'one' } }] }, seen);
    expect(seen.ran).toEqual([]);
  });
});

describe('OpenAI Agents', () => {
  it('R-12.4 a tool that ran and throws what looks like bad input is not said not to have run', async () => {
    let ran = 0;
    const execute = (): never => {
      ran++;
      throw Object.assign(new Error(LEAK), { name: 'InvalidToolInputError' });
    };
    const made = tool({
      name: 't',
      description: 'a tool of the test',
      parameters: z.object({ n: z.number() }),
      errorFunction: null,
      execute,
    });
    const tools = guardTools<Tool>([made], { defaults: { retry: { maxAttempts: 1 } } });
    const toldOf = async (input: unknown): Promise<unknown> => {
      const seen = nothingSeen();
      await run(
        new Agent({
          name: 'test',
          tools,
          model: openaiModel({ guarded: true, calls: [{ id: 'c1', name: 't', input }] }, seen),
        }),
        'go',
      );
      return JSON.parse(seen.told.get('c1') ?? 'null');
    };
    expect([await toldOf({ n: 1 }), ran]).toEqual([
      {
        type: 'text',
        text: 'The tool ran and failed. It may have taken effect. Check first whether it took effect. Do not try again with the same input.',
      },
      1,
    ]);
    expect([await toldOf({ n: 'one' }), ran]).toEqual([
      {
        type: 'text',
        text: 'The input does not fit the tool’s schema. Do not try again with the same input: correct it first.',
      },
      1,
    ]);
  });
});
