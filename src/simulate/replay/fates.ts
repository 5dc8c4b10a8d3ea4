import { seededRandom } from '../../policy/random.ts';
import { attemptKey, type RecordedAttempt } from './trace/attempts.ts';
import type { Recording } from './trace/recording.ts';

/**
 * What stands in for what a trace does not tell. `recorded`: nothing does, for the policies as they were. `good`: what
 * is unknown succeeds. `bad`: it fails. `fitted`: it does what the same tool did in the same minute.
 */
export type Assumption = 'recorded' | 'good' | 'bad' | 'fitted';

/** What an attempt does from some time on. */
export interface Fate {
  readonly afterMs: number;
  readonly end: 'success' | 'failure' | 'never';
  readonly of?: RecordedAttempt;
}

const MINUTE_MS = 60_000;
const NEVER: Fate = { afterMs: Infinity, end: 'never' };

/** A number for a text, the same each time: FNV-1a. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
};

/** A number in [0, 1) that belongs to a name, whatever was drawn before it. */
export const drawFor = (name: string): number => seededRandom(hashOf(name))();

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** What is known of how a tool behaves, to stand in for what is not. */
export class Fates {
  readonly #byMinute = new Map<string, RecordedAttempt[]>();
  readonly #byTool = new Map<string, RecordedAttempt[]>();
  readonly #sick = new Map<string, boolean>();
  readonly #startMs: number;

  constructor({ attempts, startMs }: Recording) {
    this.#startMs = startMs;
    for (const attempt of attempts.values()) {
      const { toolName } = attempt;
      for (const [groups, key] of [
        [this.#byMinute, this.#minute(toolName, attempt.startMs)],
        [this.#byTool, toolName],
      ] as const) {
        const group = groups.get(key);
        if (group === undefined) groups.set(key, [attempt]);
        else group.push(attempt);
      }
    }
  }

  #minute(toolName: string, atMs: number): string {
    return `${Math.floor((atMs - this.#startMs) / MINUTE_MS)} ${toolName}`;
  }

  /** Attempts at the same tool of the same minute that lasted longer than that; else of any minute. */
  #like(toolName: string, atMs: number, longerThanMs: number): readonly RecordedAttempt[] {
    const longer = (group: readonly RecordedAttempt[] = []): RecordedAttempt[] =>
      // One that was cut says nothing of what comes after, and that it hung to who asks from the start.
      group.filter(({ durationMs, end }) => (end !== 'cut' || longerThanMs === 0) && durationMs > longerThanMs);
    const near = longer(this.#byMinute.get(this.#minute(toolName, atMs)));
    return near.length > 0 ? near : longer(this.#byTool.get(toolName));
  }

  /** Whether at least half of what was tried in that minute failed: more load would have met a sick server. */
  isSick(toolName: string, atMs: number): boolean {
    const minute = this.#minute(toolName, atMs);
    let sick = this.#sick.get(minute);
    if (sick === undefined) {
      const group = this.#byMinute.get(minute) ?? [];
      sick = group.filter(({ end }) => end !== 'success').length * 2 >= Math.max(1, group.length);
      this.#sick.set(minute, sick);
    }
    return sick;
  }

  /**
   * What an attempt does of which the trace does not tell all.
   * @param lastedMs how long it is known to have lasted; 0 for one that was never made
   */
  of(assumption: Assumption, callId: string, toolName: string, own: number, atMs: number, lastedMs: number): Fate {
    if (assumption === 'recorded') return NEVER;
    const like = this.#like(toolName, atMs, lastedMs);
    const typicalMs = median(like.filter(({ end }) => end !== 'cut').map(({ durationMs }) => durationMs));
    const afterMs = Math.max(0, typicalMs - lastedMs);
    if (assumption === 'good') return { afterMs: lastedMs > 0 ? 0 : afterMs, end: 'success' };
    if (assumption === 'bad') {
      const of = like.find(({ end }) => end === 'failure');
      return lastedMs > 0 || of === undefined ? NEVER : { afterMs, end: 'failure', of };
    }
    const chosen = like[Math.floor(drawFor(attemptKey(callId, toolName, own)) * like.length)];
    if (chosen === undefined) return NEVER;
    if (chosen.end === 'cut') return NEVER;
    const end = chosen.end;
    return { afterMs: Math.max(0, chosen.durationMs - lastedMs), end, of: chosen };
  }

  /** What an attempt does that was made, at another time: as it did then, or as the assumption has it. */
  moved(assumption: Assumption, recorded: RecordedAttempt, atMs: number): Fate {
    const { callId, toolName, own, durationMs, end } = recorded;
    if (end === 'cut') return this.of(assumption, callId, toolName, own, atMs, 0);
    if (assumption === 'fitted') return { afterMs: durationMs, end, of: recorded };
    if (assumption === 'good') return { afterMs: durationMs, end: 'success' };
    const of = end === 'failure' ? recorded : this.#like(toolName, atMs, 0).find((like) => like.end === 'failure');
    return of === undefined ? NEVER : { afterMs: durationMs, end: 'failure', of };
  }
}
