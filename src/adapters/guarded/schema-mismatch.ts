import * as core from 'zod/v4/core';
import { read } from '../../errors/structure.ts';
import { compileJsonSchema } from '../../policy/json-schema.ts';

/** As many as a model can use. */
const ISSUES_SHOWN = 5;

/** One issue of a Standard Schema in words. A step of its path is a key, or an object that holds one. */
const worded = (issue: unknown): string => {
  const path = read(issue, 'path');
  const steps = Array.isArray(path)
    ? path.map((step: unknown) => (typeof step === 'object' ? read(step, 'key') : step) as PropertyKey)
    : [];
  return `${steps.length === 0 ? 'the value' : core.toDotPath(steps)}: ${String(read(issue, 'message'))}`;
};

/** What a Standard Schema (zod, Valibot, ArkType) finds wrong with a value; `undefined` for a value that fits. */
const standardSchemaMismatch = async (
  validate: (value: unknown) => unknown,
  value: unknown,
): Promise<string | undefined> => {
  const issues = read(await validate(value), 'issues');
  return Array.isArray(issues) && issues.length > 0 ? issues.slice(0, ISSUES_SHOWN).map(worded).join('; ') : undefined;
};

const MALFORMED = 'The input is malformed: ';

const validatorOf = (schema: unknown): ((value: unknown) => unknown) | undefined => {
  const validate = read(read(schema, '~standard'), 'validate');
  return typeof validate === 'function' ? (validate as (value: unknown) => unknown) : undefined;
};

/**
 * Says why an input does not fit a schema, in words that a model may read. Gives `undefined` for an input that fits,
 * and where nothing is known because the schema throws or cannot be used.
 *
 * @param schema a Standard Schema or a JSON Schema
 */
export async function schemaMismatch(schema: unknown, input: unknown): Promise<string | undefined> {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return undefined;
  if (validatorOf(schema) !== undefined) return ownMismatch(schema, input);
  try {
    const mismatch = compileJsonSchema(schema as Readonly<Record<string, unknown>>)(input);
    return mismatch === undefined ? undefined : `${MALFORMED}${mismatch}`;
  } catch {
    return undefined;
  }
}

/** The same of a schema that can check by itself, and `undefined` of any other: a JSON Schema is not always asked. */
export async function ownMismatch(schema: unknown, input: unknown): Promise<string | undefined> {
  const validate = validatorOf(schema);
  if (validate === undefined) return undefined;
  try {
    const mismatch = await standardSchemaMismatch(validate, input);
    return mismatch === undefined ? undefined : `${MALFORMED}${mismatch}`;
  } catch {
    return undefined;
  }
}
