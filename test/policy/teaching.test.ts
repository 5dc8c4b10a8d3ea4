import { describe, expect, it } from 'vitest';
import { FAULTS, TELLINGS, measure, tablesOf } from '../../benchmarks/teaching.ts';
import { readPage } from '../pages.ts';

describe('R-12.4 what the sentences are worth', () => {
  it('R-12.4 R-11.4 200 tasks with faults: all solved, in less than half the turns and calls, and no secret told', async () => {
    const all = await Promise.all(TELLINGS.map(measure));
    expect(readPage('src/policy/README.md'), 'node benchmarks/teaching.ts prints other tables').toContain(
      tablesOf(all),
    );
    const [generic, ours, shown, raw] = all;
    expect([generic, ours, shown, raw].map((figures) => figures?.tasks)).toEqual([200, 200, 200, 200]);
    expect(ours).toMatchObject({ solved: 200, leaks: 0 });
    expect(shown).toMatchObject({ solved: 200, leaks: 0 });
    expect(generic?.leaks).toBe(0);
    expect(raw?.leaks).toBeGreaterThan(100);
    expect(ours?.turns).toBeLessThan((generic?.turns ?? 0) / 2);
    expect(ours?.calls).toBeLessThan((generic?.calls ?? 0) / 2);
    expect(ours?.turns).toBeLessThan(raw?.turns ?? 0);
    expect(shown?.turns).toBeLessThan(ours?.turns ?? 0);
    for (const fault of FAULTS)
      expect(ours?.byFault[fault]?.turns, fault).toBeLessThan(generic?.byFault[fault]?.turns ?? 0);
  });
});
