// Was: the model was told of a LangGraph command's state, and that a tool which had only asked a person succeeded. Now:
// it hears a command's messages alone, and no success.
import { createHarvest, resumeMessages, spillwayMiddleware } from 'spillway/adapters/langchain';
import { describe, expect, it } from 'vitest';

class ToolMessage {
  readonly fields: {
    readonly content: string;
    readonly tool_call_id: string;
    readonly name: string;
    readonly status: string;
  };
  constructor(fields: ToolMessage['fields']) {
    this.fields = fields;
  }
}
/** As LangGraph's `interrupt()` throws. */
class Interrupt extends Error {
  readonly is_bubble_up = true;
}

const calling = (
  id: string,
  name: string,
): { toolCall: { name: string; args: object; id: string }; tool: object; state: object } => ({
  toolCall: { name, args: {}, id },
  tool: {},
  state: { messages: [{ role: 'user', content: 'go' }, { tool_calls: [{ id, name, args: {} }] }] },
});

describe('what steers a graph', () => {
  it('R-12.3 LangChain: one that asked a person has no result, and the model is not told that it succeeded', async () => {
    const { wrapToolCall } = spillwayMiddleware({ ToolMessage });
    const harvest = createHarvest();
    const interrupt = new Interrupt('may I?');
    await harvest.run(() =>
      expect(wrapToolCall(calling('c1', 'ask'), () => Promise.reject(interrupt))).rejects.toBe(interrupt),
    );
    const last = resumeMessages<unknown>(harvest, []).at(-1) as ToolMessage;
    expect(last.fields).toMatchObject({
      tool_call_id: 'c1',
      status: 'error',
      content:
        'The caller canceled the call. The tool may have run and taken effect. Check first whether it took effect. Do not try again unless you are asked to.',
    });
  });

  it.each<[string, object, unknown]>([
    [
      'one whose update is a list of pairs',
      {
        update: [
          ['secret', 'sk-1'],
          ['messages', [{ tool_call_id: 'c1', content: 'moved' }]],
        ],
      },
      { tool_call_id: 'c1', content: 'moved' },
    ],
    [
      'one with a single message',
      { update: { messages: { tool_call_id: 'c1', content: 'moved' } } },
      { tool_call_id: 'c1', content: 'moved' },
    ],
    [
      'one that only changes the state',
      { update: { secret: 'sk-1' } },
      { fields: { content: '(no output)', tool_call_id: 'c1', name: 'go', status: 'success' } },
    ],
  ])('R-12.3 R-12.4 LangChain: of a command only its messages are told: %s', async (_name, command, expected) => {
    const { wrapToolCall } = spillwayMiddleware({ ToolMessage });
    const harvest = createHarvest();
    await harvest.run(() => wrapToolCall(calling('c1', 'go'), () => ({ lg_name: 'Command', ...command })));
    expect(resumeMessages<unknown>(harvest, []).at(-1)).toEqual(expected);
  });
});
