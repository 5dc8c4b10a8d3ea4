import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { toToolError, type Entrance } from '../../src/errors/read-error.ts';
import { toLlmError } from '../../src/errors/llm.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { CORPUS, type Row } from './corpus.ts';

const shown = (thrown: unknown): string =>
  inspect(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : thrown, {
    breakLength: Number.POSITIVE_INFINITY,
  }).slice(0, 160);

interface Miss {
  readonly where: string;
  readonly thrown: string;
  readonly expected: string;
  readonly said: string;
}

const told = (where: Entrance, thrown: unknown): string => {
  const error = toToolError(thrown, where);
  return `${error.kind} ${classify(error).classification}`;
};

const missesOf = (where: Entrance, rows: readonly Row[]): Miss[] =>
  rows.flatMap(([kind, classification, thrown]) => {
    const said = told(where, thrown);
    const expected = `${kind} ${classification}`;
    return said === expected ? [] : [{ where, thrown: shown(thrown), expected, said }];
  });

const all = Object.entries(CORPUS) as ReadonlyArray<[Entrance, readonly Row[]]>;

describe('R-12.1 the corpus', () => {
  it('has 300 rows and more', () => {
    expect(all.reduce((count, [, rows]) => count + rows.length, 0)).toBeGreaterThanOrEqual(300);
  });

  it.each(all)('%s: every row gets its kind and class', (where, rows) => {
    expect(missesOf(where, rows)).toEqual([]);
  });

  it('nothing permanent is called transient', () => {
    const retried = all
      .flatMap(([where, rows]) => missesOf(where, rows))
      .filter(({ expected, said }) => expected.endsWith('permanent') && said.endsWith('transient'));
    expect(retried).toEqual([]);
  });

  it('llm: every row gets the kind of `LlmErrorKind`, and its class', () => {
    const misses = CORPUS.llm.flatMap(([, classification, thrown, kind]) => {
      const error = toLlmError(thrown);
      const said = `${error.kind} ${error.classification}`;
      return kind === undefined || said === `${kind} ${classification}`
        ? []
        : [{ thrown: shown(thrown), expected: `${kind} ${classification}`, said }];
    });
    expect(misses).toEqual([]);
  });
});
