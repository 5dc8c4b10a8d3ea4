// Was: a run that was resumed after its last answer was stored asked the model again. Now: it settles with that answer,
// and asks no model.
import { lastValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway } from 'spillway';
import { runAgent, type AgentMessage } from 'spillway/agent';
import { scriptedModel } from 'spillway/agent/scripted';

const asked: AgentMessage = { role: 'user', content: 'Where to?' };

describe('a run that is resumed after its last answer was stored', () => {
  it('R-12.3 settles with that answer, and asks no model', async () => {
    const model = scriptedModel([{ text: 'asked again' }]);
    const answered: AgentMessage = { role: 'assistant', content: [{ type: 'text', text: 'To Tokyo.' }] };
    const last = await lastValueFrom(runAgent({ model, spillway: createSpillway(), messages: [asked, answered] }));
    expect(last).toMatchObject({
      type: 'settled',
      result: { status: 'completed', text: 'To Tokyo.', turns: 0, messages: [asked, answered] },
    });
    expect(model.requests).toHaveLength(0);
  });

  it('R-12.3 goes on with one that only paused', async () => {
    const model = scriptedModel([{ text: ' Then to Kyoto.' }]);
    const paused: AgentMessage = { role: 'assistant', content: [{ type: 'text', text: 'To Tokyo.' }], stop: 'pause' };
    const last = await lastValueFrom(runAgent({ model, spillway: createSpillway(), messages: [asked, paused] }));
    expect(last).toMatchObject({ result: { status: 'completed', turns: 1 } });
  });

  it('R-12.3 refuses a conversation without a message', () => {
    expect(() => runAgent({ model: scriptedModel([]), spillway: createSpillway(), messages: [] })).toThrow(
      'at least one message',
    );
  });
});
