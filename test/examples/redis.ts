// Two processes make the same payment at the same time, under one key: it is made once, and both get its receipt.
// A Redis is at REDIS_URL.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { createSpillway, tool } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { z } from 'zod';

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';

async function work(): Promise<void> {
  const client = createClient({ url });
  await client.connect();
  const pay = tool({
    name: 'pay',
    input: z.object({ cents: z.number() }),
    policy: { effects: 'mutating' },
    // A bank would be given `callKey`, so that it can refuse the second one, too.
    execute: async ({ cents }) => {
      await sleep(500);
      return { receipt: await client.incrBy('example:receipts', 1), cents };
    },
  });
  const spillway = createSpillway({ tools: [pay], store: redisStore(client) });
  const { output, fromCache } = await spillway.execute({
    toolName: 'pay',
    input: { cents: 100 },
    idempotencyKey: 'order-1',
    tenant: 'shop',
  });
  console.log(JSON.stringify({ ...(output?.content as object), replayed: fromCache }));
  await spillway.close();
  await client.close();
}

if (process.argv.includes('worker')) await work();
else {
  const lines = await Promise.all(
    [1, 2].map(async () => {
      const child = spawn(process.execPath, [...process.argv.slice(1), 'worker'], {
        env: { ...process.env, REDIS_URL: url },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [said] = await Promise.all([child.stdout.setEncoding('utf8').toArray(), once(child, 'exit')]);
      return said.join('').trim();
    }),
  );
  for (const line of lines.toSorted()) console.log(line);
}
