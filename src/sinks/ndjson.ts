import { firstValueFrom, map, merge, Observable, take } from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { LineFile, type FileWork } from './ndjson/file.ts';
import { ndjsonEnd, ndjsonHeader, ndjsonLine } from './ndjson/lines.ts';
import { checkedOptions, type NdjsonErrorListener, type NdjsonSinkOptions } from './ndjson/options.ts';
import { PoliciesTold } from './ndjson/policies.ts';
import type { TraceSink } from './sink.ts';

export { ndjsonEnd, ndjsonHeader, ndjsonLine } from './ndjson/lines.ts';
export type { NdjsonErrorListener, NdjsonSinkOptions } from './ndjson/options.ts';
export { readNdjson, type LeftOut, type NdjsonTrace, type ReadNdjsonOptions } from './ndjson/read.ts';

/** What became of the events. */
export interface NdjsonReport {
  /** How many events were written. */
  readonly written: number;
  /** How many events were lost: the disk was full or too slow, or the event could not be written as JSON. */
  readonly dropped: number;
  /** The last failure of the file system; absent when nothing went wrong. */
  readonly error?: Error;
}

/** A sink that writes a file. */
export interface NdjsonSink extends TraceSink {
  /** What became of the events so far. */
  readonly report: NdjsonReport;
  /** Resolves when all that waits is written, or it failed. */
  flush(): Promise<NdjsonReport>;
  /**
   * Goes on in what is at the path now, between two lines: call it when something has renamed the file, such as
   * logrotate. Where nothing has, nothing happens; where the path cannot be opened, it goes on in the old file and
   * tries again. Never rejects.
   */
  reopen(): Promise<NdjsonReport>;
  /**
   * Writes what waits, in one last try where the disk has failed, and closes the file. What comes afterwards is
   * dropped. Idempotent.
   */
  close(): Promise<NdjsonReport>;
}

/** A line that no folder has room for is dropped; a header takes less than this beside it. */
const HEADER_BYTES = 1_024;

interface Batch {
  readonly lines: Buffer[];
  bytes: number;
}

interface QueueOptions {
  readonly maxWaitingBytes: number;
  readonly maxLineBytes: number;
  readonly retryMs: number;
  readonly runtime: Runtime;
  readonly policies: PoliciesTold;
}

/** Tells failures, each kind of work once until it has worked again. */
class Outcomes {
  error: Error | undefined;
  readonly #told = new Set<FileWork>();
  readonly #listener: NdjsonErrorListener | undefined;

  constructor(listener: NdjsonErrorListener | undefined) {
    this.#listener = listener;
  }

  take(of: FileWork, error: Error | undefined): void {
    if (error === undefined) return void this.#told.delete(of);
    this.error = error;
    if (this.#told.has(of) || this.#listener === undefined) return;
    this.#told.add(of);
    const listener = this.#listener;
    // Apart from the writing, and whatever comes of it.
    void Promise.resolve()
      .then(() => listener(error))
      .catch(() => undefined);
  }
}

/** Events on their way to a file. */
class EventQueue implements NdjsonSink {
  readonly #file: LineFile;
  readonly #outcomes: Outcomes;
  readonly #options: QueueOptions;
  readonly #policies: PoliciesTold;
  #waiting: Batch = { lines: [], bytes: 0 };
  #writing: Promise<void> | undefined;
  #written = 0;
  #dropped = 0;
  /** Of those dropped, the ones that the file says nothing of yet. */
  #untold = 0;
  #wake: (() => void) | undefined;
  /** Who waits for a flush: then nothing else is waited for. */
  #hurried = 0;
  #closing: Promise<NdjsonReport> | undefined;
  /** Of the event that is written last; absent before the first. */
  #lastSeq: number | undefined;

  constructor(file: LineFile, outcomes: Outcomes, options: QueueOptions) {
    this.#file = file;
    this.#outcomes = outcomes;
    this.#options = options;
    this.#policies = options.policies;
  }

