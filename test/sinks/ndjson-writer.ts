import { execFileSync } from 'node:child_process';
import { tool, createSpillway } from '../../src/index.ts';
import { ndjsonSink } from '../../src/sinks/ndjson.ts';

/**
 * A process that traces calls into a file until it is killed, or for so many calls. Says what became of the events.
 * With `again` its limit on the size of files is lifted then, and it makes as many calls once more. With a number at
 * the end its files are rotated at so many bytes.
 */
const errorCode = (error: NodeJS.ErrnoException | undefined): string | undefined => error?.code;

const [path = '', calls = 'Infinity', again, maxFileBytes] = process.argv.slice(2);
const echo = tool({ name: 'echo', execute: async (n: number) => n });
const spillway = createSpillway({ tools: [echo] });
const file = await ndjsonSink(path, {
  retryMs: 10,
  ...(maxFileBytes === undefined ? {} : { maxFileBytes: Number(maxFileBytes) }),
});
spillway.trace$.subscribe(file);
const work = async (): Promise<void> => {
  for (let n = 0; n < Number(calls); n++) {
    await spillway.execute({ toolName: 'echo', input: n });
    if (n % 50 === 0)
      await new Promise((resolve) => {
        setTimeout(resolve, 1);
      });
  }
};
await work();
if (again === 'again') {
  await file.flush();
  execFileSync('prlimit', [`--pid=${process.pid}`, '--fsize=unlimited']);
  await work();
}
const { written, dropped, error } = await file.close();
process.stdout.write(JSON.stringify({ written, dropped, code: errorCode(error) }));
