import * as z from 'zod';
import * as core from 'zod/v4/core';
import { jsonSchemaIssues, type JsonSchema } from '../../policy/json-schema.ts';

/** Parameters that fit, as their schema gives them; or why they do not. */
export type Fitted = { readonly value: unknown } | { readonly problem: string };

/** What the parameters of a hand-off must be. */
export interface ParameterRule {
  readonly jsonSchema: JsonSchema;
  fit(parameters: unknown): Fitted;
}

const worded = (path: readonly PropertyKey[], message: string): string =>
  `${path.length === 0 ? 'parameters' : core.toDotPath(['parameters', ...path])}: ${message}`;

const ofZod = (schema: z.ZodType): ParameterRule => ({
  // What cannot be written as JSON Schema may be anything to the model; the schema itself still checks it.
  jsonSchema: z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }),
  fit: (parameters) => {
    try {
      const parsed = schema.safeParse(parameters);
      return parsed.success
        ? { value: parsed.data }
        : {
            problem: parsed.error.issues
              .slice(0, 5)
              .map(({ path, message }) => worded(path, message))
              .join('; '),
          };
    } catch {
      // What it threw may hold secrets, and a model reads this.
      return { problem: 'their schema cannot check them: it throws, or can only answer later' };
    }
  },
});

const ofJsonSchema = (jsonSchema: JsonSchema): ParameterRule => {
  const issuesOf = jsonSchemaIssues(jsonSchema, { from: 'author' });
  return {
    jsonSchema,
    fit: (parameters) => {
      const issues = issuesOf(parameters);
      return issues.length === 0
        ? { value: parameters }
        : { problem: issues.map(({ path, message }) => worded(path, message)).join('; ') };
    },
  };
};

/** @throws RangeError for a JSON Schema that cannot be used */
export function parameterRule(schema: z.ZodType | JsonSchema): ParameterRule {
  return schema instanceof z.ZodType ? ofZod(schema) : ofJsonSchema(schema);
}

/** A schema moved to a place inside another one, with the references to its own parts. */
const movedTo = (place: string, schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map((part) => movedTo(place, part));
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, part]: [string, unknown]) => [
      key,
      key === '$ref' && typeof part === 'string' && part.startsWith('#')
        ? `#${place}${part.slice(1)}`
        : movedTo(place, part),
    ]),
  );
};

/** An agent as a model sees it. */
export interface OfferedAgent {
  readonly name: string;
  readonly description: string;
  readonly rule: ParameterRule;
}

/**
 * The hand-off's input as models are shown it: which agent, and for each what it must be told. The choice stands one
 * level down, since models' APIs take no `oneOf` or `anyOf` at the top.
 */
export function handoffJsonSchema(agents: readonly OfferedAgent[]): JsonSchema {
  const choices = agents.map(({ name, rule }, index) => {
    const { $schema: _, title: _title, ...schema } = rule.jsonSchema;
    return { title: `Parameters for ${name}`, ...(movedTo(`/properties/parameters/anyOf/${index}`, schema) as object) };
  });
  return {
    type: 'object',
    properties: {
      agent: {
        type: 'string',
        enum: agents.map(({ name }) => name),
        description: ['Who takes over.', ...agents.map(({ name, description }) => `${name}: ${description}`)].join(
          '\n',
        ),
      },
      parameters: { description: 'What the chosen agent has to know.', anyOf: choices },
    },
    required: ['agent', 'parameters'],
    additionalProperties: false,
  };
}
