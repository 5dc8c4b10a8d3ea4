import type { ZodType, input as InputOfSchema, output as OutputOfSchema } from 'zod';
import type { NeedsApproval } from '../contract/gate/approval.ts';
import type { ToolPolicy } from '../contract/policy.ts';
import type { ToolOutput } from '../contract/output.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';
import type { CompensateContext } from '../contract/settle/compensate.ts';
import type { VerifyAnswer, VerifyContext } from '../contract/settle/verify.ts';

/**
 * A tool as its author writes it. `execute` is given what the schema makes of the input: defaults filled in, transforms
 * applied.
 */
export interface ToolDefinition<Schema extends ZodType, O, Name extends string> {
  /** What calls and plans name it by, 1 to 256 characters, unique in a layer. */
  readonly name: Name;
  /** What the tool does, for a model. */
  readonly description?: string;
  /** Checks the input before anything runs, and gives `execute` its type. */
  readonly input?: Schema;
  /** Checks the output. */
  readonly output?: ZodType<O>;
  /**
   * How its calls are guarded. Say at least its `effects`: without them it counts as `read`, is retried as such, and
   * `spillway.warnings` names it.
   */
  readonly policy?: ToolPolicy;
  /** What the tool depends on, by name: calls can share a breaker with other tools of the same dependency. */
  readonly dependency?: string;
  /** Gives a value, a Promise, an Observable or an AsyncIterable; the last value is the output. */
  execute(input: OutputOfSchema<Schema>, context: ToolContext): ToolOutput<O>;
  /**
   * Says whether a call took effect whose attempt ended uncertain: a timeout, a lost connection. `{ done: true, output
   * }`: it did, and the call succeeds. `{ done: false }`: it did not and will not, and the call may be tried again.
   * `'unknown'`, and all else: it stays uncertain. It only looks. Default: an uncertain call stays so.
   */
  verify?(input: OutputOfSchema<Schema>, context: VerifyContext): ToolOutput<VerifyAnswer<NoInfer<O>>>;
  /**
   * Whether a person has to approve a call before it runs: `true`, or a function of its input and whose it is. The
   * layer's `approvals` ask; without them each call is refused as `not_permitted`. Default: nobody has to.
   */
  readonly needsApproval?: NeedsApproval<OutputOfSchema<Schema>>;
  /**
   * Undoes what a call did, when a turn with `onFailure: 'compensate'` fails after it. Given the call's output (none
   * where only `verify` knows of it), input, key, and why. Default: what it did stays, and the turn says so.
   */
  compensate?(output: NoInfer<O>, context: CompensateContext<OutputOfSchema<Schema>>): ToolOutput<unknown>;
}

/**
 * Defines a tool. Its input's type comes from its schema, its output's from `execute`.
 *
 * Its `policy.effects` decide whether it is run again when it may have taken effect: `mutating` is not, `read` is. Left
 * out they are `read`, and `spillway.warnings` says so for each such tool. (A tool that comes from elsewhere, over MCP
 * or from a framework, is `mutating` where it says nothing.)
 *
 * @throws RangeError for a name that is empty or longer than 256 characters
 *
 * @example
 * const flights = tool({
 *   name: 'flight_search',
 *   input: z.object({ from: z.string(), to: z.string() }),
 *   policy: { timeoutMs: 3_000, retry: { maxAttempts: 3 }, effects: 'read' },
 *   execute: ({ from, to }, { signal }) => fetchFlights(from, to, signal),
 * });
 */
export function tool<O, const Name extends string, Schema extends ZodType = ZodType>(
  definition: ToolDefinition<Schema, O, Name>,
): Tool<InputOfSchema<Schema>, O, Name> {
  const { name } = definition;
  if (typeof name !== 'string' || name === '' || name.length > 256)
    throw new RangeError(`a tool's name must be a string of 1 to 256 characters, not ${JSON.stringify(name)}`);
  for (const part of ['execute', 'verify', 'compensate'] as const) {
    const given = definition[part];
    if (typeof given === 'function' || (given === undefined && part !== 'execute')) continue;
    const remedy = part === 'execute' ? '' : `; one by data goes into policy.${part}`;
    throw new RangeError(`tool ${name}: ${part} must be a function, not ${typeof given}${remedy}`);
  }
  // Callers see the input that the schema takes; the layer hands `execute` what the schema gives.
  return definition as Tool<never, O, Name>;
}
