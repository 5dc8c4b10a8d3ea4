import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { firstValueFrom, map, merge, Observable, take } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import type { TraceSink } from './sink.ts';

export { readNdjson, type LeftOut, type NdjsonTrace, type ReadNdjsonOptions } from './read-ndjson.ts';

export interface NdjsonSinkOptions {
  /** Bytes that may wait for the disk; events beyond are dropped and counted. Default 8 MiB. */
  readonly maxWaitingBytes?: number;
  /** How long after a failure it is tried again. Default 1,000. */
  readonly retryMs?: number;
  readonly runtime?: Runtime;
}

/** What became of the events. */
export interface NdjsonReport {
  readonly written: number;
  /** Lost: the disk was full or too slow, or the event was no JSON. */
  readonly dropped: number;
  /** What the file system last said; absent when nothing went wrong. */
  readonly error?: Error;
}

export interface NdjsonSink extends TraceSink {
  readonly report: NdjsonReport;
  /** Resolves when all that waits is written, or it failed. */
  flush(): Promise<NdjsonReport>;
  /** Writes what waits, in one last try where the disk has failed, and closes the file. What comes afterwards is dropped. Idempotent. */
  close(): Promise<NdjsonReport>;
}

const NEWLINE = 10;

const escaped = (character: string): string => Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');

/** A value as one line of JSON. What JSON lets through and a terminal would obey, or not show, is escaped: control, direction and invisible characters. */
export function ndjsonLine(value: unknown): string {
  const json = JSON.stringify(value);
  // Most lines are printable ASCII.
  return `${/[^ -~]/.test(json) ? json.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, escaped) : json}\n`;
}

/** Whether the file ends within a line, as after a kill. */
const isTorn = async (file: FileHandle): Promise<boolean> => {
  const stat = await file.stat();
  if (!stat.isFile() || stat.size === 0) return false;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, stat.size - 1);
  return bytesRead === 1 && buffer[0] !== NEWLINE;
};

interface Batch {
  readonly lines: Buffer[];
  bytes: number;
}

/** Events on their way to a file. */
class NdjsonFile implements NdjsonSink {
  readonly #file: FileHandle;
  readonly #options: Required<NdjsonSinkOptions>;
  #waiting: Batch = { lines: [], bytes: 0 };
  #writing: Promise<void> | undefined;
  /** The file ends within a line: the next one starts anew. */
  #torn: boolean;
  #written = 0;
  #dropped = 0;
  /** Of those dropped, the ones that the file says nothing of yet. */
  #untold = 0;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  /** Who waits for a flush: then nothing else is waited for. */
  #hurried = 0;
  #closing: Promise<NdjsonReport> | undefined;

  constructor(file: FileHandle, torn: boolean, options: Required<NdjsonSinkOptions>) {
    this.#file = file;
    this.#torn = torn;
    this.#options = options;
  }

