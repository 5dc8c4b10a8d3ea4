import * as z from 'zod';
import type * as core from 'zod/v4/core';
import { planFileSchema } from '../../contract/formats/plan-file.ts';
import { TYPE_WORDS, type Path, type Problem } from '../../formats/yaml.ts';
import { choices, plain } from './text.ts';

type Issue = core.$ZodIssue;
type Schema = core.JSONSchema.BaseSchema;

/** A value as a message shows it: short, on one line. */
const show = (value: unknown): string => {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(plain(value).slice(0, 60));
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a mapping' : 'nothing';
};

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Record<string | number, unknown>)[step]
        : undefined,
    root,
  );

/** Made once, and only for a file that has such a mistake: it can have many thousands of them. */
const published = new Map<z.ZodType, Schema>();

/** The keys that the mapping at a path may have, read from the schema that users see. */
const keysAt = (path: Path, kind: z.ZodType): string[] => {
  const whole = published.get(kind) ?? z.toJSONSchema(kind);
  published.set(kind, whole);
  const schema = path.reduce<Schema | undefined>((at, step) => {
    const next = typeof step === 'number' ? at?.items : (at?.properties?.[step] ?? at?.additionalProperties);
    const [found] =
      typeof next === 'object' && !Array.isArray(next)
        ? [next, ...(next.anyOf ?? [])].filter(
            (option) =>
              typeof option === 'object' &&
              (option.properties ?? option.items ?? option.additionalProperties) !== undefined,
          )
        : [];
    return typeof found === 'object' ? found : undefined;
  }, whole);
  return Object.keys(schema?.properties ?? {});
};

const typed = ({ expected }: { readonly expected: string }, value: unknown): string => {
  const wanted = TYPE_WORDS[expected] ?? expected;
  if (value === undefined) return `is missing; it is ${wanted}`;
  const quoted = expected === 'string' && (typeof value === 'number' || typeof value === 'boolean');
  return `must be ${wanted}, not ${show(value)}${quoted ? '; put it in quotes' : ''}`;
};

const bounded = (issue: Extract<Issue, { code: 'too_small' | 'too_big' }>, value: unknown): string => {
  const limit = issue.code === 'too_small' ? issue.minimum : issue.maximum;
  const words = issue.code === 'too_small' ? (issue.inclusive === false ? 'above' : 'at least') : 'at most';
  if (typeof value === 'string')
    return value === '' ? 'must not be empty' : `must have ${words} ${limit} characters, not ${value.length}`;
  if (Array.isArray(value))
    return `must have ${words} ${limit} ${limit === 1 ? 'entry' : 'entries'}, not ${value.length}`;
  return `must be ${words} ${limit}, not ${show(value)}`;
};

/** The branch of a union that comes nearest to what was written: one whose complaint lies inside the value. */
const nearest = (branches: ReadonlyArray<readonly Issue[]>): readonly Issue[] | undefined =>
  branches.find((issues) => issues.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'));

const problemsOf = (issue: Issue, root: unknown, kind: z.ZodType): Problem[] => {
  const at = issue.path as Path;
  const value = valueAt(root, at);
  const one = (message: string): Problem[] => [{ message, at }];
  switch (issue.code) {
    case 'invalid_type':
      return one(issue.expected === 'never' ? issue.message : typed(issue, value));
    case 'too_small':
    case 'too_big':
      return one(bounded(issue, value));
    case 'invalid_value':
      return value === undefined
        ? one(`is missing; it is one of ${issue.values.join(', ')}`)
        : one(`must be one of ${issue.values.map(String).join(', ')}, not ${show(value)}`);
    case 'unrecognized_keys': {
      const known = keysAt(at, kind);
      return issue.keys.map((key) => ({
        message: `there is no such key here; ${choices(key, known)}`,
        at: [...at, key],
        atKey: true,
      }));
    }
    case 'invalid_key':
      return [{ message: `the name ${issue.issues[0]?.message ?? 'cannot be used'}`, at, atKey: true }];
    case 'invalid_union': {
      const inner = nearest(issue.errors);
      if (inner !== undefined)
        return inner.flatMap((found) => problemsOf({ ...found, path: [...issue.path, ...found.path] }, root, kind));
      return one(
        `${issue.message === 'Invalid input' ? 'must be a mapping, or false' : issue.message}, not ${show(value)}`,
      );
    }
    default:
      return one(`${issue.message}, not ${show(value)}`);
  }
};

/**
 * What a schema found wrong, as rule, value and remedy.
 * @param kind the schema, whose keys are named where one is unknown
 */
export function wordedProblems(error: z.ZodError, root: unknown, kind: z.ZodType = planFileSchema): Problem[] {
  return error.issues.flatMap((issue) => problemsOf(issue, root, kind));
}
