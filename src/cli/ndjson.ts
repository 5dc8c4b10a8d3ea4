import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

/** A value as one line of JSON. Control characters that JSON lets through are escaped: a terminal would obey them. */
export function ndjsonLine(value: unknown): string {
  const json = JSON.stringify(value).replaceAll(/[\u007f-\u009f\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `${json}\n`;
}

/** A file that takes a line for each value. */
export interface NdjsonFile {
  write(value: unknown): void;
  /** Resolves when all is written; with an error when something was not. */
  close(): Promise<Error | undefined>;
}

/**
 * Opens a file for NDJSON; what was in it is gone.
 * @throws the error of the file system when it cannot be opened
 */
export async function openNdjson(path: string): Promise<NdjsonFile> {
  const stream = createWriteStream(path);
  await once(stream, 'open');
  let failure: Error | undefined;
  // A full disk loses the trace, not the turn.
  stream.on('error', (error) => (failure ??= error));
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
