import { createReadStream } from 'node:fs';
import type { TraceEvent } from '../../contract/event.ts';
import { isToldAgain } from '../../inspect/told-again.ts';
import { checkKeys, checkNumber, integer } from '../../policy/check.ts';
import { PartsCheck } from './digest.ts';

/** A line that is not among the events. */
export interface LeftOut {
  /** The number of the line, counted from 1. */
  readonly line: number;
  /**
   * Why it was left out. `torn`: the last line, which has no end. `not_json`, `not_an_event`, `too_long`: what the line
   * is.
   */
  readonly why: 'torn' | 'not_json' | 'not_an_event' | 'too_long';
}

/** The events of a file, and what could not be read of it. */
export interface NdjsonTrace {
  /** The events, in the order of the file. */
  readonly events: readonly TraceEvent[];
  /** The lines that were left out; the first 1,000 of them. */
  readonly leftOut: readonly LeftOut[];
  /** How many lines were left out. */
  readonly leftOutCount: number;
  /**
   * The `seq` of the last event, as the file says itself since its sink was closed; absent where it is still written,
   * its process was killed, or its end was cut off.
   */
  readonly lastSeq?: number;
  /**
   * Whether the lines are not those that its sinks wrote: one was changed, moved, taken out or put in. Absent where the
   * file does not say what they were: without a last line, where a process that went on in it found the one before
   * killed or still writing, or from a version that wrote less into it.
   */
  readonly changed?: boolean;
  /** How many events were lost before they were written, as the file itself says. */
  readonly dropped: number;
}

/** How a file is read. */
export interface ReadNdjsonOptions {
  /** The longest line that is read, in bytes; a longer one is left out. Default 64 MiB. */
  readonly maxLineBytes?: number;
}

const LEFT_OUT_MAX = 1_000;
const NEWLINE = 10;
/** Some editors begin a file with it. */
const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
/**
 * The first line of a file, and of each process that went on in it. One of a format that is not this one's is left out,
 * which tells of it.
 */
const isHeader = (value: unknown): value is { readonly before?: unknown } =>
  isObject(value) && value['format'] === 1 && value['source'] === 'sink' && value['type'] === 'file_started';
/** The last line of a sink that was closed. */
const endIn = (value: unknown): { readonly lastSeq: number; readonly digest?: unknown } | undefined => {
  if (!isObject(value) || value['source'] !== 'sink' || value['type'] !== 'file_ended') return undefined;
  const { lastSeq, digest } = value;
  return typeof lastSeq === 'number' ? { lastSeq, digest } : undefined;
};
/** How many events a note says were lost. */
const lossIn = (value: unknown): number | undefined =>
  isObject(value) && value['source'] === 'sink' && typeof value['count'] === 'number' ? value['count'] : undefined;
const isEvent = (value: unknown): value is TraceEvent =>
  isObject(value) &&
  ['call', 'turn', 'layer'].some((source) => source === value['source']) &&
  typeof value['type'] === 'string' &&
  typeof value['seq'] === 'number' &&
  typeof value['atMs'] === 'number';

/** The lines of a stream of bytes, as `undefined` those that are too long; whether the last one had an end. */
async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<{ readonly bytes: Buffer | undefined; readonly ended: boolean }, void, undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  const taken = (): Buffer | undefined => {
    const line = bytes > maxLineBytes ? undefined : Buffer.concat(parts);
    parts = [];
    bytes = 0;
    return line;
  };
  const take = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= maxLineBytes) parts.push(part);
    else parts = [];
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end));
      yield { bytes: taken(), ended: true };
      start = end + 1;
    }
    if (start < chunk.length) take(chunk.subarray(start));
  }
  if (bytes > 0) yield { bytes: taken(), ended: false };
}

const withoutMark = (line: Buffer | undefined): Buffer | undefined =>
  line?.indexOf(BYTE_ORDER_MARK) === 0 ? line.subarray(BYTE_ORDER_MARK.length) : line;

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
};

/**
 * Reads what `ndjsonSink` wrote, with its header or without, and says what it had to leave out: after a kill the last
 * line may be torn. A part of a rotated file begins with the policies as its sink had heard them, a `layer_started`
 * with `again`; of parts that were put together only the first one's is among the events.
 *
 * @param path the file
 * @param options the longest line
 * @throws RangeError for an option out of range; the error of the file system when the file cannot be read
 *
 * @example
 * const { events, leftOut, dropped } = await readNdjson('trace.ndjson');
 */
export async function readNdjson(path: string, options: ReadNdjsonOptions = {}): Promise<NdjsonTrace> {
  checkKeys('readNdjson', options, ['maxLineBytes']);
  const { maxLineBytes = 64 * 2 ** 20 } = options;
  checkNumber('maxLineBytes', maxLineBytes, integer(1, 2 ** 29));
  const events: TraceEvent[] = [];
  const leftOut: LeftOut[] = [];
  let leftOutCount = 0;
  let dropped = 0;
  let end: ReturnType<typeof endIn>;
  const parts = new PartsCheck();
  let line = 0;
  const leave = (why: LeftOut['why']): void => {
    leftOutCount++;
    if (leftOut.length < LEFT_OUT_MAX) leftOut.push({ line, why });
  };
  for await (const { bytes: read, ended } of linesOf(createReadStream(path) as AsyncIterable<Buffer>, maxLineBytes)) {
    line++;
    const bytes = line === 1 ? withoutMark(read) : read;
    const text = bytes?.toString('utf8');
    if (text?.trim() === '') continue;
    const json = text === undefined ? undefined : parsed(text);
    const header = isHeader(json?.value) ? json.value : undefined;
    end = endIn(json?.value);
    if (end === undefined) parts.line(bytes, header);
    else parts.end(end.digest);
    if (end !== undefined || header !== undefined) continue;
    if (text === undefined) leave('too_long');
    else if (json === undefined) leave(ended ? 'not_json' : 'torn');
    else if (isEvent(json.value)) {
      if (!isToldAgain(json.value, events.at(-1))) events.push(json.value);
    } else if (lossIn(json.value) === undefined) leave('not_an_event');
    dropped += lossIn(json?.value) ?? 0;
  }
  return { events, leftOut, leftOutCount, dropped, ...saidAtTheEnd(end, parts) };
}

/** What the file says of itself in its last lines, and whether it is so. */
const saidAtTheEnd = (
  end: ReturnType<typeof endIn>,
  { changed }: PartsCheck,
): Pick<NdjsonTrace, 'lastSeq' | 'changed'> => ({
  ...(end === undefined ? {} : { lastSeq: end.lastSeq }),
  ...(changed === undefined ? {} : { changed }),
});
