import type { TraceEvent } from '../contract/event.ts';
import { textRedactor } from '../policy/redact/text.ts';

/** Whatever watches a trace: hand it to `trace$.subscribe`. What it throws is dropped and counted there. */
export interface TraceSink {
  /**
   * Called with each event of the trace, in order, while the call that caused it waits: do little, or use
   * `bufferedSink`.
   */
  next(event: TraceEvent): void;
}

/**
 * The name under which a sink counts tools that it was not made for: names come from models and servers, without end.
 */
export const OTHER_TOOL = '__other__';

/**
 * Calls that a sink keeps in mind at a time. One that never ends is forgotten when so many others have begun after it.
 */
export const CALLS_MAX = 10_000;

/**
 * What a sink is given beside the trace, names and descriptions of tools, without what looks like a secret: events have
 * such a name redacted, too.
 */
export const cleaned: (text: string) => string = textRedactor();

/** A map of bounded size: what was put in first makes room. */
export class RecentMap<V> {
  /**
   * All but the newest. A call at a time never comes here: a map that is emptied again and again is made anew each
   * time.
   */
  readonly #values = new Map<string, V>();
  #newest: { readonly key: string; value: V } | undefined;
  readonly #max: number;
  readonly #evicted: (value: V) => void;

  constructor(max: number = CALLS_MAX, evicted: (value: V) => void = () => undefined) {
    this.#max = max;
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#values.size + (this.#newest === undefined ? 0 : 1);
  }

  *values(): Generator<V> {
    yield* this.#values.values();
    if (this.#newest !== undefined) yield this.#newest.value;
  }

  get(key: string): V | undefined {
    return this.#newest?.key === key ? this.#newest.value : this.#values.get(key);
  }

  set(key: string, value: V): void {
    if (this.#newest?.key === key) this.#newest.value = value;
    else if (this.#values.has(key)) this.#values.set(key, value);
    else this.#add(key, value);
  }

  #add(key: string, value: V): void {
    const before = this.#newest;
    this.#newest = { key, value };
    if (before === undefined) return;
    this.#values.set(before.key, before.value);
    if (this.#values.size < this.#max) return;
    const [oldest] = this.#values.entries();
    if (oldest === undefined) return;
    this.#values.delete(oldest[0]);
    this.#evicted(oldest[1]);
  }

  /** Takes it out, and gives it back. */
  take(key: string): V | undefined {
    if (this.#newest?.key === key) {
      const { value } = this.#newest;
      this.#newest = undefined;
      return value;
    }
    const value = this.#values.get(key);
    if (value !== undefined) this.#values.delete(key);
    return value;
  }
}

const LINE_MAX = 4096;

/**
 * Whether it is short, and printable ASCII. A loop: it is asked for short texts, for which a pattern costs three times
 * as much.
 */
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
 * A text from elsewhere as one harmless line: no terminal sequences, no control, direction or invisible characters, no
 * line breaks. What a server says could otherwise forge lines of a log, or drive the terminal that shows it.
 */
export function oneLine(text: string): string {
  if (isPlain(text)) return text;
  return text
    .slice(0, LINE_MAX)
    .replaceAll(/\u001b\[[0-?]{0,32}[ -/]{0,8}[@-~]/g, '')
    .replaceAll(/[\s\u0085]+/gu, ' ')
    .replaceAll(/\p{C}/gu, '');
}
