import { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml';

export type Path = readonly (string | number)[];

/** Something wrong in a manifest, and where. */
export interface Problem {
  /** The rule, what was found, and what to do. */
  readonly message: string;
  readonly at: Path;
  /** An offset in the text, where it is known better than by the path. */
  readonly offset?: number;
}

export interface YamlText {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** `line:column`, from 1, of what a problem is about, or of the nearest thing around it. */
  placeOf(problem: Problem): string;
}

const LENGTH_MAX = 1_048_576;
const DEPTH_MAX = 64;
const VALUES_MAX = 200_000;

const WORDS: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'holds more than one document; leave one, without ---',
  NON_STRING_KEY: 'a key must be a text, not a list or a mapping',
  TAG_RESOLVE_FAILED: 'tags (!...) are not understood; write the plain value',
  RESOURCE_EXHAUSTION: `is nested too deeply; the limit is ${DEPTH_MAX} levels`,
};
/** What a tag may say: the types that JSON has too. */
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

const keyOf = (key: unknown): string => (isScalar(key) ? String(key.value) : '');
const offsetOf = (node: unknown): number => (node as { range?: readonly [number, number, number] | null } | null)?.range?.[0] ?? 0;

/** Walks a document once and finds what would hurt whoever walks its value later. */
const inspect = (document: Document): Problem[] => {
  const problems: Problem[] = [];
  let values = 0;
  const walk = (node: unknown, at: Path): void => {
    if (problems.length > 0) return;
    const refuse = (message: string, place: unknown = node, path: Path = at): void => void problems.push({ message, at: path, offset: offsetOf(place) });
    if (++values > VALUES_MAX) return refuse(`holds more than ${VALUES_MAX} values; a manifest needs far fewer`, undefined, []);
    if (at.length > DEPTH_MAX) return refuse(`is nested too deeply; the limit is ${DEPTH_MAX} levels`, node, at.slice(0, 4));
    // Without them a text cannot unfold to more than it is.
    if (isAlias(node)) return refuse('aliases (*name) are not understood in a manifest; write the value out');
    const { tag } = (node ?? {}) as { tag?: string };
    if (tag !== undefined && !PLAIN_TAG.test(tag)) return refuse(WORDS['TAG_RESOLVE_FAILED'] ?? tag);
    if (isMap(node)) {
      const seen = new Set<string>();
      for (const { key, value } of node.items) {
        const name = keyOf(key);
        if (seen.has(name)) return refuse(`the key ${JSON.stringify(name)} is there twice; remove one of them`, key, [...at, name]);
        seen.add(name);
        walk(value, [...at, name]);
      }
    } else if (isSeq(node)) {
      node.items.forEach((item, index) => walk(item, [...at, index]));
    } else if (isScalar(node) && typeof node.value === 'number' && /^[-+]?\d+$/.test(node.source ?? '') && !Number.isSafeInteger(node.value)) {
      refuse(`${node.source ?? ''} is too large to be kept exactly; put it in quotes`);
    }
  };
  walk(document.contents, []);
  return problems;
};

const offsetAt = (document: Document, path: Path): number => {
  let node: unknown = document.contents;
  let offset = offsetOf(node);
  for (const step of path) {
    const pair = isMap(node) ? node.items.find(({ key }) => keyOf(key) === String(step)) : undefined;
    const next = pair === undefined && isSeq(node) && typeof step === 'number' ? node.items[step] : pair?.value;
    if (pair === undefined && next === undefined) return offset;
    offset = offsetOf(next) || offsetOf(pair?.key) || offset;
    node = next;
  }
  return offset;
};

/** Reads YAML that may be hostile: bombs, deep nests and repeated keys are problems, not crashes. Never throws. */
export function readYamlText(text: string): YamlText {
  if (text.length > LENGTH_MAX) return { value: undefined, problems: [{ message: `is longer than ${LENGTH_MAX} characters; a manifest needs far fewer`, at: [] }], placeOf: () => '1:1' };
  const lineCounter = new LineCounter();
  // yaml's own check of unique keys takes quadratic time.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, stringKeys: true, uniqueKeys: false, logLevel: 'error' });
  const parsed = [...document.errors, ...document.warnings].slice(0, 10).map(({ code, message, pos }) => ({ message: WORDS[code] ?? `is not YAML: ${message}`, at: [], offset: pos[0] }));
  const problems: readonly Problem[] = parsed.length > 0 ? parsed : inspect(document);
  return {
    value: problems.length === 0 ? (document.toJS() as unknown) : undefined,
    problems,
    placeOf: ({ at, offset }) => {
      const { line, col } = lineCounter.linePos(offset ?? offsetAt(document, at));
      return `${Math.max(1, line)}:${Math.max(1, col)}`;
    },
  };
}
