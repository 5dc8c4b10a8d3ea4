/** A time in which something is not known. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Whether an instant is in one of the spans, their ends included. */
export const within = (spans: readonly Span[], atMs: number): boolean =>
  spans.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs);

/** Something that can begin a span, or only keep one going. */
export interface Trouble extends Span {
  readonly begins: boolean;
}

/** Spans that trouble begins, and that last for as long as more of it follows within `tailMs`. */
export function spansOf(troubles: readonly Trouble[], tailMs: number): Span[] {
  const spans: Array<{ fromMs: number; toMs: number }> = [];
  for (const { fromMs, toMs, begins } of troubles.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = spans.at(-1);
    if (last !== undefined && fromMs <= last.toMs) last.toMs = Math.max(last.toMs, toMs + tailMs);
    else if (begins) spans.push({ fromMs, toMs: toMs + tailMs });
  }
  return spans;
}
