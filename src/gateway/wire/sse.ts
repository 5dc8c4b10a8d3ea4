import { joinBytes } from './bytes.ts';

const LF = 0x0a;
const CR = 0x0d;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What most events of an answer begin with, written by a program that writes them all alike. */
const DELTA = encoder.encode('event: content_block_delta\ndata: {"type":"content_block_delta","index":');
const ZERO = 0x30;
const NINE = 0x39;
const COMMA = 0x2c;

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

  /** Its data as JSON; `undefined` for a comment, or for nothing that we know. */
  get value(): unknown {
    try {
      return JSON.parse(this.data) as unknown;
    } catch {
      return undefined;
    }
  }

  /** Of a whole `content_block_delta` in the usual spelling: its block's index, found without reading the rest. */
  get deltaIndex(): number | undefined {
    const { raw, whole } = this;
    if (!whole) return undefined;
    for (let at = 0; at < DELTA.length; at++) if (raw[at] !== DELTA[at]) return undefined;
    const end = this.#indexEnd();
    if (end === DELTA.length || raw[end] !== COMMA) return undefined;
    let index = 0;
    for (let at = DELTA.length; at < end; at++) index = index * 10 + (raw[at] ?? 0) - ZERO;
    return index;
  }

  /** An event that has a `deltaIndex`, with another one. */
  withDeltaIndex(index: number): Uint8Array {
    return joinBytes([DELTA, encoder.encode(String(index)), this.raw.subarray(this.#indexEnd())]);
  }

  #indexEnd(): number {
    let end = DELTA.length;
    for (let byte = this.raw[end] ?? 0; byte >= ZERO && byte <= NINE; byte = this.raw[end] ?? 0) end++;
    return end;
  }
}

/** Whether bytes end with `\n\n`, which ends an event for sure. */
const endsEvent = (bytes: Uint8Array): boolean => bytes[bytes.length - 1] === LF && bytes[bytes.length - 2] === LF;

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
    let lineFilled = this.#lineFilled;
    let afterCr = this.#afterCr;
    let ended = this.#ended;
    let eventFilled = this.#eventFilled;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      const isSecondHalf = byte === LF && afterCr;
      if (ended && !isSecondHalf) {
        events.push(this.#cut(chunk.subarray(from, at), true));
        from = at;
        lineFilled = false;
        ended = false;
        eventFilled = false;
      }
      afterCr = byte === CR;
      if (isSecondHalf) continue;
      if (byte === LF || byte === CR) {
        // Empty lines before an event belong to it.
        if (!lineFilled && eventFilled) ended = true;
        lineFilled = false;
      } else {
        lineFilled = true;
        eventFilled = true;
      }
    }
    // `\n\n` ends it for sure: it need not wait for the next chunk.
    if (ended && !afterCr) {
      events.push(this.#cut(chunk.subarray(from), true));
      from = chunk.length;
      ended = false;
      eventFilled = false;
    }
    if (from < chunk.length) this.#pieces.push(chunk.subarray(from));
    this.#lineFilled = lineFilled;
    this.#afterCr = afterCr;
    this.#ended = ended;
    this.#eventFilled = eventFilled;
    return events;
  }

  /** The same as bytes, for who need not know what the events say: those that a chunk completes, in one piece. */
  pass(chunk: Uint8Array): Uint8Array {
    // The usual case: what has come is whole.
    return this.#pieces.length === 0 && endsEvent(chunk) ? chunk : joinBytes(this.push(chunk).map(({ raw }) => raw));
  }

  /** What is left when the stream ends. */
  rest(): SseEvent | undefined {
    return this.#pieces.length === 0 ? undefined : this.#cut(new Uint8Array(0), this.#ended);
  }

  #cut(last: Uint8Array, whole: boolean): SseEvent {
    const raw = joinBytes(last.length === 0 ? this.#pieces : [...this.#pieces, last]);
    this.#pieces = [];
    return new SseEvent(raw, whole);
  }
}

/** An event of the Messages API as bytes. */
export const sseBytes = (type: string, data: string): Uint8Array => encoder.encode(`event: ${type}\ndata: ${data}\n\n`);

/** Keeps a stream alive while nothing is said; clients pass over it. */
export const PING: Uint8Array = sseBytes('ping', '{"type":"ping"}');
