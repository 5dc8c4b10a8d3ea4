import type * as z from 'zod';
import type { RetryBudgetEntry, PolicyFile, ToolPolicyEntry } from '../contract/formats/policy-file.ts';
import { policyFileSchema } from '../contract/formats/policy-file.ts';
import type { RetryBudgetOptions, ToolPolicy } from '../contract/policy.ts';
import { readYaml } from '../formats/yaml.ts';
import { breakerOf, camelKeys, retryOf } from '../policy/entry.ts';

/** A file, or an option, that cannot be used: the rule, what was found, and what to do. */
export class SimulationInputError extends Error {
  /** Always `SimulationInputError`. */
  override readonly name: string = 'SimulationInputError';
}

/** What a file's entry says of a tool, as options. */
export const toolPolicyOf = ({ retry_policy, circuit_breaker, ...entry }: ToolPolicyEntry): ToolPolicy => ({
  ...camelKeys(entry),
  ...(retry_policy === undefined ? {} : { retry: retryOf(retry_policy) }),
  ...(circuit_breaker === undefined ? {} : { breaker: circuit_breaker === false ? false : breakerOf(circuit_breaker) }),
});

/** What a file says of the retry budget, as an option. */
export const budgetOf = (entry: RetryBudgetEntry | 'off'): RetryBudgetOptions | false =>
  entry === 'off' ? false : camelKeys(entry);

/** Of a value that may have several forms: what is wrong with it as the one form that it comes nearest to. */
const innermost = (issue: z.core.$ZodIssue): z.core.$ZodIssue => {
  if (issue.code !== 'invalid_union') return issue;
  const fewest = Math.min(...issue.errors.map(({ length }) => length));
  const [nearest, ...others] = issue.errors.filter(({ length }) => length === fewest);
  const [inner] = nearest ?? [];
  if (inner === undefined || others.length > 0) return issue;
  return innermost({ ...inner, path: [...issue.path, ...inner.path] });
};

/**
 * Reads a YAML text as data of a schema.
 * @param what the file's name, for messages
 * @throws SimulationInputError that names the line and column
 */
export function readYamlAs<T>(schema: z.ZodType<T>, text: string, what: string, kind: string): T {
  const file = readYaml(text, { name: kind });
  const [problem] = file.problems;
  const fail = (message: string, at: readonly (string | number)[] = []): never => {
    const { line, column } = file.positionOf(problem ?? { message, at });
    throw new SimulationInputError(`${what}:${line}:${column} ${at.length === 0 ? '' : `${at.join('.')}: `}${message}`);
  };
  if (problem !== undefined) return fail(problem.message, problem.at);
  const parsed = schema.safeParse(file.value);
  if (parsed.success) return parsed.data;
  const [first] = parsed.error.issues;
  const issue = first === undefined ? first : innermost(first);
  return fail(
    issue === undefined ? 'it does not fit' : worded(issue),
    (issue?.path ?? []).map((key) => (typeof key === 'number' ? key : String(key))),
  );
}

/** What follows where a key is one that people look for here. */
const KEYS_OF_ANOTHER_PLACE: Readonly<Record<string, string>> = {
  hedge: '; a hedge is an operator around the work of a tool, which no policy of a layer has, and no engine simulates',
};

/** What is wrong, in words; a key that is not there may be known from elsewhere. */
const worded = (issue: z.core.$ZodIssue): string => {
  if (issue.code !== 'unrecognized_keys') return issue.message;
  const known = issue.keys.find((key) => Object.hasOwn(KEYS_OF_ANOTHER_PLACE, key));
  return `${issue.message}${known === undefined ? '' : KEYS_OF_ANOTHER_PLACE[known]}`;
};

/**
 * Holds what code gives to what a file of it is held to: a part that is passed over would change nothing, and be told
 * as safe.
 * @param what its name, for messages
 * @throws SimulationInputError that names the part
 */
export const checkShape = (schema: z.ZodType, value: unknown, what: string): void => {
  const [first] = schema.safeParse(value).error?.issues ?? [];
  if (first === undefined) return;
  const issue = innermost(first);
  const at = issue.path.length === 0 ? '' : `${issue.path.map(String).join('.')}: `;
  throw new SimulationInputError(`${what}: ${at}${worded(issue)}`);
};

/** The same of a policy. @throws SimulationInputError that names the part */
export const checkPolicyShape = (policy: unknown, what: string): void => {
  // The command takes the file's name for one that has none, however long it is.
  const { name } = Object(policy) as { readonly name?: unknown };
  checkShape(policyFileSchema, typeof name === 'string' ? { ...Object(policy), name: 'x' } : policy, what);
};

/**
 * Holds options that code gives to those that there are: one that is misspelt would change nothing unheard.
 * @throws SimulationInputError
 */
export const checkOptions = (of: string, options: object, known: readonly string[]): void => {
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw new SimulationInputError(`${of} has no option ${JSON.stringify(unknown)}; it takes ${known.join(', ')}`);
};

/**
 * Reads a policy file.
 * @param what the file's name, for messages
 * @throws SimulationInputError that names the line and column
 */
export const readPolicyFile = (text: string, what: string): PolicyFile =>
  readYamlAs(policyFileSchema, text, what, 'policy');
