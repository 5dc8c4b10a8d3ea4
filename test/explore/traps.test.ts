import { describe, expect, it } from 'vitest';
import { exploreFaults } from '../../src/explore/index.ts';
import { APPROVED } from './traps/approved.ts';
import type { Case } from './traps/kit.ts';
import { PAID } from './traps/paid.ts';
import { UNDONE } from './traps/undone.ts';

const TRAPS = [...PAID, ...UNDONE, ...APPROVED];

const explored = ({ plan, tools, options = {} }: Case) => exploreFaults(plan, tools, { maxFindings: 200, ...options });

describe('a second set of mistakes, thought of by another hand than what looks for them', () => {
  it.each(TRAPS)('XPL-1 finds $name', { timeout: 120_000 }, async ({ broken, finds, at }) => {
    const { findings } = await explored(broken);
    expect(findings.map(({ kind, node }) => `${kind} ${node}`)).toContain(`${finds} ${at}`);
  });

  it.each(TRAPS)('XPL-2 finds nothing where there is not $name', { timeout: 120_000 }, async ({ mended }) => {
    const { findings } = await explored(mended);
    expect(findings.map(({ message }) => message)).toEqual([]);
  });
});
