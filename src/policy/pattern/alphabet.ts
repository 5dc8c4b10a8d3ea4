import { takeStep, type StepBudget } from './budget.ts';

/** Characters that a pattern does not tell apart, and which of its atoms read them. */
export interface CharacterClass {
  readonly index: number;
  readonly isWord: boolean;
  /** By atom, a 1 where it reads them. */
  readonly readBy: Uint8Array;
}

/** What asking the platform about one character costs, in steps. */
const QUESTION_COST = 8;
/** Characters beyond the first plane that are kept in mind. */
const BEYOND_MAX = 10_000;
const PLANE = 0x1_0000;
const ASCII = 128;

/**
 * The characters of a pattern, in classes. Each character is asked once of the platform's own `RegExp`, atom by atom,
 * so that no table of ours can differ from what it means by `\s`, `\p{Lu}` or the flag `i`.
 */
export class Alphabet {
  readonly #atoms: readonly RegExp[];
  readonly #word: RegExp;
  readonly #bySignature = new Map<string, CharacterClass>();
  readonly #classes: CharacterClass[] = [];
  /** The class of a character plus one; most texts are ASCII, and need no large table. */
  #known = new Uint32Array(ASCII);
  readonly #beyond = new Map<number, CharacterClass>();

  constructor(atoms: readonly string[], flags: string) {
    this.#atoms = atoms.map((atom) => new RegExp(`^${atom}$`, flags));
    this.#word = new RegExp(String.raw`^\w$`, flags);
  }

  /** @throws PatternCostError */
  classOf(codePoint: number, budget: StepBudget): CharacterClass {
    const known = codePoint < PLANE ? this.#classes[(this.#known[codePoint] ?? 0) - 1] : this.#beyond.get(codePoint);
    return known ?? this.#ask(codePoint, budget);
  }

  #ask(codePoint: number, budget: StepBudget): CharacterClass {
    takeStep(budget, this.#atoms.length * QUESTION_COST);
    const character = String.fromCodePoint(codePoint);
    const readBy = Uint8Array.from(this.#atoms, (atom) => (atom.test(character) ? 1 : 0));
    const isWord = this.#word.test(character);
    const signature = `${isWord}${readBy.join('')}`;
    const found = this.#bySignature.get(signature) ?? { index: this.#classes.length, isWord, readBy };
    if (found.index === this.#classes.length) this.#classes.push(found);
    this.#bySignature.set(signature, found);
    this.#keep(codePoint, found);
    return found;
  }

  #keep(codePoint: number, found: CharacterClass): void {
    if (codePoint >= PLANE) {
      if (this.#beyond.size >= BEYOND_MAX) this.#beyond.clear();
      this.#beyond.set(codePoint, found);
      return;
    }
    if (codePoint >= this.#known.length) {
      const all = new Uint32Array(PLANE);
      all.set(this.#known);
      this.#known = all;
    }
    this.#known[codePoint] = found.index + 1;
  }
}
