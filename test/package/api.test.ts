import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readApi, type Entry } from '../../.ci/api-report.ts';
import { llmsText } from '../../.ci/llms-text.ts';
import { manifest, root } from './consumer.ts';

let report = '';
let entries: readonly Entry[] = [];
beforeAll(() => {
  ({ report, entries } = readApi());
});

const namesOf = (entry: string): readonly string[] => [
  ...(entries.find(({ name }) => name === entry)?.exports.keys() ?? []),
];

describe('the public API', () => {
  it('is told by src/api.md as it is', () => {
    expect(report, 'run `npm run api`, review what has changed, and say it in CHANGELOG.md').toBe(
      readFileSync(join(root, 'src/api.md'), 'utf8'),
    );
  });

  it('gives, with .ci/llms.md, llms.txt', () => {
    expect(llmsText(entries), 'run `npm run api`').toBe(readFileSync(join(root, 'src/llms.txt'), 'utf8'));
  });

  it('is told whole: every entry, every value that an entry has at run time', async () => {
    expect(entries.map(({ name }) => name)).toEqual(
      Object.entries(manifest.exports).flatMap(([path, to]) =>
        typeof to === 'string' ? [] : [`spillway${path.slice(1)}`],
      ),
    );
    const { exports } = manifest;
    const untold = Object.values(exports).flatMap(async (to) => {
      if (typeof to === 'string') return [];
      const entry = entries.find(({ name }) => exports[name.replace('spillway', '.')] === to);
      const module = (await import(join(root, to.default.replace('./dist/', 'src/').replace(/js$/, 'ts')))) as object;
      return Object.keys(module).filter((name) => !entry?.exports.has(name));
    });
    expect((await Promise.all(untold)).flat()).toEqual([]);
  });

  it('does not depend on comments, nor on the run', () => {
    expect(readApi('--removeComments').report).toBe(report);
  });

  it('has a root that holds at most 104 names, none of which its three sisters have', () => {
    expect(
      namesOf('spillway').length,
      'lower the limit with the root; what a program does not name belongs in policy, contract or operate',
    ).toBeLessThanOrEqual(104);
    const others = ['spillway/policy', 'spillway/contract', 'spillway/operate'].flatMap(namesOf);
    expect(others.filter((name) => namesOf('spillway').includes(name))).toEqual([]);
    expect(new Set(others).size).toBe(others.length);
  });

  it('keeps at the root what programs are written with', () => {
    const kept = [
      'createSpillway',
      'tool',
      'plan',
      'createBreaker',
      'guard',
      'classify',
      'decideRecovery',
      'toToolError',
      'toLlmError',
      'ToolExecutionError',
    ];
    const operators = [
      'abortable',
      'attemptTimeout',
      'circuitBreaker',
      'dedupe',
      'hedge',
      'idleTimeout',
      'retryBackoff',
    ];
    expect([...kept, ...operators].filter((name) => !namesOf('spillway').includes(name))).toEqual([]);
  });
});
