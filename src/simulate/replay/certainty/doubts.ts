import type { TraceEvent } from '../../../contract/event.ts';
import type { Fates } from '../fates.ts';

/** What had to be assumed, and how often. */
export interface Unknowns {
  /** Attempts that were cut off when they were recorded, and are now waited for longer. */
  censored: number;
  /** Attempts that were never made when it was recorded. */
  unmade: number;
  /** Attempts that were made at another time: what they came to then says nothing sure of now. */
  moved: number;
  /** Attempts that were made at another time, too, of which it is known from others how their tool was then. */
  shifted: number;
  /** Of the unmade, those at a tool that mostly failed in that minute: more load could have made it worse. */
  feedback: number;
  /** Attempts in all. */
  attempts: number;
}

/** Why it is not known what an attempt does. */
export type Why = 'censored' | 'unmade' | 'moved';

/** An attempt of which the trace does not tell all. */
export interface Doubt {
  readonly callId: string;
  readonly toolName: string;
  /** From when on it is not known what it does. */
  readonly atMs: number;
}

/** What came of a replay. */
export interface Replayed {
  readonly events: readonly TraceEvent[];
  readonly unknown: Readonly<Unknowns>;
  readonly doubts: readonly Doubt[];
  /** When each attempt of the recording was made here, by its key. */
  readonly madeAtMs: ReadonlyMap<string, number>;
}

/** Counts what is assumed in one run. */
export class Doubts {
  readonly unknown: Unknowns = { censored: 0, unmade: 0, moved: 0, shifted: 0, feedback: 0, attempts: 0 };
  readonly all: Doubt[] = [];
  readonly #fates: Fates;

  constructor(fates: Fates) {
    this.#fates = fates;
  }

  attempt(): void {
    this.unknown.attempts++;
  }

  add(why: Why, doubt: Doubt): void {
    this.unknown[why]++;
    this.all.push(doubt);
    if (why === 'unmade' && this.#fates.isSick(doubt.toolName, doubt.atMs)) this.unknown.feedback++;
  }
}
