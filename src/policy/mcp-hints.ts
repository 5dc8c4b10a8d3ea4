import { ToolExecutionError } from '../contract/tool-error.ts';
import { CHECK } from './advice.ts';
import type { Effects, ToolPolicy } from '../contract/policy.ts';

/** What a server says of a tool's effects, as far as it is asked: `annotations` of `tools/list`. */
export interface McpHints {
  readonly readOnlyHint?: unknown;
}

/** A registered symbol, since a provider and the layer that it is given can come from two copies of the package. */
const SILENT: unique symbol = Symbol.for('spillway.silent_tool') as never;

/** Marks a tool of whose effects neither its server nor the host says anything: its policy has what MCP presumes. */
export const markedIfSilent = <T extends object>(
  tool: T,
  hints: McpHints | undefined,
  host: ToolPolicy | undefined,
): T =>
  typeof hints?.readOnlyHint === 'boolean' || host?.effects !== undefined
    ? tool
    : Object.assign(tool, { [SILENT]: true });

/** Whether what a tool's policy says of its effects is nobody's word. */
export const isSilent = (tool: object): boolean => Object.hasOwn(tool, SILENT);

/**
 * What a tool does to the world by the hints of its server, with MCP's own default for each (specification of
 * 2025-06-18, `ToolAnnotations`): `readOnlyHint` false, and then `destructiveHint` true and `idempotentHint` false. So
 * only a tool that says that it just reads is `read`, and one that says nothing is `mutating`. The other two are not
 * asked: a writer that destroys nothing still writes, and a hint of a server, which is not to be trusted, does not
 * allow a thing to be done twice.
 */
export function effectsOfHints(hints: McpHints | undefined): Effects {
  return hints?.readOnlyHint === true ? 'read' : 'mutating';
}

/**
 * The refusal of a further attempt at a tool that only read when its call began, and may do more by now: what was tried
 * before may have done it. As it is `blocked`, nothing is tried in its place, and it says nothing of the tool's health.
 */
export function mayHaveActed(): ToolExecutionError {
  const message = 'Its server no longer says that the tool only reads: not called again';
  const safeMessage = `The tool was called, may have taken effect, and was not called again. ${CHECK}`;
  return new ToolExecutionError('blocked', message, { classification: 'permanent', uncertain: true, safeMessage });
}
