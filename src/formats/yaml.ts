import { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { Alias, Document, Pair, YAMLMap } from 'yaml';

/** A place in a file: keys and indexes from the top. */
export type Path = readonly (string | number)[];

/** Something wrong in a file, and where. */
export interface Problem {
  /** The rule, what was found, and what to do. */
  readonly message: string;
  readonly at: Path;
  /** It is about the last key of the path, not about what stands there. */
  readonly atKey?: boolean;
  /** An offset in the text, where it is known better than by the path. */
  readonly offset?: number;
}

/** A YAML file as data, with a way back from a path to a place in the text. */
export interface YamlFile {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** The line and column, from 1, of what a problem is about, or of the nearest thing around it. */
  positionOf(problem: Problem): { readonly line: number; readonly column: number };
}

/** JSON Schema's and zod's names of types, as a writer of YAML knows them. */
export const TYPE_WORDS: Readonly<Record<string, string>> = {
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
};

/** What a kind of file is called in its messages, and what it may hold. */
export interface YamlKind {
  /** A noun: `plan`, `manifest`. */
  readonly name: string;
  /** Whether `*name` may stand for what `&name` marks. Default true. */
  readonly aliases?: boolean;
  /** Characters in all. Default: no limit, for a text whose reader has one of its own. */
  readonly maxLength?: number;
}

/** Nesting that a file can use, and that nothing which walks it recursively overflows on. */
const DEPTH_MAX = 64;
/** Values in all, aliases unfolded: a YAML bomb has billions. */
const VALUES_MAX = 200_000;
/** yaml's own guard against bombs, at its default; here because it is a limit that we rely on. */
const ALIASES_MAX = 100;
/** One complaint is enough for a bomb; a person reads no more than these. */
const PROBLEMS_MAX = 100;

const TOO_DEEP = `is nested too deeply; the limit is ${DEPTH_MAX} levels`;
const NO_TAGS = 'tags (!...) are not understood; write the plain value';
const WORDS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'holds more than one document; leave one, without ---',
  NON_STRING_KEY: 'a key must be a text, not a list or a mapping',
  TAG_RESOLVE_FAILED: NO_TAGS,
  BAD_ALIAS: 'an alias must come after its anchor',
  RESOURCE_EXHAUSTION: TOO_DEEP,
};

/** What a tag may say: the types that JSON has too. */
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

const keyText = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : '');
const offsetOf = (node: unknown): number | undefined =>
  (node as { range?: readonly [number, number, number] | null } | null)?.range?.[0];

/** Walks a document once, aliases unfolded, and finds what would hurt whoever walks its value later. */
class Inspection {
  readonly problems: Problem[] = [];
  readonly #kind: YamlKind;
  readonly #anchors = new Map<string, unknown>();
  readonly #open = new Set<unknown>();
  #values = 0;

  constructor(kind: YamlKind) {
    this.#kind = kind;
  }

  walk(node: unknown, at: Path): void {
    if (this.#values > VALUES_MAX || this.problems.length > PROBLEMS_MAX) return;
    if (++this.#values > VALUES_MAX) {
      const limit = `${VALUES_MAX} values with its aliases unfolded`;
      this.#refuse(`holds more than ${limit}; a ${this.#kind.name} needs far fewer`, []);
      return;
    }
    if (at.length > DEPTH_MAX) return this.#refuse(TOO_DEEP, at.slice(0, 4));
    if (isAlias(node)) return this.#follow(node, at);
    const { anchor, tag } = (node ?? {}) as { anchor?: string; tag?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    if (tag !== undefined && !PLAIN_TAG.test(tag)) this.#refuse(NO_TAGS, at);
    this.#open.add(node);
    if (isMap(node)) this.#walkMap(node, at);
    else if (isSeq(node)) node.items.forEach((item, index) => this.walk(item, [...at, index]));
    else this.#checkNumber(node, at);
    this.#open.delete(node);
  }

  #refuse(message: string, at: Path, offset?: number): void {
    this.problems.push({ message, at, ...(offset === undefined ? {} : { offset }) });
  }

  #follow(alias: Alias, at: Path): void {
    const { name, aliases = true } = this.#kind;
    const offset = offsetOf(alias) ?? 0;
    const refuse = (message: string): void => this.#refuse(message, at, offset);
    if (!aliases) return refuse(`aliases (*name) are not understood in a ${name}; write the value out`);
    const target = this.#anchors.get(alias.source);
    if (target === undefined) return refuse(`there is no anchor &${alias.source} before *${alias.source}`);
    if (!this.#open.has(target)) return this.walk(target, at);
    refuse(`*${alias.source} stands inside what it refers to; a ${name} cannot contain itself`);
  }

  #walkMap(map: YAMLMap, at: Path): void {
    const seen = new Set<string>();
    for (const pair of map.items) {
      const key = keyText(pair);
      const place = [...at, key];
      const twice = `the key ${JSON.stringify(key)} is there twice; remove one of them`;
      if (seen.has(key)) this.#refuse(twice, place, offsetOf(pair.key) ?? 0);
      seen.add(key);
      this.walk(pair.value, place);
    }
  }

