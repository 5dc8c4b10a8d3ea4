import { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument, type Alias, type Document, type Pair } from 'yaml';
import type { Path } from './references.ts';

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

/** Nesting that a plan can use, and that nothing which walks it recursively overflows on. */
const DEPTH_MAX = 64;
/** Values in all, aliases unfolded: a YAML bomb has billions. */
const VALUES_MAX = 200_000;
/** yaml's own guard against bombs, at its default; here because it is a limit that we rely on. */
const ALIASES_MAX = 100;

const WORDS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'holds more than one document; leave one, without ---',
  NON_STRING_KEY: 'a key must be a text, not a list or a mapping',
  TAG_RESOLVE_FAILED: 'tags (!...) are not understood; write the plain value',
  BAD_ALIAS: 'an alias must come after its anchor',
  RESOURCE_EXHAUSTION: `is nested too deeply; the limit is ${DEPTH_MAX} levels`,
};

/** What a tag may say: the types that JSON has too. */
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

const keyText = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : '');
const offsetOf = (node: unknown): number | undefined => (node as { range?: readonly [number, number, number] | null } | null)?.range?.[0];

/** Walks a document once, aliases unfolded, and finds what would hurt whoever walks its value later. Nothing is found twice. */
const inspect = (document: Document): Problem[] => {
  const problems: Problem[] = [];
  const anchors = new Map<string, unknown>();
  const open = new Set<unknown>();
  let values = 0;

  const follow = (alias: Alias, at: Path): void => {
    const offset = offsetOf(alias) ?? 0;
    const target = anchors.get(alias.source);
    if (target === undefined) problems.push({ message: `there is no anchor &${alias.source} before *${alias.source}`, at, offset });
    else if (open.has(target)) problems.push({ message: `*${alias.source} stands inside what it refers to; a plan cannot contain itself`, at, offset });
    else walk(target, at);
  };

  const walk = (node: unknown, at: Path): void => {
    // One complaint is enough, and goes on costing nothing.
    if (values > VALUES_MAX || problems.length > 100) return;
    if (++values > VALUES_MAX) return void problems.push({ message: `holds more than ${VALUES_MAX} values with its aliases unfolded; a plan needs far fewer`, at: [] });
    if (at.length > DEPTH_MAX) return void problems.push({ message: `is nested too deeply; the limit is ${DEPTH_MAX} levels`, at: at.slice(0, 4) });
    if (isAlias(node)) return follow(node, at);
    const { anchor, tag } = (node ?? {}) as { anchor?: string; tag?: string };
    if (anchor !== undefined) anchors.set(anchor, node);
    if (tag !== undefined && !PLAIN_TAG.test(tag)) problems.push({ message: WORDS['TAG_RESOLVE_FAILED'] ?? tag, at });
    open.add(node);
    if (isMap(node)) {
      const seen = new Set<string>();
      for (const pair of node.items) {
        const key = keyText(pair);
        if (seen.has(key)) problems.push({ message: `the key ${JSON.stringify(key)} is there twice; remove one of them`, at: [...at, key], offset: offsetOf(pair.key) ?? 0 });
        seen.add(key);
        walk(pair.value, [...at, key]);
      }
    } else if (isSeq(node)) {
      node.items.forEach((item, index) => walk(item, [...at, index]));
    } else if (isScalar(node) && typeof node.value === 'number' && /^[-+]?\d+$/.test(node.source ?? '') && !Number.isSafeInteger(node.value)) {
      problems.push({ message: `${node.source ?? ''} is too large to be kept exactly; put it in quotes`, at });
    }
    open.delete(node);
  };

  walk(document.contents, []);
  return problems;
};

/** The offset of a path's value (or key), or of the nearest place above it. */
const offsetAt = (document: Document, path: Path, atKey: boolean): number => {
  let node: unknown = document.contents;
  let offset = offsetOf(node) ?? 0;
  for (const [depth, step] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    const pair = isMap(node) ? node.items.find((item) => keyText(item) === String(step)) : undefined;
    const next = pair === undefined ? (isSeq(node) && typeof step === 'number' ? node.items[step] : undefined) : pair.value;
    if (pair === undefined && next === undefined) return offset;
    offset = (atKey && depth === path.length - 1 ? undefined : offsetOf(next)) ?? offsetOf(pair?.key) ?? offset;
    node = next;
  }
  return offset;
};

/** Reads YAML that may be hostile: bombs, circles, deep nests and repeated keys are problems, not crashes. Never throws. */
export function readYaml(text: string): YamlFile {
  const lineCounter = new LineCounter();
  // yaml's own check of unique keys takes quadratic time: 30,000 keys, 27 seconds. `inspect` has one that does not.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, stringKeys: true, uniqueKeys: false, logLevel: 'error' });
  const problems: Problem[] = [...document.errors, ...document.warnings]
    .slice(0, 20)
    .map(({ code, message, pos }) => ({ message: WORDS[code] ?? `is not YAML: ${message}`, at: [], offset: pos[0] }));
  if (problems.length === 0) problems.push(...inspect(document));
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
