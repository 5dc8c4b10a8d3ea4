import { read } from '../errors/structure.ts';
import { effectsOfHints, type McpHints } from '../policy/mcp-hints.ts';
import type { FailureAnswer } from './guarded/call-history.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import { checkGuardable, guardedFunction } from './guarded/function.ts';
import { overridden } from './guarded/overridden.ts';
import { asResult } from './mcp/result.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

type Handler = (input: unknown, extra?: object) => unknown;
interface Definition {
  readonly name: string;
  readonly handler: Handler;
  readonly annotations?: McpHints | undefined;
}

const isDefinition = (candidate: object): candidate is Definition =>
  typeof read(candidate, 'name') === 'string' && typeof read(candidate, 'handler') === 'function';

/** Under this name Claude Code tells an MCP server the id that its model gave the call. */
const CALL_ID = 'claudecode/toolUseId';

const idOf = (_input: unknown, extra?: object): string | undefined => {
  const id = read(read(extra, '_meta'), CALL_ID);
  return typeof id === 'string' ? id : undefined;
};

const signalOf = (_input: unknown, extra?: object): AbortSignal | undefined => {
  const signal = read(extra, 'signal');
  return signal instanceof AbortSignal ? signal : undefined;
};

/** A result with `isError` is what the handler says to the model; it is handed on as it is. */
const failed = (result: unknown): boolean => read(result, 'isError') === true;

const answerOf = (thrown: unknown): FailureAnswer | undefined => {
  const content = failed(thrown) ? read(thrown, 'content') : undefined;
  if (!Array.isArray(content)) return undefined;
  const text = content
    .map((block: unknown) => read(block, 'text'))
    .filter((each) => typeof each === 'string')
    .join('\n');
  return /\S/.test(text) ? { text: text.toWellFormed(), content: thrown, thrown } : undefined;
};

const guard = <Tool extends Definition>(calls: GuardedCalls, tool: Tool, hostSays: boolean): Tool => {
  checkGuardable('guardTools', tool.name, tool.handler);
  const handler = guardedFunction<[extra?: object]>(calls, {
    framework: 'claude-agent',
    toolName: tool.name,
    fn: tool.handler,
    self: tool,
    ...(hostSays || tool.annotations === undefined ? {} : { effects: effectsOfHints(tool.annotations) }),
    idOf,
    signalOf,
    contextOf: (signal, _input, extra) => [overridden(extra ?? {}, { signal })],
    failed,
    answerOf,
    adopt: asResult,
    fail: ({ message }, answer) => answer?.content ?? { content: [{ type: 'text', text: message }], isError: true },
  });
  return overridden(tool, { handler });
};

/**
 * Guards the tools of Claude Agent SDK's `tool`, before `createSdkMcpServer({ tools })`: each `handler` runs under a
 * layer, with its hard timeout, retries, breaker and trace. A call settles when its timeout passes or Claude cancels
 * it, whatever the handler does; the signal in the handler's `extra` is one of its attempt's. Input has been checked by
 * the SDK. Permissions (`canUseTool`, hooks) come before, as they do alone.
 *
 * A call that fails gives a result with `isError` and one text: what happened in a sentence and whether the tool ran.
 * Nothing of what was thrown is in it. A result with `isError` that the handler gives counts as a failure, and is
 * handed on as it is where the call fails with it.
 *
 * A tool with the annotation `readOnlyHint` counts as `read`; its policy and the layer's defaults go before that.
 *
 * @param tools as for `createSdkMcpServer`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list, or what is no tool
 *
 * @example
 * const weather = { name: 'weather', handler: async () => ({ content: [{ type: 'text', text: '21 °C' }] }) };
 * const [guarded] = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  const definitions = tools.map((tool) => {
    if (isDefinition(tool)) return tool;
    throw new RangeError('guardTools takes what the SDK’s tool() gives: an object with a name and a handler');
  });
  const calls = guardedCalls('guardTools', options, { toolNames: definitions.map(({ name }) => name) });
  // What the host says of all its tools goes before what one of them says of itself.
  const hostSays = options.defaults?.effects !== undefined;
  return definitions.map((tool) => guard(calls, tool, hostSays));
}
