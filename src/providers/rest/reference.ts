import { ownValue, scalar, type RestInput } from './url.ts';

/** Gives the value of a variable, or throws a `RangeError` that names it. */
export type Variables = (name: string) => string;

/** A text or a value with `${name}` in it, for properties of the input. */
export interface Template<T> {
  /** The properties that it uses. */
  readonly names: readonly string[];
  /** Whether a variable of the environment is part of it. */
  readonly secret: boolean;
  /** `undefined` where it refers to a property that the input leaves out. */
  fill(input: RestInput): T | undefined;
}

interface Reference {
  readonly text: string;
  readonly path: readonly string[];
}

const DEPTH_MAX = 64;
const REFERENCE = /\$\$\{|\$\{([^{}]*)\}?/g;
const PATH = /^[A-Za-z_][\w-]*(?:\.[\w-]+)*$/;

const at = (input: RestInput, [name = '', ...steps]: readonly string[]): unknown =>
  steps.reduce<unknown>(
    (value, step) => (typeof value === 'object' && value !== null ? ownValue(value as RestInput, step) : undefined),
    ownValue(input, name),
  );

const noVariables: Variables = (name) => {
  throw new RangeError(`\${env:${name}} may stand in headers only; secrets in a URL or a body end up in logs`);
};

const partsOf = (
  template: string,
  variables: Variables,
): { readonly parts: readonly (string | Reference)[]; readonly secret: boolean } => {
  const parts: (string | Reference)[] = [];
  let secret = false;
  let from = 0;
  for (const { 0: text, 1: inner, index } of template.matchAll(REFERENCE)) {
    parts.push(template.slice(from, index));
    from = index + text.length;
    if (inner === undefined) {
      parts.push('${');
    } else if (/^env:[A-Za-z_]\w*$/.test(inner)) {
      parts.push(variables(inner.slice(4)));
      secret = true;
    } else if (text.endsWith('}') && PATH.test(inner)) {
      parts.push({ text, path: inner.split('.') });
    } else {
      throw new RangeError(
        `\${${inner.slice(0, 32)}} is no reference; write \${name} for a property of the ` +
          `input${variables === noVariables ? '' : ', ${env:NAME} for a variable'}, or $\${ for a plain \${`,
      );
    }
  }
  parts.push(template.slice(from));
  return { parts: parts.filter((part) => part !== ''), secret };
};

const namesOf = (parts: readonly (string | Reference)[]): string[] =>
  parts.flatMap((part) => (typeof part === 'string' ? [] : [part.path[0] ?? '']));

const fillText = (parts: readonly (string | Reference)[], input: RestInput, where: string): string | undefined => {
  let filled = '';
  for (const part of parts) {
    const value = typeof part === 'string' ? part : at(input, part.path);
    if (value === undefined || value === null) return undefined;
    filled += typeof part === 'string' ? part : scalar(value, part.path.join('.'), where);
  }
  return filled;
};

/**
 * Reads a text with `${name}` and `${env:NAME}` in it; variables are put in at once.
 * @throws RangeError for a reference that is none, or a variable that is not there
 */
export function textTemplate(template: string, where: string, variables: Variables): Template<string> {
  const { parts, secret } = partsOf(template, variables);
  return { names: namesOf(parts), secret, fill: (input) => fillText(parts, input, where) };
}

/**
 * Reads a value with `${name}` in its texts: a text that is one reference becomes what it refers to, of any type.
 * Keys whose text refers to what the input leaves out are left out.
 *
 * @throws RangeError for a reference that is none
 */
export function valueTemplate(template: unknown, depth = 0): Template<unknown> {
  if (depth > DEPTH_MAX) throw new RangeError(`is nested too deeply; the limit is ${DEPTH_MAX} levels`);
  if (typeof template === 'string') {
    const { parts } = partsOf(template, noVariables);
    const [only] = parts;
    const fill =
      parts.length === 1 && typeof only === 'object'
        ? (input: RestInput) => at(input, only.path)
        : (input: RestInput) => fillText(parts, input, 'a text of the body');
    return { names: namesOf(parts), secret: false, fill };
  }
  if (typeof template !== 'object' || template === null) return { names: [], secret: false, fill: () => template };
  const entries = Object.entries(template).map(([key, value]) => [key, valueTemplate(value, depth + 1)] as const);
  const fillEntries = (input: RestInput): [string, unknown][] =>
    entries
      .map(([key, inner]) => [key, inner.fill(input)] as [string, unknown])
      .filter(([, value]) => value !== undefined);
  return {
    names: entries.flatMap(([, inner]) => inner.names),
    secret: false,
    fill: Array.isArray(template)
      ? (input) => fillEntries(input).map(([, value]) => value)
      : (input) => Object.fromEntries(fillEntries(input)),
  };
}
