import { MESSAGE_LENGTH_MAX } from '../../../errors/text/plain.ts';

/** Lines of the tail that go into an error's message. */
const SAID_MAX = 3;
/** What several of them come to at most. */
const SAID_CHARS = 2_000;

/** The last lines that a process wrote, and no more of them than that. */
export class StderrTail {
  readonly #max: number;
  readonly #lines: string[] = [];
  readonly #decoder = new TextDecoder();
  #partial = '';

  /** @param max how many lines are kept */
  constructor(max: number) {
    this.#max = max;
  }

  get lines(): readonly string[] {
    const lines = this.#partial === '' ? this.#lines : [...this.#lines, this.#partial];
    return this.#max === 0 ? [] : lines.slice(-this.#max);
  }

  /** What it said last, in a line: without stack frames and the braces around them. */
  get said(): string {
    const said = this.lines.filter((line) => /^\S.{2}/.test(line)).slice(-SAID_MAX);
    // The last one says why: long ones before it must not hide it.
    while (said.length > 1 && said.join('; ').length > SAID_CHARS) said.shift();
    return said.join('; ');
  }

  /** Takes what was written; gives the lines that are whole by now. */
  add(chunk: Uint8Array): readonly string[] {
    const lines = (this.#partial + this.#decoder.decode(chunk, { stream: true })).split('\n');
    this.#partial = (lines.pop() ?? '').slice(0, MESSAGE_LENGTH_MAX);
    const whole = lines.map((line) => line.trimEnd().slice(0, MESSAGE_LENGTH_MAX));
    this.#lines.push(...whole);
    this.#lines.splice(0, this.#lines.length - this.#max);
    return whole;
  }
}
