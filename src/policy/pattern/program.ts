import type { Edge, PatternNode } from './syntax.ts';

/**
 * What an instruction does: reads a character, goes two ways, jumps, asks about an edge or a look-around, or is the
 * end.
 */
export const OP = { atom: 0, fork: 1, jump: 2, edge: 3, look: 4, match: 5 } as const;

/** What an `edge` instruction asks, by what was read last and what is read next. */
export const ASKS = { nothingBehind: 0, nothingAhead: 1, word: 2, noWord: 3 } as const;

/**
 * A pattern as instructions of an automaton; each has two operands. An instruction that reads goes on with the next
 * one.
 */
export interface Program {
  readonly ops: readonly number[];
  readonly first: readonly number[];
  readonly second: readonly number[];
  /** Whether it reads a text from its end to its start. */
  readonly backward: boolean;
}

/** A pattern compiled: its main program, and one for each look-around, each after those that it asks. */
export interface Programs {
  readonly main: Program;
  readonly looks: readonly Program[];
  /** The characters that are read, as a pattern writes them, each once. */
  readonly atoms: readonly string[];
}

/** Instructions in all: 10,000 optional characters. What is built for them takes a few milliseconds. */
const SIZE_MAX = 20_000;
/** Look-arounds, each of which reads the text once. */
const LOOKS_MAX = 8;

/** About how many instructions a pattern takes, before any is made. */
const sizeOf = (node: PatternNode): number => {
  switch (node.type) {
    case 'atom':
    case 'edge':
      return 1;
    case 'look':
      return 2 + sizeOf(node.body);
    case 'sequence':
      return node.parts.reduce((sum, part) => sum + sizeOf(part), 1);
    case 'choice':
      return node.options.reduce((sum, option) => sum + 2 + sizeOf(option), 0);
    case 'repeat':
      return (sizeOf(node.body) + 1) * (node.max === Infinity ? node.min + 1 : node.max) + 2;
  }
};

const looksIn = (node: PatternNode): number => {
  if (node.type === 'sequence') return node.parts.reduce((sum, part) => sum + looksIn(part), 0);
  if (node.type === 'choice') return node.options.reduce((sum, option) => sum + looksIn(option), 0);
  if (node.type === 'repeat') return looksIn(node.body);
  return node.type === 'look' ? 1 + looksIn(node.body) : 0;
};

/** @throws RangeError for a pattern that is too large; its message ends a sentence */
export function checkSize(node: PatternNode): void {
  if (sizeOf(node) > SIZE_MAX)
    throw new RangeError(`its repeats make it larger than ${SIZE_MAX} steps; limit the length with maxLength instead`);
  if (looksIn(node) > LOOKS_MAX)
    throw new RangeError(`it looks ahead or behind in more than ${LOOKS_MAX} places; use several patterns, in allOf`);
}

const edgeOf = (edge: Edge, backward: boolean): number => {
  if (edge === 'word') return ASKS.word;
  if (edge === 'no_word') return ASKS.noWord;
  return (edge === 'start') === backward ? ASKS.nothingAhead : ASKS.nothingBehind;
};

/** What the programs of one pattern share. */
class Build {
  readonly atoms = new Map<string, number>();
  readonly looks: Program[] = [];
  readonly #lookOf = new Map<PatternNode, number>();

  atom(source: string): number {
    const known = this.atoms.get(source) ?? this.atoms.size;
    this.atoms.set(source, known);
    return known;
  }

  /** What lies ahead is read from the end backward, so that one reading knows all places where it begins. */
  look(node: PatternNode & { readonly type: 'look' }): number {
    const known = this.#lookOf.get(node);
    if (known !== undefined) return known;
    const program = new Assembly(this, node.ahead).assemble(node.body);
    const index = this.looks.push(program) - 1;
    this.#lookOf.set(node, index);
    return index;
  }
}

class Assembly {
  readonly #build: Build;
  readonly #backward: boolean;
  readonly #ops: number[] = [];
  readonly #first: number[] = [];
  readonly #second: number[] = [];

  constructor(build: Build, backward: boolean) {
    this.#build = build;
    this.#backward = backward;
  }

  assemble(node: PatternNode): Program {
    this.#add(node);
    this.#put(OP.match);
    return { ops: this.#ops, first: this.#first, second: this.#second, backward: this.#backward };
  }

  #put(op: number, first = 0, second = 0): number {
    this.#first.push(first);
    this.#second.push(second);
    return this.#ops.push(op) - 1;
  }

  #add(node: PatternNode): void {
    switch (node.type) {
      case 'atom':
        return void this.#put(OP.atom, this.#build.atom(node.source));
      case 'edge':
        return void this.#put(OP.edge, edgeOf(node.edge, this.#backward));
      case 'look':
        return void this.#put(OP.look, this.#build.look(node), node.negated ? 1 : 0);
      case 'sequence':
        for (const part of this.#backward ? node.parts.toReversed() : node.parts) this.#add(part);
        return undefined;
      case 'choice':
        return this.#choice(node.options);
      case 'repeat':
        return this.#repeat(node.body, node.min, node.max);
    }
  }

  #choice(options: readonly PatternNode[]): void {
    const jumps: number[] = [];
    for (const option of options.slice(0, -1)) {
      const fork = this.#put(OP.fork, this.#ops.length + 1);
      this.#add(option);
      jumps.push(this.#put(OP.jump));
      this.#second[fork] = this.#ops.length;
    }
    const last = options.at(-1);
    if (last !== undefined) this.#add(last);
    for (const jump of jumps) this.#first[jump] = this.#ops.length;
  }

  #repeat(body: PatternNode, min: number, max: number): void {
    for (let time = 0; time < min; time++) this.#add(body);
    const forks: number[] = [];
    for (let time = min; time < (max === Infinity ? min + 1 : max); time++) {
      forks.push(this.#put(OP.fork, this.#ops.length + 1));
      this.#add(body);
    }
    if (max === Infinity) this.#put(OP.jump, forks[0] ?? 0);
    for (const fork of forks) this.#second[fork] = this.#ops.length;
  }
}

export function compilePattern(node: PatternNode): Programs {
  const build = new Build();
  const main = new Assembly(build, false).assemble(node);
  return { main, looks: build.looks, atoms: [...build.atoms.keys()] };
}
