import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startRedis } from '../../stores/redis/server.ts';
import { PLANTS } from './plants.ts';
import { bankSoak } from './soak.ts';

/**
 * `node test/soak/bank/run.ts --transfers 5000 --over mcp --store ioredis`: transfers by three processes that are
 * killed and stopped, at a bank that loses answers, breaks off and books late. Ends with 1 when money was lost or made,
 * a transfer was made twice or left uncertain, or one was told as undone that was done.
 */
const { values } = parseArgs({
  options: {
    transfers: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    every: { type: 'string', default: '300' },
    over: { type: 'string', default: 'http' },
    store: { type: 'string', default: 'sqlite' },
    pace: { type: 'string', default: '1' },
    plant: { type: 'string' },
  },
});
const { over, store } = values;
const plant = PLANTS.find((name) => name === values.plant);
if (plant === undefined && values.plant !== undefined) throw new RangeError(`--plant is one of ${PLANTS.join(', ')}`);
if (over !== 'http' && over !== 'mcp') throw new RangeError(`--over must be http or mcp, not ${over}`);
if (store !== 'sqlite' && store !== 'redis' && store !== 'ioredis')
  throw new RangeError(`--store must be sqlite, redis or ioredis, not ${store}`);
const server = store === 'sqlite' ? undefined : await startRedis();
const folder = mkdtempSync(join(tmpdir(), 'spillway-bank-'));
try {
  const report = await bankSoak({
    transfers: Number(values.transfers),
    seed: Number(values.seed),
    everyMs: Number(values.every),
    pace: Number(values.pace),
    folder,
    over,
    progress: (line) => void process.stderr.write(`${line}\n`),
    ...(plant === undefined ? {} : { plant }),
    ...(server === undefined || store === 'sqlite' ? {} : { redis: { kind: store, path: server.path } }),
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = report.problems.length === 0 ? 0 : 1;
} finally {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}
