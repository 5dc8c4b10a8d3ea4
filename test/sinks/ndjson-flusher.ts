import { ndjsonSink } from '../../src/sinks/ndjson.ts';

/**
 * Writes numbered events in bursts until it is killed, from a first number on, and says after each flush up to which
 * one it was told that all is written.
 */
const [path = '', first = '0', maxFileBytes = ''] = process.argv.slice(2);
const file = await ndjsonSink(path, maxFileBytes === '' ? {} : { maxFileBytes: Number(maxFileBytes) });
for (let seq = Number(first); ;) {
  for (let n = 0; n < 40; n++, seq++)
    file.next({ source: 'layer', type: 'breaker_evicted', seq, atMs: seq, toolName: 'x'.repeat(seq % 300), scope: '' });
  const { written, dropped } = await file.flush();
  if (dropped > 0 || written !== seq - Number(first)) throw new Error(`${dropped} lost, ${written} of ${seq} written`);
  process.stdout.write(`${seq}\n`);
}
