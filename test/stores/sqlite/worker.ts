import { writeSync } from 'node:fs';
import { claimOf } from '../../../src/testing/store-conformance/check.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';

/**
 * A process that uses the file: `race PATH KEYS` claims each key once, `work PATH NAME` claims and completes until it
 * is killed. What was acknowledged goes to stdout.
 */
const [, , mode, path = '', argument = ''] = process.argv;
const store = sqliteStore(path, { busyTimeoutMs: 30_000 });
const acknowledge = (...words: readonly (string | number)[]): void => void writeSync(1, `${words.join(' ')}\n`);

acknowledge('ready');
if (mode === 'race') {
  // All begin at once.
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const keys = Array.from({ length: Number(argument) }, (_, i) => `k${i}`).toSorted(() => Math.random() - 0.5);
  for (const key of keys) {
    const { created, record } = await store.setIfNotExists(claimOf(key, { requestId: String(process.pid) }));
    if (created) acknowledge(key, record.version);
  }
  process.exitCode = 0;
  process.stdin.destroy();
} else {
  for (let i = 0; ; i++) {
    const key = `${argument} ${i}`;
    const { record } = await store.setIfNotExists(claimOf(key));
    acknowledge('claimed', key, record.version);
    const settled = await store.compareAndSet(key, record.version, {
      state: 'done',
      ttlMs: 600_000,
      payload: JSON.stringify(key),
    });
    acknowledge('done', key, settled?.version ?? 'refused');
  }
}
