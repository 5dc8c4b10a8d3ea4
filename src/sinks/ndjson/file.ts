import type { FileHandle } from 'node:fs/promises';
import type { Runtime } from '../../contract/runtime.ts';
import { DIGEST_DIGITS, LinesDigest } from './digest.ts';
import { HEADER_BYTES, beganAtMs, isSame, isTorn, openToAppend, statAt } from './handle.ts';
import { moveAway, trimRotated } from './rotation.ts';

/** What a file may become, and what is told of it. */
export interface LineFileOptions {
  readonly maxFileBytes: number;
  readonly maxFileAgeMs: number;
  /** Of the file and what was rotated away from it. */
  readonly maxFolderBytes: number;
  /** How long after a failure a reopening or a rotation is tried again. */
  readonly retryMs: number;
  readonly runtime: Runtime;
  /** The first line of a part that begins now; what the part before it came to, if the next line goes on from it. */
  readonly header: (before: string | undefined) => Buffer;
  /** What follows the header, where there is room: what the lines so far told that those of a new part rely on. */
  readonly again: () => Buffer;
  /** Told what has arrived, line by line. */
  readonly onArrived: (lines: readonly Buffer[]) => void;
  /** Told each failure of the file system; `undefined` when what failed works again. */
  readonly onOutcome: (of: FileWork, error: Error | undefined) => void;
}

/** What can fail, each for reasons of its own. */
export type FileWork = 'write' | 'reopen' | 'rotate' | 'trim' | 'close';

const NEWLINE = 10;
/** What is written in one go: lines are copied together for it. */
const WRITE_BYTES = 2 ** 20;
/** What stands at the head of a part once more may be so much of a file: it is there for the rest. */
const AGAIN_SHARE = 1 / 4;
const NOTHING = Buffer.alloc(0);

const errorOf = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/**
 * A file that takes whole lines at its end. It begins with a header, is reopened and rotated between lines, and notices
 * between writes that it was truncated or deleted. What it is asked for is done one after the other.
 */
