// Was: pictures, files and lists of parts that OpenAI Agents tools gave were not resumed as the SDK's runner sends
// them. Now: they are, and anything else is sent as JSON.
import { protocol } from '@openai/agents-core';
import { createHarvest, guardTools, resumeMessages } from 'spillway/adapters/openai-agents';
import { describe, expect, it } from 'vitest';

/** What is sent of a tool's output after the run was aborted. */
const sent = async (output: unknown): Promise<unknown> => {
  const [probe] = guardTools([
    {
      type: 'function' as const,
      name: 'probe',
      invoke: (_context: unknown, _input: string, _details?: object): Promise<unknown> => Promise.resolve(output),
    },
  ]);
  const harvest = createHarvest();
  await harvest.run(() => probe?.invoke({}, '{}', { toolCall: { callId: 'c0', namespace: 'crm' } }));
  const result = protocol.FunctionCallResultItem.parse(resumeMessages(harvest, 'go').at(-1));
  expect(result.namespace).toBe('crm');
  return result.output;
};

describe('outputs of several parts', () => {
  it('R-12.3 OpenAI Agents: pictures, files and texts are sent as the runner sends them, alone or as a list', async () => {
    expect(
      await sent([
        { type: 'text', text: 'a map' },
        { type: 'image', image: 'data:image/png;base64,AA==' },
      ]),
    ).toEqual([
      { type: 'input_text', text: 'a map' },
      { type: 'input_image', image: 'data:image/png;base64,AA==' },
    ]);
    expect(await sent({ type: 'file', file: { url: 'https://example.com/a.pdf' } })).toEqual([
      { type: 'input_file', file: { url: 'https://example.com/a.pdf' } },
    ]);
    expect(await sent({ type: 'image', image: { fileId: 'f1' } })).toEqual([
      { type: 'input_image', image: { id: 'f1' } },
    ]);
  });

  it.each<[string, unknown]>([
    ['an object of the tool’s own with such a type', { type: 'file', path: 'a.txt' }],
    ['a text without one', { type: 'text' }],
    ['a list that is not all of it', [{ type: 'text', text: 'a' }, { n: 1 }]],
    ['an empty list', []],
  ])('R-12.3 OpenAI Agents: %s is sent as JSON, which the protocol takes', async (_name, output) => {
    expect(await sent(output)).toEqual({ type: 'text', text: JSON.stringify(output) });
  });
});
