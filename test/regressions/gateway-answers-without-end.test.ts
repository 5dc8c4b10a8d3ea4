// Was: an event that was not ended ran into the error after it, and calls were made for a model that was past its last
// step. Now: such events are ended, and such calls are not made.
import { afterEach, describe, expect, it } from 'vitest';
import { asked, calls, kit, type Kit } from '../gateway/kit.ts';
import { said, streamOf, use, wholeOf } from '../gateway/upstream.ts';

let gate: Kit;
afterEach(() => gate.close());

const streamed = { 'content-type': 'text/event-stream' };

describe('answers of an upstream that do not end as they should', () => {
  it('R-13.1 an event that was not ended does not run into the error after it', async () => {
    gate = await kit();
    const whole = streamOf({});
    const cut = whole.slice(0, whole.indexOf('event: content_block_stop') - 2);
    gate.upstream.answer(() => ({ body: cut, headers: streamed }));
    const text = await (await gate.post({ ...asked, stream: true })).text();
    expect(text.startsWith(`${cut}\n\nevent: error\ndata: {"type":"error"`)).toBe(true);
  });

  it.each(['\n\n\n', ': bye'])('R-13.1 what comes after the last event (%j) passes', async (tail) => {
    gate = await kit();
    const whole = `${streamOf({})}${tail}`;
    gate.upstream.answer(() => ({ body: whole, headers: streamed }));
    expect(await (await gate.post({ ...asked, stream: true })).text()).toBe(whole);
  });

  it.each([true, false])(
    'R-13.1 calls of a model that may make none any more are not made (stream: %s)',
    async (stream) => {
      gate = await kit({ limits: { steps: 3 } });
      gate.upstream.answer((_, place) => ({
        blocks: [said(`step ${place}`), use(`toolu_${place}`, 'math_add', { a: place, b: 2 })],
        stop: 'tool_use',
      }));
      const text = await (await gate.post({ ...asked, stream })).text();
      expect(gate.upstream.asked).toHaveLength(3);
      expect(gate.upstream.asked[2]?.body['tool_choice']).toStrictEqual({ type: 'none' });
      expect(calls.inputs).toHaveLength(2);
      expect(text).toContain('"stop_reason":"end_turn"');
      expect(text).not.toContain('tool_use');
    },
  );

  it('R-13.1 an answer that pauses for ever goes to the client', async () => {
    gate = await kit({ limits: { steps: 3 } });
    gate.upstream.answer((_, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' }
        : { body: wholeOf({ stop: 'pause_turn' }) },
    );
    expect(await (await gate.post(asked)).json()).toMatchObject({ stop_reason: 'pause_turn' });
    expect(gate.upstream.asked).toHaveLength(3);
  });

  it('R-13.1 a later answer that can have no body is given on', async () => {
    gate = await kit();
    gate.upstream.answer((_, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' }
        : { status: 304, body: '' },
    );
    expect((await gate.post(asked)).status).toBe(304);
  });
});
