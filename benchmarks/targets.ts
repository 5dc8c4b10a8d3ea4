import type { Question, Target } from './measure.ts';

const entries = (
  record: Readonly<Record<string, number>> | undefined,
  pattern: RegExp,
): ReadonlyArray<readonly [string, number]> => Object.entries(record ?? {}).filter(([name]) => pattern.test(name));

/** Of plans: every shape at 1,000 nodes, and how much dearer a node of 10,000 is. */
export const turnTargets = ({ figures, ratios, kilobytes }: Question): readonly Target[] => [
  ...figures
    .filter(({ name }) => name.endsWith(', 1000 nodes'))
    .map(({ name, usPerUnit }): Target => ({ name: `a node, ${name}`, value: usPerUnit, limit: 16, unit: 'us' })),
  ...entries(kilobytes, /a node's result/).map(([name, value]): Target => ({ name, value, limit: 2, unit: 'KB' })),
  ...entries(ratios, /a node of 10000/).map(([name, value]): Target => ({ name, value, limit: 2, unit: 'x' })),
];

export const pendingTargets = ({ kilobytes }: Question): readonly Target[] =>
  entries(kilobytes, /a pending call/).map(([name, value]): Target => ({ name, value, limit: 9, unit: 'KB' }));

/** The canonical key of some 200 bytes. */
export const keyTargets = ({ ratios }: Question): readonly Target[] =>
  entries(ratios, /canonicalJson \+ sha256, 200 B/).map(([name, value]): Target => ({
    name,
    value,
    limit: 0.5,
    atLeast: true,
    unit: 'x',
  }));

export const redisTargets = ({ ratios }: Question): readonly Target[] =>
  entries(ratios, /claims/).map(([name, value]): Target => ({ name, value, limit: 0.5, atLeast: true, unit: 'x' }));
