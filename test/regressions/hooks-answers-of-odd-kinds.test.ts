// Was: a hook that answered with a list, a function or a foreign stream let the call pass, whatever was in it. Now: it
// blocks.
import { createSpillway, tool } from 'spillway';
import { expect, it } from 'vitest';

const odd: ReadonlyArray<readonly [string, () => unknown]> = [
  ['a function', () => () => ({ block: 'no' })],
  ['a list', () => [{ block: 'no' }]],
  [
    'an async iterable',
    async function* answers() {
      yield await Promise.resolve({ block: 'no' });
    },
  ],
  ['a stream of another kind', () => ({ subscribe: () => undefined })],
];

it.each(odd)('R-11.1 a hook that answers with %s blocks the call', async (_what, beforeToolCall) => {
  let runs = 0;
  const spillway = createSpillway({
    tools: [tool({ name: 't', execute: () => ++runs })],
    hooks: { beforeToolCall: beforeToolCall as () => undefined },
  });
  expect(await spillway.execute({ toolName: 't' })).toMatchObject({ error: { code: 'blocked' } });
  expect(runs).toBe(0);
});

it.each([undefined, null, false, true, 7, 'yes', {}, { block: false }])(
  'R-11.1 %j says nothing against it',
  async (answer) => {
    const spillway = createSpillway({
      tools: [tool({ name: 't', execute: () => 1 })],
      hooks: { beforeToolCall: () => answer as undefined },
    });
    expect(await spillway.execute({ toolName: 't' })).toMatchObject({ status: 'success' });
  },
);
