import type { ToolExecutionError } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { httpThrown } from './http.ts';
import { llmThrown } from './llm.ts';
import { mcpThrown } from './mcp.ts';
import { isTyped, nodeThrown, toToolExecutionError } from './tool.ts';

/**
 * Where an error entered: from a model's provider, an MCP client or a failed MCP result, an HTTP client or its answer,
 * Node itself, or a tool's function.
 */
export type Entrance = 'llm' | 'mcp' | 'http' | 'node' | 'tool';

const ENTRANCES: Readonly<Record<Entrance, (thrown: unknown, wallNow: () => number) => ToolExecutionError>> = {
  llm: llmThrown,
  mcp: (thrown, wallNow) => mcpThrown(thrown, undefined, wallNow),
  http: httpThrown,
  node: nodeThrown,
  tool: toToolExecutionError,
};

/**
 * Gives whatever was thrown its kind and class, once, where it entered: by its structured fields first, then
 * by its words, in linear time on the first 4 KB. A `ToolExecutionError` passes unchanged. What nothing explains is an
 * `execution_error`, the failure of whoever threw it; from `node`, where no tool threw it, an `internal_error`. Never
 * throws, whatever was thrown.
 *
 * @param thrown anything; for `http` also a `Response`, for `mcp` also a result with `isError`
 * @param where where it entered
 * @param wallNow the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * toToolError(new Response(null, { status: 503 }), 'http').kind; // 'execution_error'
 */
export function toToolError(
  thrown: unknown,
  where: Entrance,
  wallNow: () => number = () => liveRuntime.wallNow(),
): ToolExecutionError {
  return isTyped(thrown) ? thrown : ENTRANCES[where](thrown, wallNow);
}
