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
    issue?.message ?? 'it does not fit',
    (issue?.path ?? []).map((key) => (typeof key === 'number' ? key : String(key))),
  );
}

/**
 * Reads a policy file.
 * @param what the file's name, for messages
 * @throws SimulationInputError that names the line and column
 */
export const readPolicyFile = (text: string, what: string): PolicyFile =>
  readYamlAs(policyFileSchema, text, what, 'policy');
