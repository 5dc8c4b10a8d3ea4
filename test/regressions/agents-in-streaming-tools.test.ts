// Was: calls that a tool made while it streamed its output were harvested as the run's own. Now: the harvest holds the
// outer call alone.
import { createHarvest, guardTools, resumeMessages } from 'spillway/adapters/ai-sdk';
import { describe, expect, it } from 'vitest';

describe('agents in streaming tools', () => {
  it('R-5.6 the calls that a tool makes while it streams are its own business, too', async () => {
    const inner = guardTools({ look: { execute: (_input: object, _options: object) => Promise.resolve('seen') } });
    const outer = guardTools({
      agent: {
        async *execute(_input: object, _options: object): AsyncGenerator<string> {
          yield 'looking';
          await inner.look.execute(
            {},
            { toolCallId: 'inner', messages: [{ role: 'user', content: 'of the agent inside' }] },
          );
          yield 'done';
        },
      },
    });
    const harvest = createHarvest();
    const shown: string[] = [];
    await harvest.run(async () => {
      for await (const value of outer.agent.execute(
        {},
        { toolCallId: 'outer', messages: [{ role: 'user', content: 'go' }] },
      ))
        shown.push(value);
    });
    expect(shown).toContain('done');
    expect(harvest.calls.map(({ toolCallId, state, output }) => [toolCallId, state, output])).toEqual([
      ['outer', 'succeeded', 'done'],
    ]);
    const [first] = await resumeMessages<object>(harvest, []);
    expect(first).toEqual({ role: 'user', content: 'go' });
  });
});
