import type { Question, Target } from './measure.ts';

const entries = (record: Readonly<Record<string, number>> | undefined, pattern: RegExp): ReadonlyArray<readonly [string, number]> => Object.entries(record ?? {}).filter(([name]) => pattern.test(name));

/** Of plans: every shape at 100,000 nodes. */
export const turnTargets = ({ figures, ratios, kilobytes }: Question): readonly Target[] => [
  ...figures.filter(({ name }) => name.endsWith(', 100000 nodes')).map(({ name, usPerUnit }): Target => ({ name: `a node, ${name}`, value: usPerUnit, limit: 12, unit: 'us' })),
  ...entries(kilobytes, /a node's result/).map(([name, value]): Target => ({ name, value, limit: 2, unit: 'KB' })),
  ...entries(ratios, /a node of 100000/).map(([name, value]): Target => ({ name, value, limit: 1.3, unit: 'x' })),
];

export const pendingTargets = ({ kilobytes }: Question): readonly Target[] => entries(kilobytes, /a pending call/).map(([name, value]): Target => ({ name, value, limit: 3, unit: 'KB' }));

/** The canonical key of some 200 bytes. */
export const keyTargets = ({ ratios }: Question): readonly Target[] => entries(ratios, /canonicalJson \+ sha256, 200 B/).map(([name, value]): Target => ({ name, value, limit: 0.5, atLeast: true, unit: 'x' }));

export const redisTargets = ({ ratios }: Question): readonly Target[] => entries(ratios, /claims/).map(([name, value]): Target => ({ name, value, limit: 0.5, atLeast: true, unit: 'x' }));
