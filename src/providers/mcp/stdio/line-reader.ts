/** The longest message that the SDK takes by default. */
export const MESSAGE_BYTES: number = 10 * 1024 * 1024;

const NEWLINE = 10;
/** So much is kept of both ends of a line that is too long: enough to see which request it answers. */
const EDGE_BYTES = 512;
const NOTHING = Buffer.alloc(0);

/** A line that is longer than what is read. */
export interface LongLine {
  readonly bytes: number;
  readonly head: string;
  readonly tail: string;
}

/**
 * Makes lines of a stream's chunks. What has come of a line is held in a buffer that doubles, so that a long one costs
 * no more a byte than a short one, in however small chunks it comes; of one that is too long only the ends are kept.
 */
export class LineReader {
  readonly #maxBytes: number;
  /** The line so far, and room for more; of one that is too long, its beginning. */
  #held = NOTHING;
  #bytes = 0;
  #tail = NOTHING;

  /** @param maxBytes the longest line that is given whole: a kilobyte at least */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How long the line is that has not ended. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Takes what was read; gives the lines that end in it, without their newline. */
  *read(chunk: Buffer): Generator<Buffer | LongLine> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const part = chunk.subarray(from, end);
      from = end + 1;
      const isWhole = this.#bytes === 0 && part.length <= this.#maxBytes;
      yield isWhole ? part : this.#endedBy(part);
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  clear(): void {
    this.#held = NOTHING;
    this.#bytes = 0;
    this.#tail = NOTHING;
  }

  #add(part: Buffer): void {
    const before = this.#bytes;
    this.#bytes += part.length;
    if (this.#bytes <= this.#maxBytes) return this.#keep(part, before);
    if (before <= this.#maxBytes) {
      const whole = Buffer.concat([this.#held.subarray(0, before), part]);
      // A copy, so that the rest is not kept.
      this.#held = Buffer.from(whole.subarray(0, EDGE_BYTES));
      this.#tail = whole;
    } else this.#tail = Buffer.concat([this.#tail, part]);
    this.#tail = Buffer.from(this.#tail.subarray(-EDGE_BYTES));
  }

  #keep(part: Buffer, before: number): void {
    if (this.#bytes > this.#held.length) {
      const roomier = Buffer.allocUnsafe(Math.min(this.#maxBytes, this.#bytes * 2));
      this.#held.copy(roomier, 0, 0, before);
      this.#held = roomier;
    }
    part.copy(this.#held, before);
  }

  #endedBy(part: Buffer): Buffer | LongLine {
    this.#add(part);
    const [held, bytes, tail] = [this.#held, this.#bytes, this.#tail];
    this.clear();
    if (bytes <= this.#maxBytes) return held.subarray(0, bytes);
    return { bytes, head: held.toString('utf8'), tail: tail.toString('utf8') };
  }
}
