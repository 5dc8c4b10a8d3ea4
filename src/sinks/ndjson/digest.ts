import { createHash } from 'node:crypto';

/** Enough that no two files come to one by chance. */
const HEX_DIGITS = 32;

/**
 * What the lines of a file come to: those of events, and those that say how many were lost, in their order. Headers are
 * left out, since a file that is rotated away has one more; so is a carriage return, which some tools put in.
 */
export class LinesDigest {
  readonly #hash = createHash('sha256');

  /** @param line bytes with the line's end, or a text without it */
  take(line: Buffer | string): void {
    const text = typeof line === 'string' ? `${line.replace(/\r$/, '')}\n` : line;
    this.#hash.update(text);
  }

  get text(): string {
    return this.#hash.copy().digest('hex').slice(0, HEX_DIGITS);
  }
}
