import type { Classification, ToolErrorKind } from '../../src/contract/error-kind.ts';
import type { LlmErrorKind } from '../../src/contract/llm-error.ts';
import type { Entrance } from '../../src/errors/read-error.ts';
import { LATER_CORPUS } from './corpus-later.ts';
import { LLM_CORPUS } from './corpus-llm.ts';
import { HTTP_CORPUS, NODE_CORPUS } from './corpus-http.ts';
import { MCP_CORPUS } from './corpus-mcp.ts';
import { TOOL_CORPUS } from './corpus-tool.ts';

/**
 * What is thrown, and what it is. Written from the services' documentation, their SDKs' sources and messages seen in
 * the wild, before the entrance was, and not from it: a row that fails is first of all a question to the entrance.
 */
export type Row = readonly [
  kind: ToolErrorKind,
  classification: Classification,
  thrown: unknown,
  llmKind?: LlmErrorKind,
];

export const CORPUS: Readonly<Record<Entrance, readonly Row[]>> = {
  llm: [...LLM_CORPUS, ...LATER_CORPUS.llm],
  http: [...HTTP_CORPUS, ...LATER_CORPUS.http],
  node: [...NODE_CORPUS, ...LATER_CORPUS.node],
  mcp: [...MCP_CORPUS, ...LATER_CORPUS.mcp],
  tool: [...TOOL_CORPUS, ...LATER_CORPUS.tool],
};
