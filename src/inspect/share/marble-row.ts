/** A letter of a marble diagram, at its frame. */
export interface Letter {
  /** The frame, which is a millisecond. */
  readonly frame: number;
  /** What is emitted: one letter, or `|` for the end. */
  readonly letter: string;
}

/**
 * Letters as a marble diagram of `TestScheduler`, in the words of its run mode: `2999ms t 99ms (sv)`. Letters of one
 * frame are a group, which takes as many frames as it has characters: what follows it must be later than that.
 */
export function marbleRow(letters: readonly Letter[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const [frame, together] of Map.groupBy(letters, (one) => one.frame)) {
    if (frame < at) throw new RangeError(`frame ${frame} lies within the group before it, which ends at ${at}`);
    if (frame > at) parts.push(`${frame - at}ms`);
    const text = together.map(({ letter }) => letter).join('');
    parts.push(together.length === 1 ? text : `(${text})`);
    at = frame + (together.length === 1 ? 1 : text.length + 2);
  }
  return parts.join(' ');
}
