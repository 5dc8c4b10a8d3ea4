import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Path } from '../../formats/yaml.ts';

/** `${flights.items[0].id}`: a node, and where in its value. */
export interface Reference {
  readonly node: string;
  readonly path: readonly (string | number)[];
  /** As written. */
  readonly text: string;
}

type Part = string | Reference;
type Values = Readonly<Record<string, unknown>>;

/** An input with its references found, to be filled in when their values are there. */
export interface InputTemplate {
  /** Every reference, and where in the input it stands. */
  readonly references: ReadonlyArray<{ readonly reference: Reference; readonly at: Path }>;
  /** What is wrong with the input, and where. */
  readonly problems: ReadonlyArray<{ readonly message: string; readonly at: Path }>;
  /** The input as a plan that is stored has it: references as `$result`, and texts with references as `$text`. */
  readonly data: unknown;
  /** @throws ToolExecutionError of kind `invalid_parameters` for a path that the value does not have */
  readonly fill: (values: Values) => unknown;
}

const REFERENCE = /^([A-Za-z0-9_-]+)((?:\.[^.[\]{}\s]+|\[\d{1,9}\]|\["[^"\\]*"\])*)$/;
const STEP = /\.([^.[\]{}\s]+)|\[(\d{1,9})\]|\["([^"\\]*)"\]/g;

const parseReference = (text: string): Reference | undefined => {
  const [, node, steps] = REFERENCE.exec(text.slice(2, -1)) ?? [];
  if (node === undefined || steps === undefined) return undefined;
  const path = [...steps.matchAll(STEP)].map(([, key, index, quoted]) =>
    index === undefined ? (key ?? quoted ?? '') : Number(index),
  );
  return { node, path, text };
};

/** Literal text and references, in order; a message where it is neither. */
const parseText = (text: string): Part[] | string => {
  const parts: Part[] = [];
  // An escaped opening, a whole reference, or one that is never closed.
  for (const piece of text.split(/(\$\$\{|\$\{[^{}]*\}|\$\{)/)) {
    if (piece === '$${') parts.push('${');
    else if (!piece.startsWith('${')) parts.push(piece);
    else {
      const reference = parseReference(piece);
      if (reference === undefined)
        return (
          `${piece.slice(0, 80)} is no reference; write \${node}, \${node.key} or \${node.list[0]}, or ` +
          `$\${ for a plain \${`
        );
      parts.push(reference);
    }
  }
  return parts.filter((part) => part !== '');
};

const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'nothing';
  return Array.isArray(value)
    ? `a list of ${value.length}`
    : typeof value === 'object'
      ? 'a mapping'
      : `a ${typeof value}`;
};

const lookUp = ({ node, path, text }: Reference, values: Values): unknown => {
  let value: unknown = values[node];
  let reached = node;
  for (const step of path) {
    const has = Array.isArray(value)
      ? typeof step === 'number' && step < value.length
      : typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    if (!has) {
      throw new ToolExecutionError(
        'invalid_parameters',
        `${text} has no value: ${reached} is ${kindOf(value)} without ` +
          (typeof step === 'number' ? `an item ${step}` : `a key ${step}`),
      );
    }
    value = (value as Record<string | number, unknown>)[step];
    reached += typeof step === 'number' ? `[${step}]` : `.${step}`;
  }
  return value;
};

/** A value inside a text: a text as it is, all else as JSON. */
export const inText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

const fillText = (parts: readonly Part[], values: Values): unknown => {
  const [only] = parts;
  // A reference alone keeps the type of its value.
  if (parts.length === 1 && typeof only === 'object') return lookUp(only, values);
  return parts.map((part) => (typeof part === 'string' ? part : inText(lookUp(part, values)))).join('');
};

const dataOf = (part: Part): unknown => {
  if (typeof part === 'string') return part;
  return part.path.length === 0 ? { $result: part.node } : { $result: part.node, path: part.path };
};

/** An input, its references as data; one that is no reference is left as it is. */
const asData = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asData);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asData(item)]));
  const parts = typeof value === 'string' ? parseText(value) : undefined;
  if (parts === undefined || typeof parts === 'string') return value;
  const [only] = parts;
  if (parts.length === 0) return '';
  return parts.length === 1 && only !== undefined ? dataOf(only) : { $text: parts.map(dataOf) };
};

/** Finds the references in an input, whatever its depth. */
export function inputTemplate(input: unknown): InputTemplate {
  const references: { reference: Reference; at: Path }[] = [];
  const problems: { message: string; at: Path }[] = [];

  const compile = (value: unknown, at: Path): ((values: Values) => unknown) => {
    if (typeof value === 'string') {
      const parts = parseText(value);
      if (typeof parts === 'string') {
        problems.push({ message: parts, at });
        return () => value;
      }
      for (const part of parts) if (typeof part === 'object') references.push({ reference: part, at });
      return (values) => fillText(parts, values);
    }
    if (typeof value === 'number' && !Number.isFinite(value))
      problems.push({
        message: `must be a number that JSON knows, not ${value}; leave it out or write it as a text`,
        at,
      });
    if (Array.isArray(value)) {
      const items = value.map((item, index) => compile(item, [...at, index]));
      return (values) => items.map((fill) => fill(values));
    }
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([key, item]) => [key, compile(item, [...at, key])] as const);
      return (values) => Object.fromEntries(entries.map(([key, fill]) => [key, fill(values)]));
    }
    return () => value;
  };

  const fill = compile(input, []);
  return {
    references,
    problems,
    fill,
    get data() {
      return asData(input);
    },
  };
}
