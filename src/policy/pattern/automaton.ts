import type { Alphabet, CharacterClass } from './alphabet.ts';
import { takeStep, type StepBudget } from './budget.ts';
import { ASKS, OP, type Program } from './program.ts';

/** Where the automaton is between two characters: the instructions that go on from there. */
interface State {
  readonly places: Uint16Array;
  /** Of the character read last: none, no word's, or a word's. */
  readonly behind: number;
  moves?: Map<number, Move>;
}

interface Move {
  readonly matched: boolean;
  readonly next: State;
}

/** Kept in mind between texts, so that what comes again is one look. */
const STATES_MAX = 1_000;
const MOVES_MAX = 20_000;
/**
 * How often a text may fill the table: if it makes new states all the time, to keep large ones costs more than to make
 * them.
 */
const FORGETS_MAX = 2;
const SMALL = 8;
/** What an instruction that is reached costs, in steps, and a place that is kept. */
const REACHED_COST = 1;
const PLACE_COST = 2;
/** A state and a move, however small. */
const MOVE_COST = 60;
/** Arguments of a call. */
const KEY_PIECE = 8_192;
/** More than there are classes of characters; the places of look-arounds are kept above it. */
const CLASSES = 2 ** 17;

const BEHIND = { nothing: 0, other: 1, word: 2 } as const;

const keyOf = (places: Uint16Array, behind: number): string => {
  let key = String.fromCharCode(behind);
  for (let at = 0; at < places.length; at += KEY_PIECE)
    key += Reflect.apply(String.fromCharCode, undefined, places.subarray(at, at + KEY_PIECE)) as string;
  return key;
};

const holds = (asked: number, behind: number, ahead: number): boolean => {
  if (asked === ASKS.nothingBehind) return behind === BEHIND.nothing;
  if (asked === ASKS.nothingAhead) return ahead === BEHIND.nothing;
  return ((behind === BEHIND.word) !== (ahead === BEHIND.word)) === (asked === ASKS.word);
};

/**
 * Runs a program over texts, in all places at once (Thompson's way), with the moves it has made kept in a table, as RE2
 * does. The work for a text is at most a fixed number of steps for each of its characters, whatever the pattern and the
 * text.
 */
export class Automaton {
  readonly #program: Program;
  readonly #alphabet: Alphabet;
  readonly #states = new Map<string, State>();
  #moves = 0;
  /** How often this text has filled the table. */
  #forgets = 0;
  /** Instructions reached without reading, in this round; each once. */
  readonly #reached: Uint32Array;
  readonly #seen: Uint32Array;
  #round = 0;

  constructor(program: Program, alphabet: Alphabet) {
    this.#program = program;
    this.#alphabet = alphabet;
    this.#reached = new Uint32Array(program.ops.length);
    this.#seen = new Uint32Array(program.ops.length);
  }

  /**
   * @param text code points, or code units
   * @param looks for each look-around the places where it holds
   * @param places takes a 1 for each place where a match ends; without it the first match ends the reading
   * @throws PatternCostError
   */
  read(text: Uint32Array, looks: readonly Uint8Array[], budget: StepBudget, places?: Uint8Array): boolean {
    const { backward } = this.#program;
    const { length } = text;
    this.#forgets = 0;
    let state = this.#state(new Uint16Array(), BEHIND.nothing);
    let matched = false;
    takeStep(budget, length);
    for (let done = 0; done <= length; done++) {
      const place = backward ? length - done : done;
      const ahead =
        done === length ? undefined : this.#alphabet.classOf(text[backward ? place - 1 : place] ?? 0, budget);
      let key = ahead === undefined ? 0 : ahead.index + 1;
      for (let look = 0; look < looks.length; look++) if (looks[look]?.[place] === 1) key += CLASSES * 2 ** look;
      const move = state.moves?.get(key) ?? this.#move(state, key, ahead, budget);
      if (move.matched) {
        if (places === undefined) return true;
        places[place] = 1;
        matched = true;
      }
      state = move.next;
    }
    return matched;
  }

  #move(from: State, key: number, ahead: CharacterClass | undefined, budget: StepBudget): Move {
    const { ops, first } = this.#program;
    const aheadIs = ahead === undefined ? BEHIND.nothing : ahead.isWord ? BEHIND.word : BEHIND.other;
    const count = this.#reach(from, aheadIs, Math.floor(key / CLASSES));
    const places = new Uint16Array(count);
    let kept = 0;
    let matched = false;
    for (let index = 0; index < count; index++) {
      const at = this.#reached[index] ?? 0;
      if (ops[at] === OP.match) matched = true;
      else if (ops[at] === OP.atom && ahead?.readBy[first[at] ?? 0] === 1) places[kept++] = at + 1;
    }
    takeStep(budget, MOVE_COST + count * REACHED_COST + kept * PLACE_COST);
    // In one order, so that the same places are the same state.
    const next = this.#state(this.#keeps(kept) ? places.subarray(0, kept).toSorted() : places.slice(0, kept), aheadIs);
    const move = { matched, next };
    if (!this.#keeps(from.places.length)) return move;
    if (++this.#moves > MOVES_MAX) this.#forget();
    else (from.moves ??= new Map<number, Move>()).set(key, move);
    return move;
  }

  /** Finds all instructions that are reached from a state, and from the start, without reading. Gives their number. */
  #reach({ places, behind }: State, aheadIs: number, holding: number): number {
    const { ops, first, second } = this.#program;
    const [round, seen, reached] = [++this.#round, this.#seen, this.#reached];
    let count = 0;
    const add = (at: number): void => {
      if (seen[at] === round) return;
      seen[at] = round;
      reached[count++] = at;
    };
    // A match may begin at every place.
    add(0);
    for (const at of places) add(at);
    // Grows while it is walked.
    for (let index = 0; index < count; index++) {
      const at = reached[index] ?? 0;
      const op = ops[at];
      if (op === OP.atom || op === OP.match) continue;
      const one = first[at] ?? 0;
      const two = second[at] ?? 0;
      if (op === OP.fork) {
        add(one);
        add(two);
      } else if (op === OP.jump) add(one);
      else if (op === OP.edge ? holds(one, behind, aheadIs) : ((holding >> one) & 1) !== two) add(at + 1);
    }
    return count;
  }

  #state(places: Uint16Array, behind: number): State {
    if (!this.#keeps(places.length)) return { places, behind };
    const key = keyOf(places, behind);
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    if (this.#states.size >= STATES_MAX) this.#forget();
    const made: State = { places, behind };
    this.#states.set(key, made);
    return made;
  }

  #keeps(count: number): boolean {
    return count <= SMALL || this.#forgets <= FORGETS_MAX;
  }

  #forget(): void {
    this.#states.clear();
    this.#moves = 0;
    this.#forgets++;
  }
}
