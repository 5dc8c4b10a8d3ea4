import * as z from 'zod';
import type { AnyTool } from '../../contract/tool.ts';
import type { ModelTool } from '../model.ts';

/** Any object: what a tool without a schema takes. */
const ANY_OBJECT = { type: 'object' } as const;

const schemaOf = ({ name, input, inputJsonSchema }: AnyTool): Readonly<Record<string, unknown>> => {
  if (inputJsonSchema !== undefined) return inputJsonSchema;
  if (input === undefined) return ANY_OBJECT;
  // What JSON Schema cannot say, the layer checks all the same.
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Readonly<
    Record<string, unknown>
  >;
  const { type } = schema;
  if (type !== undefined && type !== 'object')
    throw new RangeError(
      `tool ${name}: models call tools with objects, and its input is of type ${JSON.stringify(type)}; wrap ` +
        'it in an object',
    );
  return { ...ANY_OBJECT, ...schema };
};

/**
 * A tool as a model sees it: its name, description and the JSON Schema of its input.
 * @throws RangeError for a tool whose input is no object
 */
export const definitionOf = (tool: AnyTool): ModelTool => ({
  name: tool.name,
  ...(tool.description === undefined ? {} : { description: tool.description }),
  inputSchema: schemaOf(tool),
});
