import { ToolExecutionError } from '../../contract/tool-error.ts';
import { correctable } from '../../policy/advice.ts';
import { confirmed } from '../../policy/recovery/refusal.ts';
import { guardedCalls, type GuardLayerOptions } from './calls.ts';
import { checkGuardable, guardedFunction, type ForeignFunction } from './function.ts';
import { schemaMismatch } from './schema-mismatch.ts';

type Fn = (...args: never[]) => unknown;
/** A function like the one that was found, under the layer: it takes the input, and what goes with it. */
type Guarded<Context extends readonly unknown[]> = (input: unknown, ...context: Context) => Promise<unknown>;

/** A finished tool: what runs it, and the same tool with something else that does. */
export interface FinishedTool<Context extends readonly unknown[]> {
  readonly name: string;
  readonly fn: Fn;
  readonly put: (guarded: Guarded<Context>) => object;
}

/** How a framework's finished tools are found in what they are given as, and how their calls are read. */
export interface FinishedShape<Context extends readonly unknown[]> extends Omit<
  ForeignFunction<Context>,
  'toolName' | 'fn' | 'effects'
> {
  /** `undefined` for what its framework's provider or client runs: it is handed on. */
  readonly find: (tool: object) => FinishedTool<Context> | undefined;
}

/**
 * Tools like these, which run under one layer.
 *
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not there
 */
export function guardedTools<Tool extends object, Context extends readonly unknown[]>(
  tools: readonly Tool[],
  options: GuardLayerOptions,
  { find, ...shape }: FinishedShape<Context>,
): Tool[] {
  const found = tools.map((tool) => [tool, find(tool)] as const);
  const names = found.flatMap(([, own]) => own?.name ?? []);
  const calls = guardedCalls('guardTools', options, { toolNames: names });
  return found.map(([tool, own]) => {
    if (own === undefined) return tool;
    const { name: toolName, fn, put } = own;
    checkGuardable('guardTools', toolName, fn, shape.streams !== undefined);
    return put(guardedFunction<Context>(calls, { self: tool, ...shape, toolName, fn })) as Tool;
  });
}

/** What a tool threw that reads its input itself: where the input does not fit, it did not run. */
export async function orSchemaMismatch(thrown: unknown, schema: unknown, input: unknown): Promise<unknown> {
  const mismatch = await schemaMismatch(schema, input);
  if (mismatch === undefined) return thrown;
  const problem = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', {
    cause: thrown,
  });
  return confirmed(problem, correctable(mismatch));
}
