import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { locked } from '../../src/cli/sign-in/lock.ts';

/** A process that takes a lock, says so, and lets go of it once it is told to. */
const [, , lock = '', beatMs, staleMs] = process.argv;
const lines = createInterface({ input: process.stdin });
const say = (text: string): boolean => process.stdout.write(`${text}\n`);
await locked(
  lock,
  async (holds) => {
    say('held');
    await once(lines, 'line');
    if (!(await holds())) say('lost');
  },
  { beatMs: Number(beatMs), staleMs: Number(staleMs) },
);
say('free');
lines.close();
