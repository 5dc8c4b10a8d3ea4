const NEWLINE = 10;
/** So much is kept of both ends of a line that is too long: enough to see which request it answers. */
const EDGE_BYTES = 512;

/** A line that is longer than what is read. */
export interface LongLine {
  readonly bytes: number;
  readonly head: string;
  readonly tail: string;
}

const edgesOf = (parts: readonly Buffer[]): Buffer[] => {
  const whole = Buffer.concat(parts);
  // Copies, so that the rest is not kept.
  return [Buffer.from(whole.subarray(0, EDGE_BYTES)), Buffer.from(whole.subarray(-EDGE_BYTES))];
};

/**
 * Makes lines of a stream's chunks. The parts of a line are joined once, when it ends, so that a long one costs no more
 * a byte than a short one; of one that is too long only the ends are kept.
 */
export class LineReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  /** @param maxBytes the longest line that is given whole: more than a kilobyte */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How long the line is that has not ended. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Takes what was read; gives the lines that end in it. */
  *read(chunk: Buffer): Generator<string | LongLine> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, end));
      from = end + 1;
      yield this.#ended();
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  clear(): void {
    this.#parts = [];
    this.#bytes = 0;
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#bytes > this.#maxBytes) this.#parts = edgesOf(this.#parts);
  }

  #ended(): string | LongLine {
    const [parts, bytes] = [this.#parts, this.#bytes];
    this.clear();
    if (bytes <= this.#maxBytes) return Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
    const [head = '', tail = ''] = parts.map((part) => part.toString('utf8'));
    return { bytes, head, tail };
  }
}
