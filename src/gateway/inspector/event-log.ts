import { Subject, type Observable } from 'rxjs';
import type { TraceEvent } from '../../contract/event.ts';
import { hexOf } from '../../policy/key/sha256.ts';
import { secretBytes } from '../../runtime.ts';

/** Lines of a trace from some place on. */
export interface Piece {
  /** Where the next piece begins: what a client that comes back names. */
  readonly nextId: number;
  /** The events, one line of JSON each. */
  readonly lines: readonly string[];
  /** How many lines were there before and are not kept any more; 0 as a rule. */
  readonly lost: number;
}

/** Where the lines come from. */
export interface LineSource {
  /** Tells its places from those of another process. */
  readonly run: string;
  /** What is there from a place on; no lines where nothing is yet. */
  read(fromId: number): Promise<Piece>;
  /** Emits when there may be more; completes when there will be none. */
  readonly more$: Observable<unknown>;
  /** Whether more can come. */
  readonly isOver: boolean;
  /** Now, on the clock of the events; `undefined` where it is not known. */
  nowMs(): number | undefined;
}

/** A name for what one process serves: never of the `Runtime`, whose chance may be that of another run. */
export const newRun = (): string => hexOf(secretBytes(8));

/** What is sent at a time. */
export const PIECE_BYTES: number = 256 * 1024;

const LINES_MAX = 200_000;
const BYTES_MAX = 64 * 2 ** 20;

/** The last events of a layer that runs: as many as there is room for. */
export class EventLog implements LineSource {
  readonly run: string = newRun();
  readonly more$: Subject<void> = new Subject<void>();
  readonly #nowMs: () => number;
  readonly #lines: string[] = [];
  #firstId = 0;
  #bytes = 0;
  isOver: boolean = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs();
  }

  add(event: TraceEvent): void {
    const line = JSON.stringify(event);
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#lines.length > LINES_MAX || this.#bytes > BYTES_MAX) this.#forget();
    this.more$.next();
  }

  end(): void {
    this.isOver = true;
    this.more$.complete();
  }

  read(fromId: number): Promise<Piece> {
    const from = Math.min(this.#lines.length, Math.max(0, fromId - this.#firstId));
    const lines: string[] = [];
    let bytes = 0;
    for (let at = from; at < this.#lines.length && bytes < PIECE_BYTES; at++) {
      const line = this.#lines[at] ?? '';
      lines.push(line);
      bytes += line.length;
    }
    const lost = Math.max(0, this.#firstId - fromId);
    return Promise.resolve({ nextId: this.#firstId + from + lines.length, lines, lost });
  }

  /** An eighth at a time: to take one out moves all. */
  #forget(): void {
    const count = Math.max(1, this.#lines.length >> 3);
    for (const line of this.#lines.splice(0, count)) this.#bytes -= line.length;
    this.#firstId += count;
  }
}
