import { Neighbours, drawFor, drawnFrom, shiftedTo } from './draws/neighbours.ts';
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

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** An attempt that is made at another time than it was, or follows on one that is. */
export interface ShiftedAttempt {
  readonly callId: string;
  readonly toolName: string;
  readonly own: number;
  readonly recorded: RecordedAttempt | undefined;
}

/** What is known of how a tool behaves, to stand in for what is not. */
export class Fates {
  readonly #byMinute = new Map<string, RecordedAttempt[]>();
  readonly #byTool = new Map<string, RecordedAttempt[]>();
  readonly #sick = new Map<string, boolean>();
  readonly #startMs: number;
  readonly #neighbours: Neighbours;

  constructor({ attempts, startMs }: Recording) {
    this.#startMs = startMs;
    this.#neighbours = new Neighbours({ attempts });
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

  /**
   * What an attempt does at another time than it was made, where enough others around both tell how its tool was; else
   * `undefined`.
   * @param recorded the attempt as it was made, or that it would have been made if its call had gone on
   * @param sample draws it from those around it alone: what it did when it was made need not say what it does here
   */
  shifted(
    { callId, toolName, own, recorded }: ShiftedAttempt,
    atMs: number,
    sample: number | undefined,
  ): RecordedAttempt | undefined {
    const there = this.#neighbours.around(toolName, atMs, callId);
    if (there === undefined) return undefined;
    const name = attemptKey(callId, toolName, own);
    const told = recorded !== undefined && (recorded.end !== 'cut' || recorded.limited);
    if (sample !== undefined || !told) return drawnFrom(there, sample ?? 0, name);
    const here = this.#neighbours.around(toolName, recorded.startMs, callId);
    return here === undefined ? undefined : shiftedTo(recorded, here, there, name);
  }
}