export class LineFile {
  readonly #path: string;
  readonly #options: LineFileOptions;
  #file: FileHandle;
  /** As of the last look. */
  #size = 0;
  #beganAtMs: number | undefined;
  /** The file ends within a line: the next one starts anew. */
  #torn = false;
  /** The header of this opening is in the file. */
  #headed = false;
  /** Of what was written from the last header on; absent where what is in the file is not all from here. */
  #digest: LinesDigest | undefined;
  #reopenDue = false;
  /** Before this time a reopening or a rotation that failed is not tried again. */
  #restsUntilMs = -Infinity;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(path: string, file: FileHandle, options: LineFileOptions) {
    this.#path = path;
    this.#file = file;
    this.#options = options;
  }

  /** @throws the error of the file system when the file cannot be opened */
  static async open(path: string, options: LineFileOptions): Promise<LineFile> {
    const file = await openToAppend(path);
    const lines = new LineFile(path, file, options);
    try {
      await lines.#adopt(file);
    } catch (error) {
      await file.close();
      throw error;
    }
    await lines.#trim(0);
    return lines;
  }

  /** Writes lines; those that did not arrive whole come after those that did. */
  append(lines: readonly Buffer[]): Promise<{ readonly arrived: number; readonly complete: boolean }> {
    return this.#inTurn(async () => {
      let arrived = 0;
      while (arrived < lines.length) {
        try {
          await this.#prepare(lines[arrived]?.length ?? 0);
          const head = this.#headFor(lines[arrived]?.length ?? 0);
          const chunk = this.#chunkOf(lines, arrived, head.length);
          const whole = await this.#write(chunk, head);
          this.#options.onArrived(chunk.slice(0, whole));
          arrived += whole;
          if (whole < chunk.length) return { arrived, complete: false };
        } catch (error) {
          this.#options.onOutcome('write', errorOf(error));
          return { arrived, complete: false };
        }
      }
      this.#options.onOutcome('write', undefined);
      return { arrived, complete: true };
    });
  }

  /**
   * Goes on in what is at the path now, as after it was renamed. What cannot be opened leaves everything as it is, and
   * is tried again.
   */
  reopen(): Promise<void> {
    return this.#inTurn(() => this.#reopen());
  }

  /** Writes a last line, which says what the lines since the header come to, if that is known, and closes the file. */
  close(lastLine?: (digest: string | undefined) => Buffer): Promise<void> {
    return this.#inTurn(async () => {
      if (lastLine !== undefined) await this.#attempt('write', () => this.#end(lastLine));
      await this.#attempt('close', () => this.#file.close());
    });
  }

  async #end(lastLine: (digest: string | undefined) => Buffer): Promise<void> {
    const bytes = lastLine('0'.repeat(DIGEST_DIGITS)).length;
    await this.#prepare(bytes);
    // What is due before the line belongs to what it tells of: a header, or the end of a torn line.
    await this.#write([], this.#headFor(bytes));
    if (this.#headed && !this.#torn) await this.#write([lastLine(this.#digest?.text)], NOTHING);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Takes a file that was just opened for its own. */
  async #adopt(file: FileHandle): Promise<void> {
    const stats = await file.stat();
    const size = stats.isFile() ? stats.size : 0;
    const torn = await isTorn(file, size);
    this.#beganAtMs = stats.isFile() ? await beganAtMs(file, stats) : undefined;
    this.#file = file;
    this.#size = size;
    this.#torn = torn;
    this.#headed = false;
  }

  /** Opens the path anew, and only then lets go of what was open. */
  async #replace(): Promise<void> {
    const before = this.#file;
    const file = await openToAppend(this.#path);
    try {
      await this.#adopt(file);
    } catch (error) {
      await file.close();
      throw error;
    }
    await before.close();
  }

  async #attempt(of: FileWork, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.#options.onOutcome(of, undefined);
      return true;
    } catch (error) {
      this.#options.onOutcome(of, errorOf(error));
      return false;
    }
  }

  async #reopen(): Promise<void> {
    const reopened = await this.#attempt('reopen', async () => {
      const [there, open] = await Promise.all([statAt(this.#path), this.#file.stat()]);
      if (there === undefined || !isSame(there, open)) await this.#replace();
    });
    this.#reopenDue = !reopened;
    if (!reopened) this.#rest();
  }

  #rest(): void {
    const { runtime, retryMs } = this.#options;
    this.#restsUntilMs = runtime.now() + retryMs;
  }

  /** Looks at the file before something is written, and makes room for a line of so many bytes. */
  async #prepare(nextBytes: number): Promise<void> {
    const { runtime, maxFileBytes, maxFileAgeMs } = this.#options;
    const rests = runtime.now() < this.#restsUntilMs;
    let stats = await this.#file.stat();
    if (!stats.isFile()) return;
    if ((stats.nlink === 0 || this.#reopenDue) && !rests) {
      await this.#reopen();
      stats = await this.#file.stat();
    }
    // Shorter than it was: somebody has copied it and cut it off.
    if (stats.size < this.#size) {
      this.#torn = await isTorn(this.#file, stats.size);
      this.#headed = false;
      this.#beganAtMs = undefined;
    }
    // Somebody else has written here, too.
    if (stats.size !== (this.#headed ? this.#size : 0)) this.#digest = undefined;
    this.#size = stats.size;
    const ageMs = this.#beganAtMs === undefined ? 0 : runtime.wallNow() - this.#beganAtMs;
    const full = this.#size + nextBytes + (this.#headed ? 0 : HEADER_BYTES) > maxFileBytes;
    if (this.#size > 0 && !rests && (full || ageMs >= maxFileAgeMs)) await this.#rotate();
    if (nextBytes + HEADER_BYTES > maxFileBytes) await this.#trim(nextBytes + HEADER_BYTES);
  }

  async #rotate(): Promise<void> {
    const rotated = await this.#attempt('rotate', async () => {
      const [there, open] = await Promise.all([statAt(this.#path), this.#file.stat()]);
      // Somebody else may have moved it already.
      const isOurs = there !== undefined && isSame(there, open);
      if (isOurs) await moveAway(this.#path, this.#options.runtime.wallNow());
      await this.#replace();
    });
    if (rotated) await this.#trim(0);
    else this.#rest();
  }

  /** Deletes what was rotated away and has no room beside a file that grows as it may. */
  async #trim(nextBytes: number): Promise<void> {
    const { maxFolderBytes, maxFileBytes } = this.#options;
    if (maxFolderBytes === Infinity) return;
    const left = maxFolderBytes - Math.max(maxFileBytes, nextBytes);
    await this.#attempt('trim', () => trimRotated(this.#path, left));
  }

  /** What is due before a line of so many bytes: nothing, where the header of this opening is in the file. */
  #headFor(nextBytes: number): Buffer {
    if (this.#headed) return NOTHING;
    const { header, again, maxFileBytes } = this.#options;
    const first = header(this.#digest?.text);
    const second = again();
    const room = Math.min(maxFileBytes * AGAIN_SHARE, maxFileBytes - this.#size - first.length - nextBytes);
    return second.length > room ? first : Buffer.concat([first, second]);
  }

  /** As many lines as go into the file behind its head, one at least. */
  #chunkOf(lines: readonly Buffer[], from: number, headBytes: number): readonly Buffer[] {
    const room = Math.min(WRITE_BYTES, this.#options.maxFileBytes - this.#size - headBytes);
    let to = from;
    let bytes = 0;
    do bytes += lines[to++]?.length ?? 0;
    while (to < lines.length && bytes + (lines[to]?.length ?? 0) <= room);
    return lines.slice(from, to);
  }

  /** How many of the lines are in the file, whole. */
  async #write(lines: readonly Buffer[], head: Buffer): Promise<number> {
    const { onOutcome, runtime } = this.#options;
    const start = Buffer.from(this.#torn ? '\n' : '');
    const digest = this.#headed ? this.#digest : new LinesDigest();
    const all = Buffer.concat([start, head, ...lines]);
    let place = 0;
    try {
      while (place < all.length) {
        const { bytesWritten } = await this.#file.write(all, place, all.length - place);
        if (bytesWritten === 0) throw new Error('the file takes no more bytes');
        place += bytesWritten;
      }
    } catch (error) {
      onOutcome('write', errorOf(error));
    }
    if (place === 0) return 0;
    this.#torn = all[place - 1] !== NEWLINE;
    this.#size += place;
    let left = place - start.length - head.length;
    if (left < 0) return 0;
    digest?.take(all.subarray(this.#headed ? 0 : start.length, place));
    this.#digest = digest;
    this.#headed = true;
    this.#beganAtMs ??= runtime.wallNow();
    // Lines that arrived whole are there, also when those after them are not.
    const arrived = lines.findIndex((line) => (left -= line.length) < 0);
    return arrived === -1 ? lines.length : arrived;
  }
}
