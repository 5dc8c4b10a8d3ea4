import type { TraceEvent } from '../../contract/event.ts';
import { ndjsonLine } from './lines.ts';

/** Tools that came later and are told again: of more the last are. A host may make one for each call. */
const LATER_MAX = 1_000;
const NOTE = Buffer.from('{"source":"sink"');

type Told = Readonly<Record<string, unknown>>;

const parsed = (line: Buffer): Told => JSON.parse(line.toString('utf8')) as Told;

/** A value as `ndjsonLine` writes it, without the end of the line. */
const text = (value: unknown): string => ndjsonLine(value).slice(0, -1);

/** `layer_started` in parts, made once: a layer of thousands of tools is megabytes. */
interface Started {
  /** What is the same each time but for the tools, from its first field on, without the end. */
  readonly rest: string;
  readonly tools: readonly string[];
}

const startedIn = (line: Buffer): Started => {
  const { seq: _seq, atMs: _atMs, tools, ...rest } = parsed(line);
  return {
    rest: text({ ...rest, again: true }).slice(1, -1),
    tools: Array.isArray(tools) && tools.length > 0 ? [text(tools).slice(1, -1)] : [],
  };
};

/**
 * The policies that the lines of a file have told so far, so that the file which comes after it can begin with them. As
 * the lines say it: who else has the events may have changed them since.
 */
export class PoliciesTold {
  /** Lines that tell of policies, and are not in the file yet. */
  readonly #due = new Map<Buffer, TraceEvent['type']>();
  /** The line, until it is needed. */
  #started: Buffer | Started | undefined;
  /** Tools that were told with their first call, in that order: two of one name may have two policies. */
  readonly #later = new Set<string>();
  #last: Buffer | undefined;

  hear(event: TraceEvent, line: Buffer): void {
    if (event.type === 'layer_started' || (event.type === 'call_started' && event.tool !== undefined))
      this.#due.set(line, event.type);
  }

  /** @param lines are in the file now: events, and notes of what was lost, which have no number */
  arrive(lines: readonly Buffer[]): void {
    const last = lines.at(-1);
    if (last !== undefined && !last.subarray(0, NOTE.length).equals(NOTE)) this.#last = last;
    this.#take(lines);
  }

  /** @param lines are in no file; what they told holds all the same */
  lose(lines: readonly Buffer[]): void {
    this.#take(lines);
  }

  /** `layer_started`, with the number and time of the last event that has arrived; empty before there was one. */
  again(): Buffer {
    if (this.#started === undefined || this.#last === undefined) return Buffer.alloc(0);
    this.#started = Buffer.isBuffer(this.#started) ? startedIn(this.#started) : this.#started;
    const { seq, atMs } = parsed(this.#last);
    const { rest, tools } = this.#started;
    const all = [...tools, ...this.#later].join(',');
    return Buffer.from(`${text({ seq, atMs }).slice(0, -1)},${rest},"tools":[${all}]}\n`);
  }

  #take(lines: readonly Buffer[]): void {
    if (this.#due.size === 0) return;
    for (const line of lines) {
      const type = this.#due.get(line);
      if (type === undefined) continue;
      this.#due.delete(line);
      if (type === 'layer_started') this.#begin(line);
      else this.#add(text(parsed(line)['tool']));
    }
  }

  #begin(line: Buffer): void {
    this.#started = line;
    this.#later.clear();
  }

  #add(tool: string): void {
    this.#later.add(tool);
    const [oldest] = this.#later;
    if (this.#later.size > LATER_MAX && oldest !== undefined) this.#later.delete(oldest);
  }
}
