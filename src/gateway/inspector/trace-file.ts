import { open, type FileHandle } from 'node:fs/promises';
import { repeat, share, type Observable } from 'rxjs';
import type { TraceEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { redactorOf } from '../../policy/redact/values.ts';
import { PIECE_BYTES, type LineSource, type Piece } from './event-log.ts';

/** How often a file is looked at: a person follows it. */
const LOOK_MS = 200;
const LINE_BYTES_MAX = 64 * 2 ** 20;
const NEWLINE = 10;
/** A file that has told nothing for so long is one that was written before. */
const LIVE_MS = 60_000;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const isEvent = (value: Readonly<Record<string, unknown>>): boolean =>
  ['call', 'turn', 'layer'].includes(String(value['source'])) &&
  typeof value['type'] === 'string' &&
  typeof value['seq'] === 'number' &&
  typeof value['atMs'] === 'number';

/**
 * A file of `ndjsonSink` or `spillway run --trace`, which may grow.
 * What looks like a secret is taken out once more.
 */
export class TraceFile implements LineSource {
  readonly more$: Observable<unknown>;
  readonly isOver: boolean = false;
  readonly #file: FileHandle;
  readonly #runtime: Runtime;
  readonly #redact = redactorOf().show;
  /** What the clock of the events is behind the wall. */
  #behindMs: number | undefined;
  #lastMs = -Infinity;
  #size = 0;

  private constructor(file: FileHandle, runtime: Runtime) {
    this.#file = file;
    this.#runtime = runtime;
    this.more$ = (runtime.background ?? runtime).after(LOOK_MS).pipe(repeat(), share());
  }

  /** @throws the error of the file system when it cannot be opened */
  static async open(path: string, runtime: Runtime): Promise<TraceFile> {
    return new TraceFile(await open(path, 'r'), runtime);
  }

  nowMs(): number | undefined {
    if (this.#behindMs === undefined) return undefined;
    const nowMs = this.#runtime.wallNow() - this.#behindMs;
    return nowMs - this.#lastMs < LIVE_MS ? nowMs : undefined;
  }

  /** Places are offsets in the file, which stay: nothing is lost, however late a client comes back. */
  async read(fromId: number): Promise<Piece> {
    const { size } = await this.#file.stat();
    // Cut off, as by logrotate's copytruncate: what is in it now begins anew.
    const lost = size < this.#size ? 1 : 0;
    this.#size = size;
    const from = fromId > size ? 0 : fromId;
    for (let bytes = Math.min(PIECE_BYTES, size - from); bytes > 0;) {
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(bytes), 0, bytes, from);
      const end = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
      if (end >= 0) {
        const lines = buffer.toString('utf8', 0, end).split('\n');
        return { nextId: from + end + 1, lines: lines.flatMap((line) => this.#shown(line)), lost };
      }
      // One that nobody can mean is left out; one that is not whole yet is waited for.
      if (bytes >= LINE_BYTES_MAX) return { nextId: from + bytes, lines: [], lost };
      bytes = bytes === size - from ? 0 : Math.min(bytes * 8, size - from, LINE_BYTES_MAX);
    }
    return { nextId: from, lines: [], lost };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #shown(line: string): string[] {
    try {
      const value: unknown = JSON.parse(line);
      if (!isRecord(value)) return [];
      if (value['type'] === 'file_started' && typeof value['time'] === 'string' && typeof value['atMs'] === 'number')
        this.#behindMs = Date.parse(value['time']) - value['atMs'];
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
