import * as z from 'zod';
import type { Tool, ToolContext } from '../../contract/tool.ts';
import { checkOwnNames, policyOfOwn, type OwnTools } from '../own-tools.ts';
import type { RestOperation } from './operation.ts';

/** An operation of a manifest as a layer takes it. */
export const toolOf = (
  operation: RestOperation,
  dependency: string,
  run: (operation: RestOperation, input: unknown, context: ToolContext) => Promise<unknown>,
): Tool => ({
  name: operation.toolName,
  ...(operation.description === undefined ? {} : { description: operation.description }),
  // No arguments are an empty object, as over MCP.
  input: z.preprocess((input) => input ?? {}, operation.input),
  inputJsonSchema: operation.inputSchema,
  policy: operation.policy,
  dependency,
  execute: (input, context) => run(operation, input, context),
});

/** Operations with what the host says of them. */
export const guardedOperations = (
  name: string,
  operations: readonly RestOperation[],
  { tools = {}, show }: { readonly tools?: OwnTools; readonly show?: 'errors' },
): readonly RestOperation[] => {
  const idOf = ({ toolName }: RestOperation): string => toolName.slice(name.length + 1);
  checkOwnNames('restProvider', tools, operations.map(idOf));
  const shown = show === undefined ? {} : { show };
  return operations.map((operation) => ({
    ...operation,
    policy: { ...operation.policy, ...shown, ...policyOfOwn(tools, idOf(operation)) },
  }));
};
