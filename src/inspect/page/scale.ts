import type { TurnTold } from '../model.ts';
import { callsOf } from '../model/keep.ts';
import { endOfTime } from '../model/pending.ts';

type Span = readonly [fromMs: number, toMs: number];

/** Times of a turn as places from 0 to 1; long gaps in which nothing ran are folded. */
export interface Scale {
  readonly startMs: number;
  readonly endMs: number;
  readonly placeOf: (ms: number) => number;
  /** Gaps that are folded: where, and how long. */
  readonly folds: readonly Span[];
  /** Round times for the axis. */
  readonly ticks: readonly number[];
}

/** A gap is folded that is longer than this, and than this share of the whole. */
const FOLD_MS = 1_000;
const FOLD_SHARE = 0.25;
/** What is still to come has this share of what was, so that one sees for what is waited. */
const AHEAD_SHARE = 0.15;
/** What a folded gap takes of the whole. */
const FOLDED_SHARE = 0.04;
const TICKED_SHARE = 0.84;

const busySpans = (turn: TurnTold, endMs: number): Span[] => {
  const spans = turn.nodes
    .flatMap((node) => callsOf(node))
    .flatMap(({ attempts }) => attempts.map(({ startMs, endMs: to }): Span => [startMs, to ?? endMs]));
  return spans.toSorted((a, b) => a[0] - b[0]);
};

const gapsOf = (turn: TurnTold, startMs: number, endMs: number): Span[] => {
  const gaps: Span[] = [];
  let atMs = startMs;
  for (const [from, to] of busySpans(turn, endMs)) {
    if (from - atMs > FOLD_MS && from - atMs > (endMs - startMs) * FOLD_SHARE) gaps.push([atMs, from]);
    atMs = Math.max(atMs, to);
  }
  return gaps;
};

const ticksOf = (spanMs: number): number[] => {
  const least = spanMs / 6;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least) ?? least;
  return Array.from({ length: Math.floor(spanMs / step) + 1 }, (_, index) => index * step);
};

/** @param nowMs of a turn that runs: the axis goes a little beyond it */
export function scaleOf(turn: TurnTold, nowMs: number): Scale {
  const { startMs, settledMs, deadlineMs = 0, lastMs } = turn;
  const open = settledMs ?? Math.min(nowMs + (nowMs - startMs) * AHEAD_SHARE, endOfTime(turn, nowMs));
  const endMs = Math.max(open, lastMs, deadlineMs, startMs + 1);
  const gaps = gapsOf(turn, startMs, endMs);
  const foldedMs = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const plain = (1 - gaps.length * FOLDED_SHARE) / Math.max(1, endMs - startMs - foldedMs);
  const placeOf = (ms: number): number => {
    let place = (Math.min(Math.max(ms, startMs), endMs) - startMs) * plain;
    for (const [from, to] of gaps) {
      if (ms <= from) break;
      const into = Math.min(ms, to) - from;
      place += (into / (to - from)) * FOLDED_SHARE - into * plain;
    }
    return Math.min(1, Math.max(0, place));
  };
  return {
    startMs,
    endMs,
    placeOf,
    folds: gaps,
    // One at the very end has no room for its words.
    ticks: ticksOf((endMs - startMs) * TICKED_SHARE).filter(
      (ms) => !gaps.some(([from, to]) => ms + startMs > from && ms + startMs < to),
    ),
  };
}
