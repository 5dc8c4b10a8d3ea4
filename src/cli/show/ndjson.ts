import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Runtime } from '../../contract/runtime.ts';
import { ndjsonHeader, ndjsonLine } from '../../sinks/ndjson.ts';

/** A file that takes a line for each value. */
export interface NdjsonFile {
  write(value: unknown): void;
  /** Resolves when all is written; with an error when something was not. */
  close(): Promise<Error | undefined>;
}

/**
 * Opens a file for NDJSON, which begins with a header; what was in it is gone.
 * @throws the error of the file system when it cannot be opened
 */
export async function openNdjson(path: string, runtime: Runtime): Promise<NdjsonFile> {
  const stream = createWriteStream(path);
  await once(stream, 'open');
  let failure: Error | undefined;
  // A full disk loses the trace, not the turn.
  stream.on('error', (error) => (failure ??= error));
  stream.write(ndjsonHeader(runtime));
  return {
    write: (value) => {
      if (failure === undefined) stream.write(ndjsonLine(value));
    },
    close: async () => {
      stream.end();
      await finished(stream).catch(() => undefined);
      return failure;
    },
  };
}
