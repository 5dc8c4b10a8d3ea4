import { ToolExecutionError } from '../../contract/tool-error.ts';
import { checkKeys, checkNumber, checkOneOf, integer } from '../check.ts';

/** What counts as the same input. */
export interface CanonicalJsonOptions {
  /**
   * Members of the outermost object that are left out. Replaces the default, `VOLATILE_FIELDS`; `[]` leaves nothing
   * out.
   */
  readonly volatile?: readonly string[];
  /**
   * `collapse`: a run of white space in a string counts as one space, and none at its ends. Names of members stay as
   * they are. Default `verbatim`.
   */
  readonly whitespace?: 'verbatim' | 'collapse';
  /**
   * `keep` writes integers beyond 2^53 - 1 as RFC 8785 does: two that were different before they were parsed may then
   * be one. Default `refuse`.
   */
  readonly unsafeIntegers?: 'refuse' | 'keep';
  /** How many arrays and objects may stand inside each other, 1 to 512. Default 64. */
  readonly maxDepth?: number;
  /**
   * The longest text, in UTF-16 code units, 1 to 100,000,000. A member counts as 4 at least, also one left out. Default
   * 1,000,000.
   */
  readonly maxChars?: number;
}

/** What changes from one sending of a call to the next though the same is asked (CLAW 1.2). */
export const VOLATILE_FIELDS: readonly string[] = ['clientTs', 'retryCount', 'traceparent'];

/**
 * What keeps a string from standing between quotes as it is: characters that JSON escapes, and surrogates, which may be
 * lone.
 */
const SPECIAL = /[\u0000-\u001f"\\\ud800-\udfff]/;
/** From here on a number is written with an exponent: nobody's id looks like that. */
const EXPONENT_FROM = 1e21;
/** Up to as many names, sorting by insertion is the faster way. */
const FEW_NAMES = 24;
/** `"":0` */
const MEMBER_MIN_CHARS = 4;
const PATH_MAX_CHARS = 160;

/** In the order of UTF-16 code units. May change the list it is given. */
const sort = (names: string[]): string[] => {
  if (names.length > FEW_NAMES) return names.toSorted();
  for (let next = 1; next < names.length; next++) {
    const name = names[next] as string;
    let before = next - 1;
    for (; before >= 0 && (names[before] as string) > name; before--) names[before + 1] = names[before] as string;
    names[before + 1] = name;
  }
  return names;
};

/**
 * True for what JSON calls an object, also one of another realm. An instance of a class means more than its members.
 */
export const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return (
    typeof prototype === 'object' &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'isPrototypeOf')
  );
};

/**
 * Writes one text in one pass: each member is read once, so that what was checked is what is written, whatever a getter
 * or a proxy says next.
 */
class Writer {
  readonly #volatile: readonly string[];
  readonly #collapse: boolean;
  readonly #keepIntegers: boolean;
  readonly #maxDepth: number;
  readonly #maxChars: number;
  /** The containers around the value being written, and its place in each; a place beyond the parents is an old one. */
  readonly #parents: object[] = [];
  readonly #places: Array<string | number> = [];
  #members = 0;
  #text = '';
  #refusal: ToolExecutionError | undefined;

  constructor({
    volatile = VOLATILE_FIELDS,
    whitespace = 'verbatim',
    unsafeIntegers = 'refuse',
    maxDepth = 64,
    maxChars = 1_000_000,
  }: CanonicalJsonOptions) {
    this.#volatile = volatile;
    this.#collapse = whitespace === 'collapse';
    this.#keepIntegers = unsafeIntegers === 'keep';
    this.#maxDepth = maxDepth;
    this.#maxChars = maxChars;
  }

