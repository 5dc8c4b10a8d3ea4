import type { ToolPolicy } from '../../contract/policy.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from '../guarded/calls.ts';
import { checkGuardable, guardedFunction } from '../guarded/function.ts';
import { overridden } from '../guarded/overridden.ts';
import { idOf, runOf, signalOf, tellingOf, type ExecutionContext } from './context.ts';

type Execute = (input: unknown, context?: ExecutionContext) => unknown;

const executeOf = (tool: object): Execute | undefined => {
  const execute: unknown = Reflect.get(tool, 'execute');
  return typeof execute === 'function' ? (execute as Execute) : undefined;
};

/**
 * One attempt and no more. Mastra notes at the context of a call whether its input was checked, and forgets it once the
 * tool has asked: a second attempt would have its input checked and changed again.
 */
const singly = (name: string, policy: ToolPolicy = {}): ToolPolicy => {
  const { maxAttempts = 1 } = policy.retry ?? {};
  if (maxAttempts > 1)
    throw new RangeError(
      `guardTools: policies.${name} asks for ${maxAttempts} attempts, and a finished tool’s input would be changed ` +
        'by its schema at each; make the tool with guardTool(createTool, { policy }), which reads it once',
    );
  return { ...policy, retry: { ...policy.retry, maxAttempts: 1 } };
};

const guard = (calls: GuardedCalls, toolName: string, tool: object, execute: Execute): object => {
  checkGuardable('guardTools', toolName, execute);
  const guarded = guardedFunction<[context?: ExecutionContext]>(calls, {
    framework: 'mastra',
    toolName,
    fn: execute,
    self: tool,
    idOf,
    runOf,
    signalOf,
    // The same object, by which Mastra knows that the input was checked; each call has one of its own.
    contextOf: (value, _input, context) => {
      if (context === undefined) return [{ abortSignal: value }];
      return [Object.defineProperty(context, 'abortSignal', { value, writable: true, enumerable: true })];
    },
    asking: (asked, [input, context]) => [input, Object.assign(context as object, tellingOf(asked, context as object))],
  });
  return overridden(tool, { execute: guarded });
};

/**
 * Guards finished tools of Mastra, such as those of its MCP client or of an integration: each `execute` runs under a
 * layer, with its hard timeout, breaker and trace, once; for tools of your own take `guardTool`, which also tries
 * again. Approvals and all other members stay as they are. A call that fails throws a `ToolFailure`, whose text Mastra
 * tells the model.
 *
 * @param tools as for `new Agent({ tools })`, by name
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, by the same names; those without `execute` are the same objects
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not there or
 * that asks for retries
 *
 * @example
 * const weather = { id: 'weather', execute: async ({ city }: { city: string }) => `${city}: 21 °C` };
 * const guarded = guardTools({ weather }, { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tools extends object>(tools: Tools, options: GuardLayerOptions = {}): Tools {
  const entries = Object.entries(tools) as readonly (readonly [string, object])[];
  const { policies = {} } = options;
  const names = entries.map(([name]) => name);
  const once = Object.fromEntries(
    [...new Set([...names, ...Object.keys(policies)])].map((name) => [name, singly(name, policies[name])]),
  );
  const calls = guardedCalls('guardTools', { ...options, policies: once }, { toolNames: names });
  return Object.fromEntries(
    entries.map(([name, tool]) => {
      const execute = executeOf(tool);
      return [name, execute === undefined ? tool : guard(calls, name, tool, execute)];
    }),
  ) as Tools;
}
