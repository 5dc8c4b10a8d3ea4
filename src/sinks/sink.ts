import type { TraceEvent } from '../contract/event.ts';

/** Whatever watches a trace: hand it to `trace$.subscribe`. What it throws is dropped and counted there. */
export interface TraceSink {
  next(event: TraceEvent): void;
}

/** Tool names come from models and servers: those that a sink was not told of count as this one. */
export const OTHER_TOOL = '__other__';

/** Calls that a sink keeps in mind at a time. One that never ends is forgotten when so many others have begun after it. */
export const CALLS_MAX = 10_000;

/** A map of bounded size: what was put in first makes room. */
export class Kept<V> {
  readonly #values = new Map<string, V>();
  readonly #max: number;
  readonly #evicted: (value: V) => void;

  constructor(max: number = CALLS_MAX, evicted: (value: V) => void = () => undefined) {
    this.#max = max;
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    if (!this.#values.has(key) && this.#values.size >= this.#max) {
      const [oldest] = this.#values.entries();
      if (oldest !== undefined) {
        this.#values.delete(oldest[0]);
        this.#evicted(oldest[1]);
      }
    }
    this.#values.set(key, value);
  }

  /** Takes it out, and gives it back. */
  take(key: string): V | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.#values.delete(key);
    return value;
  }

  values(): IterableIterator<V> {
    return this.#values.values();
  }
}

const LINE_MAX = 4096;

/** Whether it is short, and printable ASCII. A loop: it is asked for short texts, for which a pattern costs three times as much. */
const isPlain = (text: string): boolean => {
  const { length } = text;
  if (length > LINE_MAX) return false;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
};

/**
 * A text from elsewhere as one harmless line: no terminal sequences, no control, direction or invisible characters, no line breaks. What a server
 * says could otherwise forge lines of a log, or drive the terminal that shows it.
 */
export function oneLine(text: string): string {
  if (isPlain(text)) return text;
  return text
    .slice(0, LINE_MAX)
    .replaceAll(/\u001b\[[0-?]{0,32}[ -/]{0,8}[@-~]/g, '')
    .replaceAll(/[\s\u0085]+/gu, ' ')
    .replaceAll(/\p{C}/gu, '');
}
