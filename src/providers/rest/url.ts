import { ToolExecutionError } from '../../contract/tool-error.ts';
import { correctable } from '../../policy/advice.ts';

/** A tool's input, an object by then. */
export type RestInput = Readonly<Record<string, unknown>>;

/** Path and query of a request with places for the input's values: the part of RFC 6570 that cannot leave its place. */
export interface UrlTemplate {
  /** The properties of the input that stand in the path, and those that stand in the query. */
  readonly pathNames: readonly string[];
  readonly queryNames: readonly string[];
  /**
   * The path and query for an input.
   * @throws ToolExecutionError `invalid_parameters` for a value that cannot stand where the template has it
   */
  expand(input: RestInput): string;
}

interface Name {
  readonly name: string;
  /** `*`: a list gives one pair per entry. */
  readonly explode: boolean;
}
type Piece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'value'; readonly name: string; readonly inPath: boolean }
  | { readonly type: 'pairs'; readonly names: readonly Name[] };

const NAME = /^[A-Za-z_][\w-]*$/;
/** A segment that URL parsers take for "here" or "one up", also when its dots are encoded. */
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i;

export const invalidInput = (name: string, rule: string): ToolExecutionError => {
  const message = `The input is malformed: ${name}: ${rule}`;
  // It speaks of the model's own input, and repeats no value.
  return new ToolExecutionError('invalid_parameters', message, { safeMessage: correctable(message) });
};

/** A property that the input has itself: `constructor` is none. */
export const ownValue = (input: RestInput, name: string): unknown =>
  Object.hasOwn(input, name) ? input[name] : undefined;

/** The same for a URL, which has no `null`: it counts as left out. */
const valueOf = (input: RestInput, name: string): unknown => ownValue(input, name) ?? undefined;

