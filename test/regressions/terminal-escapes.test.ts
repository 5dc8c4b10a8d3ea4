// Was: names of a server's tools and keys of a plan file reached the terminal as they were, whole. Now: printable
// characters only, cut to a line.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { messageLines } from '../../src/cli/show/text.ts';
import { ndjsonLine } from '../../src/sinks/ndjson.ts';
import { folder, spillway } from '../cli/support.ts';

const server = join(import.meta.dirname, 'hostile-names-server.ts');
const planOf = (tool: string, more = ''): string =>
  `${more}servers: { m: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(server)}] } }\nturn: { nodes: [{ id: n, tool: ${JSON.stringify(tool)} }] }\n`;

/** Whatever a terminal would obey, or not show. */
const unprintable = (text: string): string[] => text.match(/(?!\n)[\p{C}\p{Default_Ignorable_Code_Point}]/gu) ?? [];
const longest = (text: string): number => Math.max(...text.split('\n').map(({ length }) => length));

describe('R-15.2 a terminal', () => {
  it.each<[string, string, string]>([
    ['a name that a server lists', planOf('m.good'), 'the server m has no tool good'],
    [
      'names that a server lists, none of them near',
      planOf('m.zzzzzzzzzzzzz'),
      'the server m has no tool zzzzzzzzzzzzz; there is',
    ],
    ['a key of a plan file', `"\\e[31mred\\e]0;title\\a\\u202e": 1\n${planOf('m.fine')}`, 'there is no such key here'],
    ['a long key of a plan file', `? ${'k'.repeat(5_000)}\n: 1\n${planOf('m.fine')}`, 'there is no such key here'],
    ['a tool of a plan file', planOf(`no\u009b2J.${'t'.repeat(5_000)}`), 'must have at most 256 characters'],
    ['a name of a node', 'turn: { nodes: [{ id: "\\e[2Jx", tool: m.x }] }\n', 'turn.nodes'],
  ])('R-15.2 %s', async (_, plan, said) => {
    using place = folder();
    const { code, stdout, stderr } = await spillway('run', place.write('plan.yaml', plan));
    expect(stderr).toContain(said);
    expect(unprintable(stdout + stderr)).toEqual([]);
    expect(longest(stderr)).toBeLessThanOrEqual(600);
    expect(stderr.split('\n').filter((line) => line.startsWith('forged'))).toEqual([]);
    expect(code).toBe(2);
  });

  it('R-15.2 what a tool says, in progress, table and --json', async () => {
    using place = folder();
    const path = place.write('plan.yaml', planOf('m.fine'));
    for (const args of [[], ['--json']]) {
      const { stdout, stderr } = await spillway('run', path, ...args);
      expect(stdout + stderr).toContain('bad');
      expect(unprintable(stdout + stderr)).toEqual([]);
      expect(longest(stderr)).toBeLessThanOrEqual(620);
    }
  });

  it('R-15.2 arguments of the command line', async () => {
    for (const args of [
      ['run', 'x\u001b[2J\u202e.yaml'],
      ['\u001b[2J'],
      ['run', '--no\u001b[31mne'],
      ['admin', '--\u009b2J'],
      ['gateway', '\u001b[2J'],
    ]) {
      const { stdout, stderr } = await spillway(...args);
      expect(unprintable(stdout + stderr)).toEqual([]);
      expect(stderr).not.toBe('');
    }
  });

  it('R-15.2 lines of ours stay lines, those of others do not', () => {
    expect(messageLines(`one\n  two\u001b[2J${'x'.repeat(5_000)}`).split('\n')).toEqual([
      'one',
      expect.stringMatching(/^ {2}twox{500,600}\.\.\.$/),
    ]);
    expect(ndjsonLine({ text: 'a\u202eb\u{e0041}c\u200bd\u009b é' })).toBe(
      '{"text":"a\\u202eb\\udb40\\udc41c\\u200bd\\u009b é"}\n',
    );
    expect(JSON.parse(ndjsonLine({ text: 'a\u202eb\u{e0041}c' }))).toEqual({ text: 'a\u202eb\u{e0041}c' });
  });
});
