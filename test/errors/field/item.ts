import type { Classification, ToolErrorKind } from '../../../src/contract/error-kind.ts';
import type { LlmErrorKind } from '../../../src/contract/llm-error.ts';
import type { Entrance } from '../../../src/errors/read-error.ts';

/** What is thrown where, and what it is. Where careful people differ there are several kinds, or no class. */
export interface Item {
  readonly where: Entrance;
  readonly kinds: readonly ToolErrorKind[];
  readonly classification: Classification | 'either';
  readonly llm: readonly LlmErrorKind[];
  readonly thrown: unknown;
}

export const of = (
  where: Entrance,
  kinds: readonly ToolErrorKind[],
  classification: Classification | 'either',
  ...thrown: readonly unknown[]
): readonly Item[] => thrown.map((thrown) => ({ where, kinds, classification, llm: [], thrown }));

/** A model's failure: its own kind, and the tool's kind that stands for it. */
export const ofModel = (
  llm: readonly LlmErrorKind[],
  kinds: readonly ToolErrorKind[],
  classification: Classification | 'either',
  ...thrown: readonly unknown[]
): readonly Item[] => thrown.map((thrown) => ({ where: 'llm', kinds, classification, llm, thrown }));

/** An error that carries another. */
export const because = (message: string, cause: unknown): Error => new Error(message, { cause });