  #checkNumber(node: unknown, at: Path): void {
    if (!isScalar(node) || typeof node.value !== 'number') return;
    const { source = '', value } = node;
    if (!/^[-+]?\d+$/.test(source) || Number.isSafeInteger(value)) return;
    this.#refuse(`${source} is too large to be kept exactly; put it in quotes`, at);
  }
}

/** The offset of a path's value (or key), or of the nearest place above it. */
const offsetAt = (document: Document, path: Path, atKey: boolean): number => {
  let node: unknown = document.contents;
  let offset = offsetOf(node) ?? 0;
  for (const [depth, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    const pair = isMap(node) ? node.items.find((item) => keyText(item) === String(step)) : undefined;
    const item = isSeq(node) && typeof step === 'number' ? node.items[step] : undefined;
    const next = pair === undefined ? item : pair.value;
    if (pair === undefined && next === undefined) return offset;
    offset = (atKey && depth === path.length - 1 ? undefined : offsetOf(next)) ?? offsetOf(pair?.key) ?? offset;
    node = next;
  }
  return offset;
};

const problemsIn = (document: Document, kind: YamlKind): Problem[] => {
  const unread = [...document.errors, ...document.warnings].slice(0, 20);
  if (unread.length > 0) {
    return unread.map(({ code, message, pos }) => ({
      message: WORDS[code] ?? `is not YAML: ${message}`,
      at: [],
      offset: pos[0],
    }));
  }
  const inspection = new Inspection(kind);
  inspection.walk(document.contents, []);
  return inspection.problems;
};

/**
 * Reads YAML (and JSON, which is YAML too) that may be hostile: bombs, circles, deep nests and repeated keys are
 * problems, not crashes.
 */
export function readYaml(text: string, kind: YamlKind): YamlFile {
  const { name, maxLength = Infinity } = kind;
  if (text.length > maxLength) {
    const message = `is longer than ${maxLength} characters; a ${name} needs far fewer`;
    return { value: undefined, problems: [{ message, at: [] }], positionOf: () => ({ line: 1, column: 1 }) };
  }
  const lineCounter = new LineCounter();
  // yaml's own check of unique keys takes quadratic time: 30,000 keys, 27 seconds. The inspection has one of its own.
  const options = { prettyErrors: false, stringKeys: true, uniqueKeys: false, logLevel: 'error' } as const;
  const document = parseDocument(text, { lineCounter, ...options });
  const problems = problemsIn(document, kind);
  let value: unknown;
  if (problems.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown;
    } catch {
      problems.push({ message: 'its aliases unfold to too many values; write them out, or use fewer', at: [] });
    }
  }
  return {
    value,
    problems,
    positionOf: ({ at, offset, atKey = false }) => {
      const { line, col } = lineCounter.linePos(offset ?? offsetAt(document, at, atKey));
      return { line: Math.max(1, line), column: Math.max(1, col) };
    },
  };
}
