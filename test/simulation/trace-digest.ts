import type { TraceEvent } from '../../src/contract/event.ts';

/** A hash of all that a trace told: the same seed gives the same. */
export class TraceDigest {
  hash = 0x811c9dc5;

  add(event: TraceEvent): void {
    this.#text(event.type);
    this.#number(event.atMs);
    if ('toolName' in event) this.#text(event.toolName);
    if ('attempt' in event && event.attempt !== undefined) this.#number(event.attempt);
    if ('step' in event) this.#text(event.step);
    if ('classification' in event) this.#text(event.classification);
    if ('delayMs' in event && event.delayMs !== undefined) this.#number(event.delayMs);
  }

  /** FNV-1a. */
  #text(text: string): void {
    let { hash } = this;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.hash = hash;
  }

  /** To a thousandth: what lies below is rounding. */
  #number(value: number): void {
    this.hash = Math.imul(this.hash ^ Math.round(value * 1_000), 0x01000193);
  }
}

/** An event in a line, for a person who replays a run. */
export const line = (event: TraceEvent): string => {
  const { seq, atMs: _, source, type, ...rest } = event;
  return `#${seq} ${source} ${type} ${JSON.stringify(rest)}`;
};
