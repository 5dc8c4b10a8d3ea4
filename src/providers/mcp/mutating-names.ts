import { effectsOfHints } from '../../policy/mcp-hints.ts';
import type { McpToolLike } from './client.ts';

/** So many names are kept; beyond, every tool counts as mutating. */
const NAMES_MAX = 10_000;

/**
 * The tools that some list of a server did not say to be reading only: another list, or a later one, does not make them
 * so.
 */
export class MutatingNames {
  readonly #names = new Set<string>();

  /** Takes what a server lists. */
  note({ name, annotations }: Pick<McpToolLike, 'name' | 'annotations'>): void {
    if (effectsOfHints(annotations) === 'mutating' && this.#names.size < NAMES_MAX) this.#names.add(name);
  }

  has(name: string): boolean {
    return this.#names.size >= NAMES_MAX || this.#names.has(name);
  }
}
