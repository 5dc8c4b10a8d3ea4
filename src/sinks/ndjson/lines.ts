import type { Runtime } from '../../contract/runtime.ts';
import { VERSION } from '../../contract/version.ts';

/**
 * The format of the lines, which the first line of a file tells. It grows when a reader of this one could not read
 * them.
 */
const FORMAT = 1;

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/**
 * A value as one line of JSON. What JSON lets through and a terminal would obey, or not show, is escaped: control,
 * direction and invisible characters.
 */
export function ndjsonLine(value: unknown): string {
  const json = JSON.stringify(value);
  // Most lines are printable ASCII.
  return `${/[^ -~]/.test(json) ? json.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped) : json}\n`;
}

/**
 * The first line of a file: its format, the version of spillway that wrote it, and when it began, by the wall (`time`)
 * and by the clock of its events (`atMs`), so that a reader can tell the time of an event.
 *
 * @param before what the lines of the part come to that this one goes on from
 */
export function ndjsonHeader(runtime: Runtime, before?: string): string {
  const time = new Date(runtime.wallNow()).toISOString();
  return ndjsonLine({
    format: FORMAT,
    source: 'sink',
    type: 'file_started',
    version: VERSION,
    time,
    atMs: runtime.now(),
    before,
  });
}

/** The last line of a closed file: nothing behind it was cut off; with a digest, nothing before it has changed. */
export const ndjsonEnd = (lastSeq: number, digest: string | undefined): string =>
  ndjsonLine({ source: 'sink', type: 'file_ended', lastSeq, digest });
