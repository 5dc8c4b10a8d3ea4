import { readFileSync, readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MORE, citations, definitions } from './ids.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const RULES = 'test/spec/README.md';

const files = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['src', 'test', 'benchmarks', '.ci'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.png'))
      .map((entry) => posix.relative(root, posix.join(entry.parentPath, entry.name))),
  ),
];
const defined = definitions(read(RULES));
const ids = new Set(defined.map(({ id }) => id));

/** Where a text cites what is not defined. */
const undefinedIn = (path: string, text: string): string[] =>
  citations(text)
    .filter(({ id }) => !ids.has(id))
    .map(({ id, written, line }) => `${path}:${line} ${id} (${written})`);

describe('the ids of rules', () => {
  it('are defined wherever they are cited', () => {
    const cited = files.flatMap((path) => citations(read(path)));
    expect(new Set(cited.map(({ id }) => id)).size).toBeGreaterThan(150);
    const missing = files.flatMap((path) => undefinedIn(path, read(path)));
    expect(missing, `say in ${RULES} what the rule is, or cite one that is there`).toEqual([]);
  });

  it('are defined once, and under their own prefix', () => {
    expect(defined.length).toBeGreaterThan(150);
    expect(defined.map(({ id }) => id).filter((id, index, all) => all.indexOf(id) !== index)).toEqual([]);
    expect(defined.filter(({ id, group }) => !id.startsWith(`${group}-`) && !id.startsWith(`${group} `))).toEqual([]);
  });

  it('are written in one form', () => {
    const odd = files.flatMap((path) =>
      citations(read(path))
        .filter(({ id, written }) => !id.endsWith(written) && !MORE.test(written))
        .map(({ written, line }) => `${path}:${line} ${written}`),
    );
    expect(odd, 'write R-2.3, TR-4, SI-T 2.4, SI 2.1').toEqual([]);
  });
});

describe('the finder of citations', () => {
  // The samples are put together, so that this file itself cites nothing that is not there.
  const number = '99.9';
  const rule = ['R', number].join('-');
  const of = (prefix: string, number = '99', between = '-'): string => [prefix, number].join(between);
  it.each([
    [`it('${rule} something holds')`, rule],
    [`R-2.3 ${rule} something holds`, rule],
    [`(${rule}).`, rule],
    [`/** Sources: SI 1.1 and ${number}. */`, of('SI', number, ' ')],
    [`(SI 1.1, 1.2, ${number})`, of('SI', number, ' ')],
    [`R-2.3/${number}`, rule],
    [`R-2.3 to ${number}`, rule],
    [`${of('SI-T', number, ' ')}: a condition`, of('SI-T', number, ' ')],
    [`(${of('CLAW', number, ' ')})`, of('CLAW', number, ' ')],
    [`${of('PROXY', '99', ' ')}: a strategy`, of('PROXY', '99', ' ')],
    [`(${of('AGENT', 'Z', ' ')})`, of('AGENT', 'Z', ' ')],
    [`by: ['${of('TRC')}']`, of('TRC')],
    [`TR-4 ${of('TR')} two ids`, of('TR')],
    [`/by ${rule.replace('.', '\\.')}\\b/`, rule],
    [`new RegExp('\\\\b${rule.replace('.', '\\\\.')}\\\\b')`, rule],
    [`${rule.replace('-', '\u2011')} with a hyphen that does not break`, rule],
    [`${rule.replace('-', '')} without one`, rule],
    [`${of('SI-T', number)} with one too many`, of('SI-T', number, ' ')],
    [`${of('NEW', '1')} of a prefix that nobody has defined`, of('NEW', '1')],
    [`${of('NEW', '1.2', ' ')} of another`, of('NEW', '1.2')],
  ])('reports %s', (text, id) => {
    expect(undefinedIn('sample', text)).toEqual([expect.stringContaining(` ${id} (`)]);
  });

  it('passes what cites nothing', () => {
    const other = ['UTF-8, SHA-256, ISO 8601', 'HTTP 429', 'SDK 1.11', 'ORA-00060', 'SELECT 1', 'Node 22.5'];
    for (const text of [...other, 'connect ECONNREFUSED 10.0.0.5', 'R2 and S3', 'AGENT_KEYS']) {
      expect(undefinedIn('sample', text)).toEqual([]);
    }
  });

  it('says where', () => {
    expect(undefinedIn('a.ts', `one\n// two: ${rule}\n`)).toEqual([`a.ts:2 ${rule} (${rule})`]);
  });
});
