import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { toToolError } from '../../src/errors/read-error.ts';
import { toLlmError } from '../../src/errors/llm.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import type { Item } from './field/item.ts';
import { modelWords } from './field/model-words.ts';
import { serverWords } from './field/server-words.ts';
import { services } from './field/services.ts';
import { toolWords } from './field/tool-words.ts';
import { tradeWords } from './field/trade-words.ts';

interface Miss {
  readonly thrown: string;
  readonly expected: string;
  readonly said: string;
  readonly retried: boolean;
}

const shown = (thrown: unknown): string =>
  inspect(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : thrown, {
    breakLength: Number.POSITIVE_INFINITY,
  }).slice(0, 160);

/** A text is thrown as it is and as an error's message. */
const formsOf = ({ thrown }: Item): readonly unknown[] =>
  typeof thrown === 'string' ? [thrown, new Error(thrown)] : [thrown];

const missesOf = (item: Item): readonly Miss[] =>
  formsOf(item).flatMap((thrown) => {
    const error = toToolError(thrown, item.where);
    const model = item.llm.length === 0 ? undefined : toLlmError(thrown);
    const classes = [classify(error).classification, ...(model === undefined ? [] : [model.classification])];
    const right =
      item.kinds.includes(error.kind) &&
      (model === undefined || item.llm.includes(model.kind)) &&
      (item.classification === 'either' || classes.every((said) => said === item.classification));
    if (right) return [];
    const expected = [...item.llm, ...item.kinds, item.classification].join(' ');
    return [
      {
        thrown: shown(thrown),
        expected,
        said: [error.kind, ...(model === undefined ? [] : [model.kind]), ...classes].join(' '),
        retried: item.classification === 'permanent' && classes.includes('transient'),
      },
    ];
  });

describe('R-12.1 errors as they are met in the field', () => {
  it.each<[string, number, readonly Item[]]>([
    ['models', 110, modelWords],
    ['servers and clients', 110, serverWords],
    ['services', 120, services],
    ['tools', 300, toolWords],
    ['all trades', 120, tradeWords],
  ])('%s: all get their kind and class, and nothing permanent is retried', (_name, least, items) => {
    expect(items.length).toBeGreaterThanOrEqual(least);
    const misses = items.flatMap(missesOf);
    expect(misses.filter(({ retried }) => retried)).toEqual([]);
    expect(misses).toEqual([]);
  });

  it('R-1.3 what no word explains may be retried, the safe default', () => {
    const said = [
      'it broke',
      'the manifest contains CR bytes',
      'write was attempted after the end',
      'unlock the drawer before you search',
    ].map((text) => classify(toToolError(text, 'tool')));
    expect(said.map(({ classification, rule }) => [classification, rule])).toEqual(
      said.map(() => ['transient', 'default']),
    );
  });
});
