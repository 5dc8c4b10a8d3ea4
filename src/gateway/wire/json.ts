/** A piece of a text: from a place up to another. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A piece of a text that is to become another. */
export interface Edit extends Span {
  readonly text: string;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The place after a string that begins at `at`. Each quote's backslashes are counted once. */
const afterString = (text: string, at: number): number => {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
};

/**
 * Whether a text that may be JSON nests deeper than `max`. Linear, without recursion: it is asked before anything
 * parses the text.
 */
export function nestsDeeper(text: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = afterString(text, at) - 1;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth > max) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return false;
}

/** A name as it is read, however it is spelled. */
const nameOf = (spelled: string): string =>
  spelled.includes('\\') ? String(JSON.parse(spelled)) : spelled.slice(1, -1);

/**
 * The name of a member that an object of a text that is JSON has twice; `undefined` for none. Parsers differ in which
 * of the two they take: what was checked here would not be what the upstream reads. Linear, without recursion.
 */
export function doubledMember(text: string): string | undefined {
  /** Of each object that is open, its names; none for a list. */
  const open: Array<Set<string> | undefined> = [];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = afterString(text, at);
      const names = open.at(-1);
      if (names !== undefined && text.charCodeAt(skipSpace(text, end)) === COLON) {
        const name = nameOf(text.slice(at, end));
        if (names.has(name)) return name;
        names.add(name);
      }
      at = end - 1;
    } else if (code === OPEN_OBJECT) open.push(new Set());
    else if (code === OPEN_LIST) open.push(undefined);
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) open.pop();
  }
  return undefined;
}

const skipSpace = (text: string, from: number): number => {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return at;
};

/** The place after a value that begins at `from`. */
const afterValue = (text: string, from: number): number => {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = afterString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (code === OPEN_LIST || code === OPEN_OBJECT) depth++;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (code === COMMA || code <= 0x20)) return at;
    at++;
  }
  return at;
};

/** The elements of a list in a text that is JSON, in order. `at`: where it begins. */
export function elementsOf(text: string, at: number): Span[] {
  const spans: Span[] = [];
  for (let from = skipSpace(text, at + 1); from < text.length && text.charCodeAt(from) !== CLOSE_LIST;) {
    const to = afterValue(text, from);
    spans.push({ from, to });
    const next = skipSpace(text, to);
    from = text.charCodeAt(next) === COMMA ? skipSpace(text, next + 1) : next;
  }
  return spans;
}

/**
 * The values of an object in a text that is JSON, by name; of two with one name the last, as parsers have it. `at`:
 * where it begins.
 */
export function membersOf(text: string, at: number): ReadonlyMap<string, Span> {
  const spans = new Map<string, Span>();
  for (let from = skipSpace(text, at + 1); from < text.length && text.charCodeAt(from) !== CLOSE_OBJECT;) {
    const keyTo = afterString(text, from);
    const colon = skipSpace(text, keyTo);
    const valueFrom = skipSpace(text, text.charCodeAt(colon) === COLON ? colon + 1 : colon);
    const to = afterValue(text, valueFrom);
    spans.set(String(JSON.parse(text.slice(from, keyTo))), { from: valueFrom, to });
    const next = skipSpace(text, to);
    from = text.charCodeAt(next) === COMMA ? skipSpace(text, next + 1) : next;
  }
  return spans;
}

/** Where the JSON value of a text begins. */
export const startOf = (text: string): number => skipSpace(text, 0);

/** The elements of a list that stands alone. */
export const piecesOf = (list: string): string[] =>
  elementsOf(list, startOf(list)).map(({ from, to }) => list.slice(from, to));

/** A text with pieces of it replaced. What is not named stays as it is, to the byte. */
export function edited(text: string, edits: readonly Edit[]): string {
  let done = 0;
  let out = '';
  for (const { from, to, text: put } of edits.toSorted((a, b) => a.from - b.from)) {
    out += text.slice(done, from) + put;
    done = to;
  }
  return out + text.slice(done);
}

/** The edit that gives an object a member, in place of the one it has or before all others. */
export function memberEdit(text: string, members: ReadonlyMap<string, Span>, name: string, value: string): Edit {
  const span = members.get(name);
  if (span !== undefined) return { ...span, text: value };
  const at = startOf(text) + 1;
  return { from: at, to: at, text: `${JSON.stringify(name)}:${value}${members.size === 0 ? '' : ','}` };
}
