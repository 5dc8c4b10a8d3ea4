import { canonicalJson } from '../../policy/key/canonical-json.ts';
import { sha256 } from '../../policy/key/sha256.ts';
import type { LoopLimits } from './limits.ts';
import type { ToolCallPart } from '../message.ts';

/** Calls that are remembered; the one made longest ago makes room. */
const CALLS_MAX = 1_000;

interface Repetition {
  readonly result: string;
  readonly times: number;
}

/**
 * An input, whatever the order of its keys. What has no canonical form, a lone surrogate say, is compared as it was
 * written; what is nested too deep for that, not at all.
 */
const written = (input: unknown): string => {
  for (const write of [
    (): string => canonicalJson(input, { volatile: [], maxChars: 100_000_000 }),
    (): string => JSON.stringify(input),
  ]) {
    try {
      return write();
    } catch {
      // The next one may take it.
    }
  }
  return '';
};

const keyOf = ({ name, input = null, unparsed }: ToolCallPart): string =>
  sha256(JSON.stringify([name, unparsed === undefined ? written(input) : null, unparsed ?? null]));

/** Sees a model go round in a circle: the same tool, the same input and the same result, time after time. */
export class LoopGuard {
  readonly #limits: LoopLimits | false;
  readonly #seen = new Map<string, Repetition>();

  constructor(limits: LoopLimits | false) {
    this.#limits = limits;
  }

  /** Why a call may not be made once more: a sentence for the model. */
  objection(call: ToolCallPart): string | undefined {
    const times = this.#limits === false || this.#seen.size === 0 ? 0 : (this.#seen.get(keyOf(call))?.times ?? 0);
    if (this.#limits === false || times + 1 < this.#limits.blockAt) return undefined;
    return (
      `It was made ${times} times with the same input and gave the same result each time. Use that ` +
      'result, or do something else.'
    );
  }

  /** Remembers a result, and gives the text that the model sees: with a note, once it is a repetition too many. */
  record(call: ToolCallPart, text: string): string {
    if (this.#limits === false) return text;
    const key = keyOf(call);
    const result = sha256(text);
    const before = this.#seen.get(key);
    const times = before?.result === result ? before.times + 1 : 1;
    this.#seen.delete(key);
    this.#seen.set(key, { result, times });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > CALLS_MAX && oldest !== undefined) this.#seen.delete(oldest);
    return times < this.#limits.warnAt
      ? text
      : `${text}\n\n[Note: this call was made ${times} times with the same input and gave the same result each time.]`;
  }
}
