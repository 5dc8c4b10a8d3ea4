/** What can happen on the line of a node, as marbles draw it. */
export type MarkKind =
  | 'start'
  | 'alternative'
  | 'default'
  | 'value'
  | 'error'
  | 'timeout'
  | 'rejected'
  | 'cut'
  | 'skip'
  | 'verified'
  | 'undo'
  | 'undone'
  | 'left';

/** A sign on the line of a node. */
export interface Mark {
  /** What happened. */
  readonly kind: MarkKind;
  /** When, on the clock of the events. */
  readonly atMs: number;
}
