import { open, stat, type FileHandle } from 'node:fs/promises';
import { repeat, share, type Observable } from 'rxjs';
import type { TraceEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { redactorOf } from '../../policy/redact/values.ts';
import { PIECE_BYTES, newRun, type LineSource, type Piece } from './event-log.ts';

/** How often a file is looked at: a person follows it. */
const LOOK_MS = 200;
const LINE_BYTES_MAX = 64 * 2 ** 20;
const NEWLINE = 10;
/** A file that has told nothing for so long is one that was written before. */
const LIVE_MS = 60_000;
/** Files of the name that are kept open: who lags behind reads an old one to its end. */
const FILES_MAX = 4;
/** So many bytes before the end tell a file that only grew from one that was cut off and has grown past that end. */
const TAIL_BYTES = 64;
/** A place is the number of a file of that name, and the offset in it. */
const FILE_PLACES = 1e12;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isEvent = (value: Readonly<Record<string, unknown>>): boolean =>
  ['call', 'turn', 'layer'].includes(String(value['source'])) &&
  typeof value['type'] === 'string' &&
  typeof value['seq'] === 'number' &&
  typeof value['atMs'] === 'number';

/** One file of the name, while it has it and after that. */
interface OpenFile {
  readonly handle: FileHandle;
  /** It was cut off, and nothing of what was in it can be read any more. */
  isGone: boolean;
  size: number;
  /** What stood before `size`. */
  tail: Buffer;
}

const opened = (handle: FileHandle): OpenFile => ({ handle, isGone: false, size: 0, tail: Buffer.alloc(0) });

const bytesOf = async (handle: FileHandle, length: number, end: number): Promise<Buffer> => {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length);
  return buffer.subarray(0, bytesRead);
};

/**
 * A file of `ndjsonSink` or `spillway run --trace`, which may grow, be rotated away under another name, or be cut off.
 * What looks like a secret is taken out once more.
 */
export class TraceFile implements LineSource {
  readonly run: string = newRun();
  readonly more$: Observable<unknown>;
  readonly isOver: boolean = false;
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #redact = redactorOf().show;
  /** The files that the name has had; of those before the last ones nothing is kept. */
  readonly #files: OpenFile[];
  #forgotten = 0;
  #looking: Promise<void> | undefined;
  /** What the clock of the events is behind the wall, by the header that was written last. */
  #behindMs: number | undefined;
  #headedMs = -Infinity;
  #lastMs = -Infinity;

  private constructor(path: string, handle: FileHandle, runtime: Runtime) {
    this.#path = path;
    this.#files = [opened(handle)];
    this.#runtime = runtime;
    this.more$ = (runtime.background ?? runtime).after(LOOK_MS).pipe(repeat(), share());
  }

  /** @throws the error of the file system when it cannot be opened */
  static async open(path: string, runtime: Runtime): Promise<TraceFile> {
    const handle = await open(path, 'r');
    if (!(await handle.stat()).isDirectory()) return new TraceFile(path, handle, runtime);
    await handle.close();
    // A folder can be opened, and not be read.
    throw Object.assign(new Error(`EISDIR: illegal operation on a directory, open '${path}'`), {
      code: 'EISDIR',
      path,
    });
  }

  nowMs(): number | undefined {
    if (this.#behindMs === undefined) return undefined;
    const nowMs = this.#runtime.wallNow() - this.#behindMs;
    return nowMs - this.#lastMs < LIVE_MS ? nowMs : undefined;
  }

  /** Places in a file stay: nothing is lost, however late a client comes back, as long as the file is there. */
  async read(fromId: number): Promise<Piece> {
    await (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)));
    const wanted = Math.floor(fromId / FILE_PLACES);
    const number = Math.min(Math.max(wanted, this.#forgotten), this.#forgotten + this.#files.length - 1);
    const file = this.#files[number - this.#forgotten];
    const offset = number === wanted ? fromId % FILE_PLACES : 0;
    if (file === undefined) return { nextId: fromId, lines: [], lost: 0 };
    const next = (number + 1) * FILE_PLACES;
    // How many lines are lost nobody can count any more.
    if (file.isGone) return { nextId: next, lines: [], lost: 1 };
    const { end, lines } = await this.#readFrom(file, offset);
    const isRead = end === offset && number + 1 < this.#forgotten + this.#files.length;
    return { nextId: isRead ? next : number * FILE_PLACES + end, lines, lost: number > wanted ? 1 : 0 };
  }

  async close(): Promise<void> {
    await Promise.all([...new Set(this.#files.map(({ handle }) => handle))].map((handle) => handle.close()));
  }

  /** Whether the name has another file by now, or its file was cut off, as by logrotate's `copytruncate`. */
  async #look(): Promise<void> {
    const last = this.#files.at(-1);
    if (last === undefined) return;
    const own = await last.handle.stat();
    const { size, tail } = last;
    last.isGone = own.size < size || !(await bytesOf(last.handle, tail.length, size)).equals(tail);
    const file = last.isGone ? opened(last.handle) : last;
    if (last.isGone) this.#files.push(file);
    file.size = own.size;
    file.tail = await bytesOf(file.handle, Math.min(TAIL_BYTES, own.size), own.size);
    const named = await stat(this.#path).catch(() => undefined);
    // One that is empty is not yet written to: what comes may still go to the one before.
    if (named !== undefined && named.size > 0 && (named.ino !== own.ino || named.dev !== own.dev)) {
      const handle = await open(this.#path, 'r').catch(() => undefined);
      // What was written between the two looks is in it by now.
      file.size = (await file.handle.stat()).size;
      if (handle !== undefined) this.#files.push(opened(handle));
    }
    if (this.#files.length <= FILES_MAX) return;
    const oldest = this.#files.shift();
    this.#forgotten++;
    if (oldest !== undefined && !this.#files.some(({ handle }) => handle === oldest.handle))
      await oldest.handle.close();
  }

  async #readFrom(
    { handle, size }: OpenFile,
    from: number,
  ): Promise<{ readonly end: number; readonly lines: string[] }> {
    for (let bytes = Math.min(PIECE_BYTES, size - from); bytes > 0;) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, from);
      const end = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
      if (end >= 0) {
        const lines = buffer.toString('utf8', 0, end).split('\n');
        return { end: from + end + 1, lines: lines.flatMap((line) => this.#shown(line)) };
      }
      // One that nobody can mean is left out; one that is not whole yet is waited for.
      if (bytes >= LINE_BYTES_MAX) return { end: from + bytes, lines: [] };
      bytes = bytes === size - from ? 0 : Math.min(bytes * 8, size - from, LINE_BYTES_MAX);
    }
    return { end: from, lines: [] };
  }

  /** A process begins to write, whose clock may be another one. */
  #head({ time, atMs }: Readonly<Record<string, unknown>>): void {
    const wallMs = Date.parse(String(time));
    if (typeof atMs !== 'number' || !(wallMs > this.#headedMs)) return;
    this.#headedMs = wallMs;
    this.#behindMs = wallMs - atMs;
    this.#lastMs = atMs;
  }

  #shown(line: string): string[] {
    try {
      const value: unknown = JSON.parse(line);
      if (!isRecord(value)) return [];
      if (value['type'] === 'file_started') this.#head(value);
      if (!isEvent(value)) return [];
      const event = this.#redact(value as unknown as TraceEvent);
      this.#lastMs = Math.max(this.#lastMs, event.atMs);
      return [JSON.stringify(event)];
    } catch {
      // Torn, or no JSON: not shown.
      return [];
    }
  }
}
