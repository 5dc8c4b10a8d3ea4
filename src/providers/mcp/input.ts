import * as z from 'zod';
import * as core from 'zod/v4/core';
import { jsonSchemaIssues, type JsonSchemaIssue } from '../../policy/json-schema.ts';
import { refusedPattern } from '../../policy/pattern/refused-pattern.ts';
import type { McpToolLike } from './client.ts';

/** What a tool's input must be. */
export interface McpInput {
  readonly schema: z.ZodType;
  /** Why the schema cannot be used, where a pattern of it says so before it is compiled. */
  readonly refused: string | undefined;
  /** Why an input does not fit, with the path of each problem; `undefined` for one that does. */
  problem(input: unknown): string | undefined;
}

const worded = ({ path, message }: JsonSchemaIssue): string =>
  `${path.length === 0 ? 'the value' : core.toDotPath(path)}: ${message}`;

/**
 * A tool's input by the JSON Schema that its server lists (2020-12, unless it names 2019-09 or draft-07), compiled
 * once, when it is first asked for. A schema that cannot be used here checks nothing; the server still does. Its
 * patterns are looked at when it is listed.
 *
 * @param unusable told once why the schema cannot be used
 */
export function mcpInput({ inputSchema }: McpToolLike, unusable: (reason: string) => void): McpInput {
  let compiled: ((value: unknown) => readonly JsonSchemaIssue[]) | undefined;
  const compile = (): ((value: unknown) => readonly JsonSchemaIssue[]) => {
    try {
      return jsonSchemaIssues(inputSchema ?? {});
    } catch (error) {
      unusable(error instanceof Error ? error.message : String(error));
      return () => [];
    }
  };
  const issuesOf = (value: unknown): readonly JsonSchemaIssue[] =>
    (compiled ??= compile())(value === undefined ? {} : value);
  return {
    refused: refusedPattern(inputSchema),
    schema: z.unknown().superRefine((value, context) => {
      for (const { path, message } of issuesOf(value)) context.addIssue({ code: 'custom', path: [...path], message });
    }),
    problem: (value) => {
      const issues = issuesOf(value);
      return issues.length === 0 ? undefined : `The input is malformed: ${issues.map(worded).join('; ')}`;
    },
  };
}
