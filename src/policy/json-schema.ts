import { Ajv, type ErrorObject, type Options } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import * as z from 'zod';
import * as core from 'zod/v4/core';
import { PatternCostError } from './pattern/budget.ts';
import { linearPattern } from './pattern/linear-pattern.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** One thing about a value that its schema does not allow. */
export interface JsonSchemaIssue {
  readonly path: readonly (string | number)[];
  /** What it has to be: `must be string`. */
  readonly message: string;
}

/** Says why a value does not fit, worded with the path of each problem; `undefined` for one that does. Never throws. */
export type JsonSchemaCheck = (value: unknown) => string | undefined;

export interface JsonSchemaOptions {
  /**
   * Where the schema is from. `author`: a misspelt keyword is an error, and every problem of a value is reported.
   * `wire`: a foreign program's, in which keywords that are not known are passed over, and the first problem ends the
   * check, so that a large value cannot make a long list. Default `wire`.
   */
  readonly from?: 'author' | 'wire';
}

const ISSUES_SHOWN = 5;
const WORDS_MAX = 200;
/** The dialect of a schema that names none: JSON Schema's latest, and what MCP says. */
const DEFAULT_DIALECT = '2020-12';

/** Each dialect's compiler. */
const DIALECTS: Readonly<Record<string, new (options: Options) => Ajv>> = {
  '2020-12': Ajv2020,
  '2019-09': Ajv2019,
  'draft-07': Ajv,
};

const dialectOf = ({ $schema }: JsonSchema): string => {
  if ($schema === undefined) return DEFAULT_DIALECT;
  const named =
    typeof $schema === 'string'
      ? /^https?:\/\/json-schema\.org\/(?:draft\/)?([\w-]+)\/schema#?$/.exec($schema)?.[1]
      : undefined;
  if (named !== undefined && Object.hasOwn(DIALECTS, named)) return named;
  throw new RangeError(
    `$schema must name one of ${Object.keys(DIALECTS).join(', ')}, not ` +
      `${JSON.stringify($schema)?.slice(0, 80)}; leave it out for ${DEFAULT_DIALECT}`,
  );
};

const compilers = new Map<string, Ajv>();

/**
 * How Ajv gets its patterns, whoever wrote them: also an author who is trusted does not write what a model sends
 * (R-15.1).
 */
const patterns = Object.assign((pattern: string, flags: string) => linearPattern(pattern, flags), {
  code: 'linearPattern',
});

/** The formats of `ajv-formats`, those that are patterns in linear time: its `url` takes 6 s for 100 KB. */
const addFormats = (compiler: Ajv): void => {
  formats.default.default(compiler);
  for (const [name, format] of Object.entries(compiler.formats)) {
    if (!(format instanceof RegExp)) continue;
    const linear = linearPattern(format.source, format.flags);
    compiler.addFormat(name, (text: string) => linear.test(text));
  }
};

/** Compilers are dear to make and keep what has an id: those without one share a compiler, others get their own. */
const compilerFor = (schema: JsonSchema, from: 'author' | 'wire'): Ajv => {
  const dialect = dialectOf(schema);
  const shared = !JSON.stringify(schema).includes('"$id"');
  const known = shared ? compilers.get(`${dialect} ${from}`) : undefined;
  if (known !== undefined) return known;
  const make = DIALECTS[dialect] ?? Ajv2020;
  // A key that every object inherits, such as `constructor`, is not one that the value has.
  const compiler = new make({
    strict: from === 'author',
    allowUnionTypes: true,
    allErrors: from === 'author',
    ownProperties: true,
    logger: false,
    code: { regExp: patterns },
  });
  addFormats(compiler);
  if (shared) compilers.set(`${dialect} ${from}`, compiler);
  return compiler;
};

