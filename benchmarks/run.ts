import { benchmarkCall } from './call.ts';
import { benchmarkKey } from './key.ts';
import { benchmarkPending } from './pending.ts';
import { benchmarkRedis } from './redis.ts';
import { benchmarkTurn } from './turn.ts';
import type { Question } from './measure.ts';

/** `npm run bench`: asks every question and prints the answers; `--json` as JSON. */
const questions: Question[] = [];
for (const benchmark of [benchmarkCall, benchmarkPending, benchmarkTurn, benchmarkKey, benchmarkRedis]) questions.push(await benchmark());

if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify({ node: process.version, questions }, undefined, 2)}\n`);
} else {
  for (const { question, figures, ratios, kilobytes = {} } of questions) {
    process.stdout.write(`\n${question}\n`);
    for (const { name, usPerUnit } of figures) process.stdout.write(`  ${usPerUnit.toFixed(2).padStart(8)} us  ${name}\n`);
    for (const [name, ratio] of Object.entries(ratios)) process.stdout.write(`  ${ratio.toFixed(2).padStart(8)} x   ${name}\n`);
    for (const [name, size] of Object.entries(kilobytes)) process.stdout.write(`  ${size.toFixed(2).padStart(8)} KB  ${name}\n`);
  }
}