  get report(): NdjsonReport {
    const { error } = this.#outcomes;
    return { written: this.#written, dropped: this.#dropped, ...(error === undefined ? {} : { error }) };
  }

  next(event: TraceEvent): void {
    const { maxWaitingBytes, maxLineBytes } = this.#options;
    const line = this.#closing === undefined ? this.#lineOf(event) : undefined;
    if (line !== undefined) this.#policies.hear(event, line);
    if (line === undefined || line.length > maxLineBytes || this.#waiting.bytes + line.length > maxWaitingBytes) {
      if (line !== undefined) this.#policies.lose([line]);
      return this.#drop(1);
    }
    this.#lastSeq = event.seq;
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

  async reopen(): Promise<NdjsonReport> {
    if (this.#closing === undefined) await this.#file.reopen();
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
      const { lines } = this.#waiting;
      this.#waiting = { lines: [], bytes: 0 };
      if (!(await this.#writeOut(lines)) && this.#waiting.lines.length > 0 && this.#hurried === 0) await this.#pause();
    }
    this.#writing = undefined;
  }

  async #writeOut(lines: readonly Buffer[]): Promise<boolean> {
    const untold = this.#untold;
    const note = untold === 0 ? [] : [Buffer.from(ndjsonLine({ source: 'sink', type: 'dropped', count: untold }))];
    const all = [...note, ...lines];
    const { arrived, complete } = await this.#file.append(all);
    if (arrived >= note.length) this.#untold -= untold;
    const kept = Math.max(0, arrived - note.length);
    this.#written += kept;
    this.#drop(lines.length - kept);
    this.#policies.lose(lines.slice(kept));
    return complete;
  }

  /** Until it is tried again, or somebody wants it sooner. */
  async #pause(): Promise<void> {
    const { runtime, retryMs } = this.#options;
    const woken$ = new Observable<0>((subscriber) => {
      this.#wake = () => subscriber.next(0);
      return () => (this.#wake = undefined);
    });
    await firstValueFrom(
      merge(woken$, (runtime.background ?? runtime).after(retryMs)).pipe(
        take(1),
        map(() => undefined),
      ),
    );
  }

  async #close(): Promise<NdjsonReport> {
    await this.flush();
    // It may just have said what it lost.
    if (this.#untold > 0) await this.#writeOut([]);
    const lastSeq = this.#lastSeq;
    await this.#file.close(lastSeq === undefined ? undefined : (digest) => Buffer.from(ndjsonEnd(lastSeq, digest)));
    return this.report;
  }
}

/**
 * Opens a file that takes each event as a line of JSON, at its end: what is in it stays. A full or slow disk loses
 * events and changes nothing else; the file says how many, once it can. What a kill leaves behind is readable but for
 * the last line: `readNdjson` tells.
 *
 * The first line is a header, `{"format":1,"source":"sink","type":"file_started","version":...,"time":...,"atMs":...}`;
 * so is each line from which a new process goes on in an old file. `readNdjson` reads files with and without. The last
 * line, which `close()` writes, is `{"source":"sink","type":"file_ended","lastSeq":...,"digest":...}`: without it
 * nobody can say whether its end was cut off, or a line of it changed. The digest is of the lines since the last
 * header, whose `before` is that of the file that was rotated away; where several processes write there is none.
 *
 * Files are rotated between lines, by size and by age, and the oldest deleted, where options say so. Where something
 * else rotates:
 *
 * - by renaming (logrotate's `create`, the default): call `reopen()` when it says so, for example on SIGHUP
 *   (`postrotate kill -HUP ...`); until then lines go into the renamed file, and none is lost;
 * - by copying and cutting off (`copytruncate`): nothing to do. What is written between its copy and its cut is lost,
 *   which only the copier could help; no line is torn;
 * - by deleting: the next event begins a new file.
 *
 * A new file begins with the policies once more, those of tools that came later among them, as `layer_started` with
 * `again`: so each part tells them by itself.
 *
 * Several processes may append to one file; only one of them may rotate it. Memory: at most twice `maxWaitingBytes`,
 * for what waits and what is being written, and a copy of 1 MiB.
 *
 * @param path the file; it is made, for its owner only, if it is not there
 * @param options how much may wait, when to rotate, and who is told of errors
 * @throws RangeError for an option out of range; the error of the file system when the file cannot be opened
 *
 * @example const file = await ndjsonSink('trace.ndjson', { maxFileBytes: 64 * 2 ** 20, maxFileAgeMs: 86_400_000,
 * maxFolderBytes: 2 ** 30 }); spillway.trace$.subscribe(file); process.on('SIGHUP', () => void file.reopen()); await
 * spillway.close(); const { dropped } = await file.close();
 */
export async function ndjsonSink(path: string, options: NdjsonSinkOptions = {}): Promise<NdjsonSink> {
  const { maxWaitingBytes, maxFolderBytes, retryMs, runtime, ...limits } = checkedOptions(options);
  const outcomes = new Outcomes(options.onError);
  const policies = new PoliciesTold();
  const file = await LineFile.open(path, {
    ...limits,
    maxFolderBytes,
    retryMs,
    runtime,
    header: (before) => Buffer.from(ndjsonHeader(runtime, before)),
    again: () => policies.again(),
    onArrived: (lines) => policies.arrive(lines),
    onOutcome: (of, error) => outcomes.take(of, error),
  });
  const sink = new EventQueue(file, outcomes, {
    maxWaitingBytes,
    maxLineBytes: maxFolderBytes - HEADER_BYTES,
    retryMs,
    runtime,
    policies,
  });
  // As a plain object, so that it can be handed on without its class.
  return {
    next: (event) => sink.next(event),
    get report() {
      return sink.report;
    },
    flush: () => sink.flush(),
    reopen: () => sink.reopen(),
    close: () => sink.close(),
  };
}