/** The steps of a JSON pointer; digits are places in a list only where the value has one. */
const pathOf = (pointer: string, value: unknown): (string | number)[] => {
  let at = value;
  return pointer
    .split('/')
    .slice(1)
    .map((step) => {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
      const place = Array.isArray(at) ? Number(key) : key;
      at = typeof at === 'object' && at !== null ? (at as Record<string | number, unknown>)[place] : undefined;
      return place;
    });
};

const LISTS: Readonly<Record<string, string>> = {
  enum: 'allowedValues',
  const: 'allowedValue',
  additionalProperties: 'additionalProperty',
  unevaluatedProperties: 'unevaluatedProperty',
};

/** Ajv's words, and what they are about: which values, which key. The value itself is left out: it may be a secret. */
const worded = ({ keyword, message = 'does not fit', params }: ErrorObject): string => {
  const about = (params as Readonly<Record<string, unknown>>)[LISTS[keyword] ?? ''];
  return (
    about === undefined ? message : `${message}: ${typeof about === 'string' ? about : JSON.stringify(about)}`
  ).slice(0, WORDS_MAX);
};

const dotted = (path: readonly (string | number)[]): string => core.toDotPath(path).slice(0, WORDS_MAX);

/**
 * Compiles a JSON Schema to a function that gives a value's issues, the first five of them.
 * @throws RangeError for a schema that is none, is of an unknown dialect, refers to another document, or has a pattern
 * without a linear check
 */
export function jsonSchemaIssues(
  schema: JsonSchema,
  { from = 'wire' }: JsonSchemaOptions = {},
): (value: unknown) => readonly JsonSchemaIssue[] {
  let compiler: Ajv | undefined;
  try {
    compiler = compilerFor(schema, from);
    // Ajv's own word for a schema whose check gives a promise.
    if ('$async' in schema) throw new Error('$async is not supported; leave it out');
    const validate = compiler.compile(schema);
    return (value) => {
      try {
        if (validate(value)) return [];
        return (validate.errors ?? [])
          .slice(0, ISSUES_SHOWN)
          .map((error) => ({ path: pathOf(error.instancePath, value), message: worded(error) }));
      } catch (error) {
        const message =
          error instanceof PatternCostError
            ? error.message
            : 'cannot be checked: it is nested too deeply, or contains itself';
        return [{ path: [], message }];
      }
    };
  } catch (error) {
    throw error instanceof RangeError && compiler === undefined
      ? error
      : new RangeError(`the JSON Schema cannot be used: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
  } finally {
    compiler?.removeSchema(schema);
  }
}

/**
 * Compiles a JSON Schema (2020-12, unless `$schema` names 2019-09 or draft-07), once, with the formats of
 * `ajv-formats`. References to other documents are refused; nothing is ever fetched.
 *
 * @throws RangeError for a schema that is none, is of an unknown dialect, refers to another document, or has a pattern
 * without a linear check
 *
 * @example
 * compileJsonSchema({ type: 'object', required: ['city'] })({}); // "the value: must have required property 'city'"
 */
export function compileJsonSchema(schema: JsonSchema, options: JsonSchemaOptions = {}): JsonSchemaCheck {
  const issuesOf = jsonSchemaIssues(schema, options);
  return (value) => {
    const issues = issuesOf(value);
    return issues.length === 0
      ? undefined
      : issues.map(({ path, message }) => `${path.length === 0 ? 'the value' : dotted(path)}: ${message}`).join('; ');
  };
}

/**
 * A JSON Schema as the layer checks inputs: before an attempt begins, naming each problem's path.
 *
 * @throws RangeError for a schema that is none, is of an unknown dialect, refers to another document, or has a pattern
 * without a linear check
 */
export function jsonSchemaInput(schema: JsonSchema, options: JsonSchemaOptions = {}): z.ZodType {
  const issuesOf = jsonSchemaIssues(schema, options);
  return z.unknown().superRefine((value, context) => {
    for (const { path, message } of issuesOf(value)) context.addIssue({ code: 'custom', path: [...path], message });
  });
}
