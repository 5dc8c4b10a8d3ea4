import { appendFileSync } from 'node:fs';
import { createSpillway, tool } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';

// A process that pays under the key `k`: by a tool that is away, and then by another, in which the first process stays
// until it is killed. Every payment is a line in the ledger; what became of the call goes to stdout.

const [folder = '.', who = ''] = process.argv.slice(2);
const pays = (line: string): void => appendFileSync(`${folder}/ledger`, `${who} ${line}\n`);
const isFirst = who === 'A';
const pay = tool({
  name: 'pay',
  policy: {
    effects: 'mutating',
    enforcesKey: true,
    alternatives: ['other'],
    retry: { maxAttempts: 1 },
    dedupe: { leaseMs: 1_000 },
  },
  execute: () => {
    if (isFirst) throw Object.assign(new Error('away'), { status: 503 });
    pays('here');
  },
});
const other = tool({
  name: 'other',
  policy: { effects: 'mutating' },
  execute: async () => {
    pays('elsewhere');
    process.stdout.write('paying\n');
    if (isFirst) await new Promise((resolve) => setTimeout(resolve, 60_000));
  },
});
const spillway = createSpillway({ tools: [pay, other], store: sqliteStore(`${folder}/store.db`) });
const { status, error } = await spillway.execute({ toolName: 'pay', idempotencyKey: 'k' });
process.stdout.write(`${JSON.stringify({ status, code: error?.code, uncertain: error?.uncertain })}\n`);
await spillway.close();
