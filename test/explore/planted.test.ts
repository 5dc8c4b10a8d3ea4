import { exploreFaults } from 'spillway/testing/explore';
import { describe, expect, it } from 'vitest';
import { PLANTED } from './planted.ts';

describe('bugs that were planted into plans', () => {
  it.each(PLANTED)('XPL-1 finds $bug', async ({ finds, node, made }) => {
    const { plan, tools, options } = made(true);
    const { findings } = await exploreFaults(plan, tools, { ...options, maxFindings: 100 });
    expect(findings.map((finding) => `${finding.kind} ${finding.node}`)).toContain(`${finds} ${node}`);
  });

  it.each(PLANTED)('XPL-2 finds nothing in the twin without $bug', async ({ made }) => {
    const { plan, tools, options } = made(false);
    const { findings, explored } = await exploreFaults(plan, tools, options);
    expect(findings.map(({ kind, message }) => `${kind}: ${message}`)).toEqual([]);
    expect(explored).toBeGreaterThan(20);
  });
});
