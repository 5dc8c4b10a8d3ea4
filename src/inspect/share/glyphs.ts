import type { MarkKind } from '../model.ts';

export type { MarkKind } from '../model.ts';

export interface Glyphs {
  readonly marks: Readonly<Record<MarkKind, string>>;
  /** While an attempt runs. */
  readonly running: string;
  /** While a retry waits. */
  readonly waiting: string;
  readonly deadline: string;
  readonly axis: string;
  readonly tick: string;
  readonly ellipsis: string;
}

/** One column each, so that a diagram lines up. */
export const UNICODE: Glyphs = {
  marks: {
    start: '^',
    alternative: '»',
    default: '◇',
    value: '●',
    error: '✗',
    timeout: '◷',
    rejected: '⊘',
    cut: '!',
    skip: '∅',
    verified: '?',
    undo: '‹',
    undone: '○',
    left: '‼',
  },
  running: '─',
  waiting: '┄',
  deadline: '┊',
  axis: '─',
  tick: '┬',
  ellipsis: '…',
};

/** RxJS's own signs where it has one: `^` subscribes, `!` unsubscribes. */
export const ASCII: Glyphs = {
  marks: {
    start: '^',
    alternative: '>',
    default: 'd',
    value: 'o',
    error: 'x',
    timeout: 't',
    rejected: 'r',
    cut: '!',
    skip: 's',
    verified: '?',
    undo: '<',
    undone: 'u',
    left: '#',
  },
  running: '-',
  waiting: '.',
  deadline: ':',
  axis: '-',
  tick: '+',
  ellipsis: '~',
};

/** What the signs mean, in the order of the legend. */
export const MEANINGS: Readonly<Record<MarkKind, string>> = {
  start: 'attempt',
  alternative: 'attempt of an alternative',
  default: 'attempt with a default',
  value: 'value',
  error: 'error',
  timeout: 'timeout',
  rejected: 'refused',
  cut: 'cut off',
  skip: 'skipped',
  verified: 'verified',
  undo: 'attempt to undo',
  undone: 'undone',
  left: 'could not be undone',
};