/** A value as text; only what has one spelling. */
export const scalar = (value: unknown, name: string, where: string): string => {
  if (typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
    return String(value);
  throw invalidInput(name, `must be a text, a number or true or false, to stand in ${where}`);
};

const encode = (text: string, name: string): string => {
  if (!text.isWellFormed()) throw invalidInput(name, 'must be well-formed Unicode; it has half of a surrogate pair');
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
};

const inPath = (value: unknown, name: string): string => {
  if (value === undefined) throw invalidInput(name, 'is missing; the path needs it');
  const text = scalar(value, name, 'the path');
  if (text === '') throw invalidInput(name, 'must not be empty; it stands in the path');
  // A server that decodes before it looks for its route would climb, even where the dots are encoded or stand between
  // encoded slashes.
  if (text.split(/[\\/]/).some((segment) => segment === '.' || segment === '..'))
    throw invalidInput(name, 'must not be . or .. or hold one between slashes; it stands in the path');
  if (/[\u0000-\u001f\u007f]/.test(text))
    throw invalidInput(name, 'must not hold control characters; it stands in the path');
  return encode(text, name);
};

const inQuery = (value: unknown, name: string): string => encode(scalar(value, name, 'the query'), name);

const pairsOf = ({ name, explode }: Name, input: RestInput): string[] => {
  const value = valueOf(input, name);
  if (value === undefined) return [];
  const key = encodeURIComponent(name);
  if (!Array.isArray(value)) return [`${key}=${inQuery(value, name)}`];
  const entries = value.map((entry: unknown) => inQuery(entry, name));
  if (entries.length === 0) return [];
  return explode ? entries.map((entry) => `${key}=${entry}`) : [`${key}=${entries.join(',')}`];
};

const nameIn = (text: string, expression: string): string => {
  if (NAME.test(text)) return text;
  throw new RangeError(`{${expression}} must hold names made of letters, digits, _ and -, as in {id} or {?page,tag*}`);
};

const expressionOf = (expression: string, beforeQuery: boolean): Piece => {
  const operator = expression.charAt(0);
  if (operator === '?' || operator === '&') {
    const names = expression
      .slice(1)
      .split(',')
      .map((text) => ({ name: nameIn(text.replace(/\*$/, ''), expression), explode: text.endsWith('*') }));
    return { type: 'pairs', names };
  }
  if ('+#./;'.includes(operator) && operator !== '')
    throw new RangeError(
      `{${expression}} could leave its place in the path, so it is not supported; write {${expression.slice(1)}}`,
    );
  return { type: 'value', name: nameIn(expression, expression), inPath: beforeQuery };
};

const checkText = (text: string): void => {
  if (/[{}]/.test(text)) throw new RangeError('has a { or } without its other half; write %7B or %7D for a plain one');
  if (/[\\#\s\u0000-\u001f\u007f]/.test(text))
    throw new RangeError('must hold no spaces, \\ or #; percent-encode them');
  // `%2` before a value that begins with e or f would make a dot or a slash of both.
  if (/%(?![\da-f]{2})/i.test(text)) throw new RangeError('has a % that begins no escape; write %25 for a plain one');
};

const piecesOf = (template: string): Piece[] => {
  const pieces: Piece[] = [];
  let beforeQuery = true;
  let from = 0;
  const text = (end: number): void => {
    const literal = template.slice(from, end);
    checkText(literal);
    if (literal === '') return;
    if (literal.includes('?')) beforeQuery = false;
    pieces.push({ type: 'text', text: literal });
  };
  for (const { 0: whole, 1: expression = '', index } of template.matchAll(/\{([^{}]*)\}/g)) {
    text(index);
    const piece = expressionOf(expression, beforeQuery);
    if (piece.type === 'pairs') beforeQuery = false;
    else if (!beforeQuery && pieces.some(({ type }) => type === 'pairs'))
      throw new RangeError(`{${expression}} stands behind a {?...}; put it before, or write {&${expression}}`);
    pieces.push(piece);
    from = index + whole.length;
  }
  text(template.length);
  const behind = pieces.slice(pieces.findIndex(({ type }) => type === 'pairs') + 1);
  if (behind.length < pieces.length && behind.some((piece) => piece.type === 'text'))
    throw new RangeError('has text behind {?...}; write it before, as in /search?limit=10{&page}');
  return pieces;
};

const hasDotSegment = (path: string): boolean => path.split('/').some((segment) => DOT_SEGMENT.test(segment));

/**
 * Reads a template such as `/users/{id}/posts{?page,tag*}`.
 * @throws RangeError that names rule and remedy
 */
export function urlTemplate(template: string): UrlTemplate {
  if (!template.startsWith('/') || template.startsWith('//'))
    throw new RangeError('must begin with one /, and go on behind base_url');
  const pieces = piecesOf(template);
  const literalPath =
    pieces
      .map((piece) => (piece.type === 'text' ? piece.text : piece.type === 'value' ? 'x' : '?'))
      .join('')
      .split('?', 1)[0] ?? '';
  if (hasDotSegment(literalPath))
    throw new RangeError('must hold no . or .. between slashes; write the path they come to');
  const values = pieces.flatMap((piece) => (piece.type === 'value' ? [piece] : []));
  return {
    pathNames: values.filter((piece) => piece.inPath).map(({ name }) => name),
    queryNames: pieces.flatMap((piece) =>
      piece.type === 'pairs'
        ? piece.names.map(({ name }) => name)
        : piece.type === 'value' && !piece.inPath
          ? [piece.name]
          : [],
    ),
    expand: (input) => {
      let url = '';
      for (const piece of pieces) {
        if (piece.type === 'text') url += piece.text;
        else if (piece.type === 'value')
          url += piece.inPath
            ? inPath(valueOf(input, piece.name), piece.name)
            : inQuery(valueOf(input, piece.name) ?? '', piece.name);
        else
          for (const pair of piece.names.flatMap((name) => pairsOf(name, input)))
            url += `${url.includes('?') ? (/[?&]$/.test(url) ? '' : '&') : '?'}${pair}`;
      }
      return url;
    },
  };
}
