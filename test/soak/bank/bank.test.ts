import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bankSoak } from './soak.ts';

describe('a bank that checks no key', () => {
  it(
    'R-18.1 R-18.2 R-18.4 no transfer twice, none left uncertain, none told as undone that was done, under kills and stops',
    { timeout: 240_000 },
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'spillway-bank-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const report = await bankSoak({ transfers: 150, seed: 7, folder, everyMs: 700 });
      expect(report.problems).toEqual([]);
      expect(report.succeeded + report.failed).toBe(150);
      // It was not by luck: processes died, and answers were lost.
      expect(report.kills + report.stops).toBeGreaterThan(0);
      expect(report.verified).toBeGreaterThan(0);
    },
  );
});
