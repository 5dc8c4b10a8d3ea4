import type { FileKind } from './file-kind.ts';

/** Something wrong, and where: line and column are missing for a file that could not be read. */
export interface Finding {
  readonly line?: number;
  readonly column?: number;
  readonly at?: string;
  readonly message: string;
}

/** What `spillway check` says of a file. */
export interface FileReport {
  readonly file: string;
  readonly kind: FileKind;
  readonly problems: readonly Finding[];
  readonly warnings: readonly string[];
  /** What is in a file with which nothing is wrong. */
  readonly holds?: string;
}

/** So many of something, in words. */
export const count = (many: number, what: string): string => `${many} ${what}${many === 1 ? '' : 's'}`;
