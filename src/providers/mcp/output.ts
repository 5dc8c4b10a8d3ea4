import type { JsonSchemaValidator, jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation';
import { compileJsonSchema, type JsonSchemaCheck } from '../../policy/json-schema.ts';

/**
 * How the SDK's client checks an answer by its tool's output schema. Both are the server's: the SDK's own validator
 * would run its patterns by backtracking, and one answer could stop the process. A schema that cannot be used checks
 * nothing, as that of an input.
 */
export const mcpOutputValidator: jsonSchemaValidator = {
  getValidator<T>(schema: object): JsonSchemaValidator<T> {
    let check: JsonSchemaCheck;
    try {
      check = compileJsonSchema(schema as Readonly<Record<string, unknown>>);
    } catch {
      check = () => undefined;
    }
    return (input) => {
      const errorMessage = check(input);
      return errorMessage === undefined
        ? { valid: true, data: input as T, errorMessage }
        : { valid: false, data: undefined, errorMessage };
    };
  },
};
