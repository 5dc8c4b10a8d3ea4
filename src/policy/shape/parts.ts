/** What is wrong at a place of a value. It says the rule, and nothing of what stands there. */
export interface ShapeIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * Reads a value, each part of it once, since a getter may give another the next time, and adds what is wrong with it.
 * What it gives is a copy, and counts where nothing was added.
 */
export type Shape<T> = (value: unknown, path: readonly PropertyKey[], issues: ShapeIssue[]) => T;

/** A member that may be absent. One that is there must fit, `undefined` as well. */
export interface Maybe<T> {
  readonly maybe: Shape<T>;
}
export const maybe = <T>(shape: Shape<T>): Maybe<T> => ({ maybe: shape });

/** By member; those that a type has as optional may be absent. */
export type Members<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? Maybe<Exclude<T[K], undefined>> : Shape<T[K]>;
};

/** A value in a word. */
const named = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isNaN(value) ? 'NaN' : typeof value;

const expected = (what: string, value: unknown): string => `Invalid input: expected ${what}, received ${named(value)}`;

/** A shape that takes a value as it is, where it has no problem. */
const plain =
  <T>(problemIn: (value: unknown) => string | undefined): Shape<T> =>
  (value, path, issues) => {
    const message = problemIn(value);
    if (message !== undefined) issues.push({ path, message });
    return value as T;
  };

/** So many problems are told of a value: whoever gave it corrects these first. */
const ISSUES_TOLD = 5;

export const anything: Shape<unknown> = (value) => value;

/** A text of so many characters. */
export const text = (max: number, min = 1): Shape<string> =>
  plain((value) => {
    if (typeof value !== 'string') return expected('string', value);
    if (value.length < min) return `Too small: expected string to have >=${min} characters`;
    // A character of two units is one, as schemas count.
    const isLong = value.length > max && (value.length > 2 * max || Array.from(value).length > max);
    return isLong ? `Too big: expected string to have <=${max} characters` : undefined;
  });

/** A finite number within both bounds, which belong to it; `least` of 0 excludes 0 where it is `positive`. */
export const number = (least: number, most: number, kind?: 'positive' | 'whole'): Shape<number> =>
  plain((value) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return expected('number', value);
    if (kind === 'whole' && !Number.isSafeInteger(value)) return expected('int', value);
    if (kind === 'positive' && value <= 0) return 'Too small: expected number to be >0';
    if (value < least) return `Too small: expected number to be >=${least}`;
    return value > most ? `Too big: expected number to be <=${most}` : undefined;
  });

export const flag: Shape<boolean> = plain((value) =>
  typeof value === 'boolean' ? undefined : expected('boolean', value),
);

/** One of some texts. */
export const oneOf = <T extends string>(...options: readonly T[]): Shape<T> =>
  plain((value) => {
    if (options.includes(value as T)) return undefined;
    const list = options.map((option) => `"${option}"`).join('|');
    return options.length === 1 ? `Invalid input: expected ${list}` : `Invalid option: expected one of ${list}`;
  });

/** At most so many of one shape. */
export const list =
  <T>(shape: Shape<T>, max: number): Shape<T[]> =>
  (value, path, issues) => {
    // Of one that is too long the items are not looked at, however many there are.
    const message = !Array.isArray(value)
      ? expected('array', value)
      : value.length > max
        ? `Too big: expected array to have <=${max} items`
        : undefined;
    if (message === undefined)
      return Array.from({ length: (value as readonly unknown[]).length }, (_, index) =>
        shape((value as readonly unknown[])[index], [...path, index], issues),
      );
    issues.push({ path, message });
    return [];
  };

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Made by `{}` or without a prototype, in whichever realm. */
const isPlain = (value: unknown): value is Readonly<Record<PropertyKey, unknown>> => {
  if (!isObject(value)) return false;
  const { constructor: maker } = value;
  return typeof maker !== 'function' || Object.hasOwn(Object(maker.prototype) as object, 'isPrototypeOf');
};

/** Values of one shape by name, in a plain object. */
export const byName =
  <T>(shape: Shape<T>): Shape<Record<string, T>> =>
  (value, path, issues) => {
    if (!isPlain(value)) {
      issues.push({ path, message: expected('record', value) });
      return {};
    }
    const copy: Record<string, T> = {};
    for (const name of Reflect.ownKeys(value)) {
      // It would give the copy another prototype.
      if (name === '__proto__' || !Object.prototype.propertyIsEnumerable.call(value, name)) continue;
      if (typeof name === 'symbol') issues.push({ path: [...path, name], message: 'Invalid key in record' });
      else copy[name] = shape(value[name], [...path, name], issues);
    }
    return copy;
  };

/** An object with these members and no others. */
export const object =
  <T extends object>(members: Members<T>): Shape<T> =>
  (value, path, issues) => {
    if (!isObject(value)) {
      issues.push({ path, message: expected('object', value) });
      return {} as T;
    }
    const copy: Record<string, unknown> = {};
    for (const [name, member] of Object.entries<Shape<unknown> | Maybe<unknown>>(members)) {
      if (typeof member === 'function') copy[name] = member(value[name], [...path, name], issues);
      else if (name in value) copy[name] = member.maybe(value[name], [...path, name], issues);
    }
    const others: string[] = [];
    for (const name in value) if (!Object.hasOwn(members, name)) others.push(`"${name}"`);
    if (others.length > 0)
      issues.push({ path, message: `Unrecognized key${others.length > 1 ? 's' : ''}: ${others.join(', ')}` });
    return copy as T;
  };

/** A place as it is written: `payload.params["a b"][0]`. */
const placed = (path: readonly PropertyKey[]): string =>
  path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      if (typeof part === 'symbol' || /[^\w$]/.test(part)) return `[${JSON.stringify(String(part))}]`;
      return index === 0 ? part : `.${part}`;
    })
    .join('');

/** Issues of ours, and of schemas, which may have no language: then they say what they expect. */
export const issuesInWords = (issues: ReadonlyArray<ShapeIssue & { readonly expected?: unknown }>): string =>
  issues
    .slice(0, ISSUES_TOLD)
    .map(({ path, message: said, expected: what }) => {
      const words = said === 'Invalid input' && typeof what === 'string' ? `${said}: expected ${what}` : said;
      return `${path.length === 0 ? 'the value' : placed(path)}: ${words}`;
    })
    .join('; ');

/** A value as its shape gives it, and what is wrong with it, if anything. */
export const shaped = <T>(shape: Shape<T>, value: unknown): { readonly fits: T; readonly problem?: string } => {
  const issues: ShapeIssue[] = [];
  const fits = shape(value, [], issues);
  return issues.length === 0 ? { fits } : { fits, problem: issuesInWords(issues) };
};

/** A value as its shape gives it; `undefined` where it does not fit. */
export const fitting = <T>(shape: Shape<T>, value: unknown): T | undefined => {
  const issues: ShapeIssue[] = [];
  const fits = shape(value, [], issues);
  return issues.length === 0 ? fits : undefined;
};
