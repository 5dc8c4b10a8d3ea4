import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startRedis } from '../../stores/redis/server.ts';
import { bankSoak } from './soak.ts';

const TRANSFERS = 150;

describe.each([
  ['http', 'sqlite'],
  ['mcp', 'redis'],
  ['mcp', 'ioredis'],
  ['mcp', 'sqlite'],
] as const)('a bank that checks no key, over %s with %s', (over, store) => {
  it(
    'R-18.1 R-18.2 R-18.4 no transfer twice, none left uncertain, none told as undone that was done, under kills and stops',
    { timeout: 240_000 },
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'spillway-bank-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const server = store === 'sqlite' ? undefined : await startRedis();
      onTestFinished(async () => server?.stop());
      const redis = server === undefined || store === 'sqlite' ? {} : { redis: { kind: store, path: server.path } };
      const report = await bankSoak({ transfers: TRANSFERS, seed: 7, folder, over, everyMs: 300, ...redis });
      expect(report.problems).toEqual([]);
      expect(report.succeeded + report.failed).toBe(TRANSFERS);
      // It was not by luck: processes died, and answers were lost.
      expect(report.kills + report.stops).toBeGreaterThan(0);
      expect(report.verified).toBeGreaterThan(0);
    },
  );
});
