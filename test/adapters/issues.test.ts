import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { loadGenkit } from './frameworks/genkit.ts';
import { loadLangChain } from './frameworks/langchain.ts';
import { loadMastra } from './frameworks/mastra.ts';
import { loadStrands } from './frameworks/strands.ts';
import { EFFECTS } from './issues/effects.ts';
import { HANGS } from './issues/hangs.ts';
import type { Issue } from './issues/kit.ts';
import { SERVERS } from './issues/servers.ts';

const ISSUES = [...HANGS, ...EFFECTS, ...SERVERS];
const LINES_MAX = 10;
const PAGE = join(import.meta.dirname, 'issues.md');

const source = ['hangs', 'effects', 'servers']
  .map((name) => readFileSync(join(import.meta.dirname, 'issues', `${name}.ts`), 'utf8'))
  .join('\n');

/** The lines that solve an issue, as they stand in its test. */
const linesOf = ({ id }: Issue): readonly string[] => {
  const own = source.slice(source.indexOf(`id: '${id}'`));
  const [, block = ''] = /\n {6}if \(guarded\) \{\n([\s\S]*?)\n {6}\}/.exec(own) ?? [];
  return block.split('\n').map((line) => line.replace(/^ {8}/, ''));
};

const linkOf = ({ id }: Issue): string => {
  const [repository = '', number = ''] = id.split('#');
  return `[${id}](https://github.com/${repository}/issues/${number})`;
};

const page = (): string =>
  `${[
    '# What users have told the makers of their frameworks',
    '',
    'Each with the real package, run by `issues.test.ts`: what becomes of it as it comes, and with the lines below it, which',
    'are those of the test. `UPDATE=1` writes this page anew. Whether an issue is open says its own page.',
    ...ISSUES.flatMap((issue) => [
      '',
      `## ${linkOf(issue)}`,
      '',
      `${issue.title}. Alone: ${issue.alone}. With this: ${issue.solved}.`,
      '',
      '```text',
      ...linesOf(issue),
      '```',
    ]),
  ].join('\n')}\n`;

beforeAll(async () => {
  // One after the other: npm takes the whole machine.
  await loadLangChain();
  await loadMastra();
  await loadGenkit();
  await loadStrands();
}, SIDE_INSTALL_TIMEOUT_MS);

describe.each(ISSUES)('$id', (issue) => {
  it('is seen with its package alone', async () => {
    expect(await issue.run(false)).toBe(issue.alone);
  });

  it('is solved by ten lines at most', async () => {
    expect(await issue.run(true)).toBe(issue.solved);
    const lines = linesOf(issue);
    expect(lines.join('')).not.toBe('');
    expect(lines.length).toBeLessThanOrEqual(LINES_MAX);
  });
});

describe('the page of the issues', () => {
  it('has at least ten, and says what was measured', () => {
    expect(ISSUES.length).toBeGreaterThanOrEqual(10);
    if (process.env['UPDATE'] === '1') writeFileSync(PAGE, page());
    expect(readFileSync(PAGE, 'utf8')).toBe(page());
  });
});
