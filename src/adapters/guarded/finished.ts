import { ToolExecutionError } from '../../contract/tool-error.ts';
import { correctable } from '../../policy/advice.ts';
import { confirmed } from '../../policy/recovery/refusal.ts';
import { guardedCalls, type GuardLayerOptions } from './calls.ts';
import { checkGuardable, guardedFunction, type ForeignFunction } from './function.ts';
import { ownMismatch } from './schema-mismatch.ts';

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

/**
 * Refuses input that a tool is known to turn away, before it is called. Afterwards nothing would be known: a tool may
 * have changed its input, and a schema may look at what the tool has done.
 *
 * @param schema by which the tool checks its input itself; any other than a Standard Schema refuses nothing
 * @throws ToolExecutionError for input that does not fit
 */
export async function refuseMismatch(schema: unknown, input: unknown): Promise<void> {
  const mismatch = await ownMismatch(schema, input);
  if (mismatch === undefined) return;
  throw confirmed(
    new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema'),
    correctable(mismatch),
  );
}