  write(value: unknown): string {
    try {
      this.#value('', value);
      return this.#text;
    } catch (cause) {
      if (cause === this.#refusal && cause !== undefined) throw cause;
      return this.#refuse('cannot be read', 'give plain data', cause);
    }
  }

  /**
   * @param before what stands before the value: a comma, a name. Added together with it: fewer pieces are faster to
   * hash.
   */
  #value(before: string, value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.#add(before, this.#quoted(this.#collapse ? this.#collapsed(value) : value));
        return;
      case 'number':
        this.#add(before, this.#number(value));
        return;
      case 'boolean':
        this.#add(before, value ? 'true' : 'false');
        return;
      case 'object':
        if (value === null) this.#add(before, 'null');
        else this.#container(before, value);
        return;
      case 'undefined':
        this.#refuse('is undefined', 'give null');
      case 'bigint':
        this.#refuse('is a bigint, which is no JSON', 'give it as a string');
      case 'function':
      case 'symbol':
        this.#refuse(`is a ${typeof value}, which is no JSON`, 'leave it out');
    }
  }

  #add(before: string, text: string): void {
    this.#text += before + text;
    if (this.#text.length > this.#maxChars) this.#tooLong();
  }

  #quoted(text: string): string {
    // Before it is looked at: a long one is refused at once.
    if (text.length > this.#maxChars) this.#tooLong();
    if (!SPECIAL.test(text)) return `"${text}"`;
    if (!text.isWellFormed()) this.#refuse('holds half of a surrogate pair', 'cut text between characters');
    return JSON.stringify(text);
  }

  #collapsed(text: string): string {
    if (text.length > this.#maxChars) this.#tooLong();
    return text.replaceAll(/\s+/g, ' ').trim();
  }

  #number(value: number): string {
    if (!Number.isFinite(value)) this.#refuse(`is ${value}, which is no JSON`, 'give null, or leave it out');
    if (
      Number.isInteger(value) &&
      !Number.isSafeInteger(value) &&
      Math.abs(value) < EXPONENT_FROM &&
      !this.#keepIntegers
    ) {
      this.#refuse('is an integer beyond 2^53 - 1', 'give it as a string');
    }
    return String(value);
  }

  #container(before: string, value: object): void {
    if (this.#parents.includes(value)) this.#refuse('stands inside itself', 'give no cycles');
    if (this.#parents.length >= this.#maxDepth)
      this.#refuse(`is deeper than ${this.#maxDepth} arrays and objects`, 'give flatter data');
    if (Array.isArray(value)) this.#array(before, value);
    else if (isPlain(value)) this.#object(before, value as Readonly<Record<string, unknown>>);
    else
      this.#refuse(
        'is neither a plain object nor an array',
        'give its JSON form: a Date as an ISO string, a Map as an object',
      );
    this.#parents.pop();
  }

  #array(before: string, value: readonly unknown[]): void {
    const { length } = value;
    if (length > this.#maxChars) this.#tooLong();
    const depth = this.#parents.push(value) - 1;
    this.#text += `${before}[`;
    for (let index = 0; index < length; index++) {
      this.#places[depth] = index;
      this.#value(index === 0 ? '' : ',', value[index]);
    }
    this.#add('', ']');
  }

  #object(before: string, value: Readonly<Record<string, unknown>>): void {
    const names = Object.keys(value);
    // Those left out cost time too: an object of nothing else, shared by a thousand others, would cost hours for a
    // short text.
    this.#members += names.length;
    if (this.#members * MEMBER_MIN_CHARS > this.#maxChars) this.#tooLong();
    const depth = this.#parents.push(value) - 1;
    this.#text += `${before}{`;
    let separator = '';
    for (const name of sort(names)) {
      if (depth === 0 && this.#volatile.includes(name)) continue;
      this.#places[depth] = name;
      const member = value[name];
      if (member === undefined) continue;
      this.#value(`${separator}${this.#quoted(name)}:`, member);
      separator = ',';
    }
    this.#add('', '}');
  }

  #tooLong(): never {
    this.#refuse(`makes the JSON longer than ${this.#maxChars} characters`, 'give less, or a reference to it');
  }

  #refuse(rule: string, remedy: string, cause?: unknown): never {
    let path = '$';
    for (const place of this.#places.slice(0, this.#parents.length)) {
      path +=
        typeof place === 'number'
          ? `[${place}]`
          : /^[A-Za-z_$][\w$]{0,63}$/.test(place)
            ? `.${place}`
            : `[${JSON.stringify(place.slice(0, 64))}]`;
    }
    if (path.length > PATH_MAX_CHARS)
      path = `${path.slice(0, PATH_MAX_CHARS / 2)} ... ${path.slice(-PATH_MAX_CHARS / 2)}`;
    this.#refusal = new ToolExecutionError('invalid_parameters', `${path} ${rule}; ${remedy}`, { cause });
    throw this.#refusal;
  }
}

const OPTIONS = ['volatile', 'whitespace', 'unsafeIntegers', 'maxDepth', 'maxChars'];

const checkOptions = (options: CanonicalJsonOptions): void => {
  checkKeys('canonical JSON', options, OPTIONS);
  const { volatile, whitespace, unsafeIntegers, maxDepth, maxChars } = options;
  if (volatile !== undefined && !(Array.isArray(volatile) && volatile.every((name) => typeof name === 'string'))) {
    throw new RangeError(
      'volatile must be a list of member names, not ' +
        (Array.isArray(volatile) ? 'a list with something else in it' : `a ${typeof volatile}`),
    );
  }
  if (whitespace !== undefined) checkOneOf('whitespace', whitespace, ['verbatim', 'collapse']);
  if (unsafeIntegers !== undefined) checkOneOf('unsafeIntegers', unsafeIntegers, ['refuse', 'keep']);
  if (maxDepth !== undefined) checkNumber('maxDepth', maxDepth, integer(1, 512));
  if (maxChars !== undefined) checkNumber('maxChars', maxChars, integer(1, 100_000_000));
};

/**
 * The one text that all JSON values of the same meaning share, by RFC 8785: names sorted by UTF-16 code units,
 * numbers and strings as JavaScript writes them, `-0` as `0`, no white space. Members that are `undefined` are left
 * out, and so are the volatile ones of the outermost object: deeper down, a `retryCount` is more likely to be what is
 * asked for than to count its sendings.
 *
 * Two values that are no JSON, or may have been two before they were parsed, must not get one text. So nothing is
 * converted: a Date, a Map, an instance of a class, a function, `NaN`, a bigint, an integer beyond 2^53 - 1 written
 * without an exponent, half of a surrogate pair, an `undefined` or a hole in a list are refused, and `toJSON` is not
 * called. As in JSON, members named by a symbol or not enumerable are not seen. `__proto__` is a name like any other.
 *
 * @param value plain objects, arrays, strings, numbers, booleans, null
 * @param options what is left out, how white space counts, and the limits
 * @returns text; `JSON.parse` reads it
 * @throws ToolExecutionError of kind `invalid_parameters`, with the path, the rule and the remedy, and nothing of the
 * value's texts
 * @throws RangeError for an option out of its range
 *
 * @example canonicalJson({ to: 'Oslo', from: 'Helsinki', stops: -0, clientTs: 1_700_000_000_000 }); //
 * '{"from":"Helsinki","stops":0,"to":"Oslo"}'
 */
export function canonicalJson(value: unknown, options?: CanonicalJsonOptions): string {
  if (options !== undefined) checkOptions(options);
  return new Writer(options ?? {}).write(value);
}
