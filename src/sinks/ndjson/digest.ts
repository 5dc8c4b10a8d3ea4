import { createHash } from 'node:crypto';

/** Enough that no two files come to one by chance. */
export const DIGEST_DIGITS = 32;

/**
 * What the lines of one part of a file come to: from a header on, itself among them. It begins anew at each header, so
 * that a part is right or wrong by itself, whatever file it is in: another process's, or one of its own after rotation.
 */
export class LinesDigest {
  readonly #hash = createHash('sha256');

  /** @param bytes as they are in the file */
  take(bytes: Buffer): void {
    this.#hash.update(bytes);
  }

  /** @param line without its end; a carriage return, which some tools put in, is left out */
  takeLine(line: Buffer): void {
    this.take(line.at(-1) === 13 ? line.subarray(0, -1) : line);
    this.#hash.update('\n');
  }

  get text(): string {
    return this.#hash.copy().digest('hex').slice(0, DIGEST_DIGITS);
  }
}

/**
 * Whether the parts of a file are what was written. A part is closed by its last line, or by the header of the next
 * one, where the same sink has written both; one that neither closes, as after a kill, leaves it open.
 */
export class PartsCheck {
  #digest: LinesDigest | undefined;
  #closed = false;
  #changed: boolean | undefined = false;

  /** @param line a header, or any line but a last one; `undefined` for one too long to be looked at */
  line(line: Buffer | undefined, header?: { readonly before?: unknown }): void {
    if (header !== undefined) {
      if (this.#digest !== undefined && !this.#closed) this.#close(header.before);
      this.#digest = undefined;
    }
    if (line === undefined) this.#changed = undefined;
    this.#digest ??= new LinesDigest();
    this.#digest.takeLine(line ?? Buffer.alloc(0));
    this.#closed = false;
  }

  /** @param digest as the last line says it; `undefined` from a version that did not */
  end(digest: unknown): void {
    this.#close(digest);
    this.#closed = true;
  }

  /** Absent where nobody can say. */
  get changed(): boolean | undefined {
    return this.#closed ? this.#changed : undefined;
  }

  #close(digest: unknown): void {
    if (typeof digest !== 'string') this.#changed = undefined;
    else if (this.#changed === false) this.#changed = digest !== this.#digest?.text;
  }
}
