import { chunksOf } from './anthropic-response.ts';

const LF = 0x0a;
const CR = 0x0d;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** One server-sent event as it came, to the byte. */
export class SseEvent {
  readonly raw: Uint8Array;
  /** Whether it was ended by an empty line; the last one of a stream that was broken off is not. */
  readonly whole: boolean;

  constructor(raw: Uint8Array, whole: boolean) {
    this.raw = raw;
    this.whole = whole;
  }

  /** What its `data` lines hold. */
  get data(): string {
    const lines = decoder.decode(this.raw).split(/\r\n|\n|\r/);
    return lines
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice(line.charAt(5) === ' ' ? 6 : 5))
      .join('\n');
  }
}

/** Bytes in one piece. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (only !== undefined && pieces.length === 1) return only;
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Cuts a stream of bytes into events. The bytes of all events joined are the bytes of the stream. */
export class SseSplitter {
  #pieces: Uint8Array[] = [];
  /** The line that is being read has something in it. */
  #lineFilled = false;
  #afterCr = false;
  /** An empty line has ended the event; a `\n` may still belong to its `\r`. */
  #ended = false;
  #eventFilled = false;

  /** The events that a chunk completes. Each byte is looked at once. */
  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      const isSecondHalf = byte === LF && this.#afterCr;
      if (this.#ended && !isSecondHalf) {
        events.push(this.#cut(chunk.subarray(from, at), true));
        from = at;
      }
      this.#afterCr = byte === CR;
      if (isSecondHalf) continue;
      if (byte === LF || byte === CR) {
        // Empty lines before an event belong to it.
        if (!this.#lineFilled && this.#eventFilled) this.#ended = true;
        this.#lineFilled = false;
      } else {
        this.#lineFilled = true;
        this.#eventFilled = true;
      }
    }
    // `\n\n` ends it for sure: it need not wait for the next chunk.
    if (this.#ended && !this.#afterCr) {
      events.push(this.#cut(chunk.subarray(from), true));
      from = chunk.length;
    }
    if (from < chunk.length) this.#pieces.push(chunk.subarray(from));
    return events;
  }

  /** What is left when the stream ends. */
  rest(): SseEvent | undefined {
    if (this.#pieces.length === 0) return undefined;
    const whole = this.#ended;
    return this.#cut(new Uint8Array(0), whole);
  }

  #cut(last: Uint8Array, whole: boolean): SseEvent {
    const raw = joinBytes(last.length === 0 ? this.#pieces : [...this.#pieces, last]);
    this.#pieces = [];
    this.#ended = false;
    this.#eventFilled = false;
    this.#lineFilled = false;
    return new SseEvent(raw, whole);
  }
}

/** An event of the Messages API as bytes. */
export const sseBytes = (type: string, data: string): Uint8Array => encoder.encode(`event: ${type}\ndata: ${data}\n\n`);

/** Keeps a stream alive while nothing is said; clients pass over it. */
export const PING: Uint8Array = sseBytes('ping', '{"type":"ping"}');

/**
 * Reads a body, chunk by chunk, as the events that each chunk completes; with backpressure.
 * @throws what the body throws
 */
export async function* sseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly SseEvent[], void, undefined> {
  const splitter = new SseSplitter();
  for await (const chunk of chunksOf(body)) {
    const events = splitter.push(chunk);
    if (events.length > 0) yield events;
  }
  const rest = splitter.rest();
  if (rest !== undefined) yield [rest];
}
