/**
 * A wrong line of code: what it breaks, by the rule of the specification where one says so, the text that stands there,
 * and the wrong one.
 */
export type Mutant = readonly [breaks: string, from: string, to: string];

/** The mutants of one source file. */
export interface MutatedFile {
  /** Its path under `src/`. */
  readonly file: string;
  readonly mutants: readonly Mutant[];
}
