// Was: `spillway show` ended with a TypeError of ours on a file in which a turn settles without a result. Now: such a
// turn counts as one that has not settled.
import { expect, it } from 'vitest';
import { folder, spillway } from '../cli/support.ts';

const lines = [
  { seq: 1, atMs: 1, source: 'turn', turnId: 't', type: 'settled' },
  {
    seq: 2,
    atMs: 2,
    source: 'turn',
    turnId: 'u',
    type: 'settled',
    result: { status: 'failed', summary: 'x', nodes: [7] },
  },
  { seq: 3, atMs: 3, source: 'turn', turnId: 'v', type: 'settled', result: { status: 'failed', nodes: 'all' } },
];

it('R-15.2 a file that says nothing of how its turns ended is shown as far as it goes', async () => {
  const file = folder().write('odd.ndjson', `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  const { code, stdout, stderr } = await spillway('show', file, '--json');
  expect(stderr).not.toMatch(/TypeError/);
  expect(code).toBe(0);
  const states = stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { status: string }).status);
  expect(states).toEqual(['unfinished', 'unfinished', 'unfinished']);
});
