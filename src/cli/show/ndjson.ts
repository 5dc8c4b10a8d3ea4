import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { TraceEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { LinesDigest } from '../../sinks/ndjson/digest.ts';
import { ndjsonEnd, ndjsonHeader, ndjsonLine } from '../../sinks/ndjson.ts';

/** A file that takes a line for each event. */
export interface NdjsonFile {
  write(event: TraceEvent): void;
  /** Resolves when all is written; with an error when something was not. */
  close(): Promise<Error | undefined>;
}

/**
 * Opens a file for NDJSON, which begins with a header and ends with what it came to; what was in it is gone.
 * @throws the error of the file system when it cannot be opened
 */
export async function openNdjson(path: string, runtime: Runtime): Promise<NdjsonFile> {
  const stream = createWriteStream(path);
  await once(stream, 'open');
  let failure: Error | undefined;
  // A full disk loses the trace, not the turn.
  stream.on('error', (error) => (failure ??= error));
  const digest = new LinesDigest();
  let lastSeq: number | undefined;
  const take = (line: string): void => {
    digest.take(Buffer.from(line));
    stream.write(line);
  };
  take(ndjsonHeader(runtime));
  return {
    write: (event) => {
      if (failure !== undefined) return;
      lastSeq = event.seq;
      take(ndjsonLine(event));
    },
    close: async () => {
      if (lastSeq !== undefined && failure === undefined) stream.write(ndjsonEnd(lastSeq, digest.text));
      stream.end();
      await finished(stream).catch(() => undefined);
      return failure;
    },
  };
}
