/** A place between two characters that a pattern asks about. */
export type Edge = 'start' | 'end' | 'word' | 'no_word';

/** A pattern, taken apart. */
export type PatternNode =
  /** One character: a literal, an escape, a class or a dot, as it was written. */
  | { readonly type: 'atom'; readonly source: string }
  | { readonly type: 'sequence'; readonly parts: readonly PatternNode[] }
  | { readonly type: 'choice'; readonly options: readonly PatternNode[] }
  | { readonly type: 'repeat'; readonly body: PatternNode; readonly min: number; readonly max: number }
  | { readonly type: 'edge'; readonly edge: Edge }
  | { readonly type: 'look'; readonly body: PatternNode; readonly ahead: boolean; readonly negated: boolean };

/** Groups in groups: deeper than anyone writes, and nothing that walks a pattern overflows on it. */
const DEPTH_MAX = 64;

const EDGES: Readonly<Record<string, Edge>> = { '^': 'start', $: 'end', '\\b': 'word', '\\B': 'no_word' };

/**
 * One thing that a pattern is made of. A class ends at its first bracket that is not escaped, also where it is empty.
 */
const UNICODE_TOKEN =
  /\[(?:\\[\s\S]|[^\\\]])*\]|\\u\{[\da-f]+\}|\\ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\c[a-z]|\\p\{[^}]*\}|\\k<[^>]*>|\\[\s\S]|\(\?(?:<?[=!]|:|<[^>]*>|[a-z-]*:)|[\s\S]/iuy;
const PLAIN_TOKEN = /\[(?:\\[\s\S]|[^\\\]])*\]|\\[\s\S]|\(\?(?:<?[=!]|:|<[^>]*>|[a-z-]*:)|[\s\S]/iy;
const TIMES = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y;

const LOOKS: Readonly<Record<string, { readonly ahead: boolean; readonly negated: boolean }>> = {
  '(?=': { ahead: true, negated: false },
  '(?!': { ahead: true, negated: true },
  '(?<=': { ahead: false, negated: false },
  '(?<!': { ahead: false, negated: true },
};

/** What an automaton cannot do, and what to write instead. */
const refusalOf = (token: string, unicode: boolean): string | undefined => {
  if (/^\\(?:[1-9]|k)/.test(token)) return 'it refers back to what a group matched; write out what may stand there';
  if (/^\(\?[a-z-]*:$/i.test(token) && token !== '(?:') return 'it changes its flags inside; write both cases out';
  return !unicode && /^\\[cpux]/i.test(token)
    ? 'it escapes a character in a way that needs the flag u; write the character itself'
    : undefined;
};

/** How often what stands before the place is repeated. */
const timesOf = ([, sign, least = '0', comma, most = '']: RegExpExecArray): {
  readonly min: number;
  readonly max: number;
} => {
  if (sign !== undefined) return { min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity };
  return { min: Number(least), max: comma === '' ? Number(least) : most === '' ? Infinity : Number(most) };
};

/**
 * Takes apart a pattern that the platform's own `RegExp` has accepted.
 * @throws RangeError for what has no automaton, or is nested too deeply; its message ends a sentence
 */
export function parsePattern(pattern: string, unicode: boolean): PatternNode {
  const token = new RegExp(unicode ? UNICODE_TOKEN : PLAIN_TOKEN);
  let at = 0;

  const take = (): string => {
    token.lastIndex = at;
    const [taken = ''] = token.exec(pattern) ?? [];
    at += taken.length;
    const refusal = refusalOf(taken, unicode);
    if (refusal !== undefined) throw new RangeError(refusal);
    return taken;
  };
  const repeated = (body: PatternNode): PatternNode => {
    TIMES.lastIndex = at;
    const times = TIMES.exec(pattern);
    if (times === null) return body;
    at += times[0].length;
    return { type: 'repeat', body, ...timesOf(times) };
  };
  const partOf = (taken: string, depth: number): PatternNode => {
    const edge = EDGES[taken];
    if (edge !== undefined) return { type: 'edge', edge };
    if (!taken.startsWith('(')) return { type: 'atom', source: taken };
    const body = choice(depth + 1);
    const look = LOOKS[taken];
    return look === undefined ? body : { type: 'look', body, ...look };
  };
  /** Up to the bracket that ends it, which is taken, or the end of the pattern. */
  const choice = (depth: number): PatternNode => {
    if (depth > DEPTH_MAX) throw new RangeError(`it nests groups more than ${DEPTH_MAX} deep; flatten it`);
    const options: PatternNode[] = [];
    let parts: PatternNode[] = [];
    while (at < pattern.length) {
      const taken = take();
      if (taken === ')') break;
      if (taken !== '|') parts.push(repeated(partOf(taken, depth)));
      else {
        options.push({ type: 'sequence', parts });
        parts = [];
      }
    }
    return options.length === 0
      ? { type: 'sequence', parts }
      : { type: 'choice', options: [...options, { type: 'sequence', parts }] };
  };
  return choice(0);
}