  get report(): NdjsonReport {
    return { written: this.#written, dropped: this.#dropped, ...(this.#error === undefined ? {} : { error: this.#error }) };
  }

  next(event: TraceEvent): void {
    const line = this.#closing === undefined ? this.#lineOf(event) : undefined;
    if (line === undefined || this.#waiting.bytes + line.length > this.#options.maxWaitingBytes) return this.#drop(1);
    this.#waiting.lines.push(line);
    this.#waiting.bytes += line.length;
    this.#writing ??= this.#write();
  }

  async flush(): Promise<NdjsonReport> {
    this.#hurried++;
    this.#wake?.();
    await this.#writing;
    this.#hurried--;
    return this.report;
  }

  close(): Promise<NdjsonReport> {
    return (this.#closing ??= this.#close());
  }

  #lineOf(event: TraceEvent): Buffer | undefined {
    try {
      return Buffer.from(ndjsonLine(event));
    } catch {
      return undefined;
    }
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#untold += count;
  }

  /** Writes until nothing waits. A batch that fails is lost; those after it are tried a while later. */
  async #write(): Promise<void> {
    // In the next turn of the loop, so that the events of one burst are one write.
    await Promise.resolve();
    while (this.#waiting.lines.length > 0) {
      const batch = this.#waiting;
      this.#waiting = { lines: [], bytes: 0 };
      if (!(await this.#writeOut(batch)) && this.#waiting.lines.length > 0 && this.#hurried === 0) await this.#pause();
    }
    this.#writing = undefined;
  }

  async #writeOut({ lines }: Batch): Promise<boolean> {
    const untold = this.#untold;
    const note = untold === 0 ? [] : [Buffer.from(ndjsonLine({ source: 'sink', type: 'dropped', count: untold }))];
    const start = Buffer.from(this.#torn ? '\n' : '');
    const all = Buffer.concat([start, ...note, ...lines]);
    let place = 0;
    try {
      while (place < all.length) {
        const { bytesWritten } = await this.#file.write(all, place, all.length - place);
        if (bytesWritten === 0) throw new Error('the file takes no more bytes');
        place += bytesWritten;
      }
    } catch (error) {
      this.#error = error instanceof Error ? error : new Error(String(error));
    }
    if (place > 0) this.#torn = all[place - 1] !== NEWLINE;
    // Lines that arrived whole are there, also when those after them are not.
    let left = place - start.length - (note[0]?.length ?? 0);
    if (left >= 0) this.#untold -= untold;
    const arrived = lines.findIndex((line) => (left -= line.length) < 0);
    const kept = arrived === -1 ? lines.length : arrived;
    this.#written += kept;
    this.#drop(lines.length - kept);
    return place === all.length;
  }

  /** Until it is tried again, or somebody wants it sooner. */
  async #pause(): Promise<void> {
    const { runtime, retryMs } = this.#options;
    const woken$ = new Observable<0>((subscriber) => {
      this.#wake = () => subscriber.next(0);
      return () => (this.#wake = undefined);
    });
    await firstValueFrom(merge(woken$, (runtime.background ?? runtime).after(retryMs)).pipe(take(1), map(() => undefined)));
  }

  async #close(): Promise<NdjsonReport> {
    await this.flush();
    // It may just have said what it lost.
    if (this.#untold > 0) await this.#writeOut({ lines: [], bytes: 0 });
    await this.#file.close().catch((error: unknown) => (this.#error ??= error instanceof Error ? error : new Error(String(error))));
    return this.report;
  }
}

/**
 * Opens a file that takes each event as a line of JSON, at its end: what is in it stays. A full or slow disk loses events and changes nothing
 * else; the file says how many, once it can. What a kill leaves behind is readable but for the last line: `readNdjson` tells.
 *
 * @param path the file; it is made, for its owner only, if it is not there
 * @param options how much may wait
 * @throws RangeError for an option out of range; the error of the file system when the file cannot be opened
 *
 * @example
 * const file = await ndjsonSink('trace.ndjson');
 * spillway.trace$.subscribe(file);
 * await spillway.close();
 * const { dropped } = await file.close();
 */
export async function ndjsonSink(path: string, options: NdjsonSinkOptions = {}): Promise<NdjsonSink> {
  checkKeys('ndjsonSink', options, ['maxWaitingBytes', 'retryMs', 'runtime']);
  const { maxWaitingBytes = 8 * 2 ** 20, retryMs = 1_000, runtime = liveRuntime } = options;
  checkNumber('maxWaitingBytes', maxWaitingBytes, integer(1, 2 ** 31));
  checkNumber('retryMs', retryMs, positiveDuration);
  const { O_APPEND, O_CREAT, O_RDWR } = constants;
  // Events can name people: not for everybody on the machine.
  const file = await open(path, O_APPEND | O_CREAT | O_RDWR, 0o600);
  const sink = new NdjsonFile(file, await isTorn(file), { maxWaitingBytes, retryMs, runtime });
  // As a plain object, so that it can be handed on without its class.
  return {
    next: (event) => sink.next(event),
    get report() {
      return sink.report;
    },
    flush: () => sink.flush(),
    close: () => sink.close(),
  };
}
