import type { ZodType } from 'zod';
import type { ToolPolicy } from '../../contract/policy.ts';
import type { RestManifest, RestMethod, RestToolEntry } from '../../contract/formats/rest-manifest.ts';
import type { Path, Problem } from '../../formats/yaml.ts';
import { compileJsonSchema, jsonSchemaInput, type JsonSchema, type JsonSchemaCheck } from '../../policy/json-schema.ts';
import { bodyTemplate, type BodyTemplate } from './body.ts';
import { headerRule, headerTemplate, namesForStrangers, type HeaderTemplate } from './headers.ts';
import { isSafe, policyOf, policyProblems } from './policy.ts';
import type { Variables } from './reference.ts';
import { pointerOf } from './response.ts';
import { urlTemplate, type UrlTemplate } from './url.ts';

/** A tool of a manifest, compiled once. */
export interface RestOperation {
  readonly toolName: string;
  readonly description: string | undefined;
  readonly method: RestMethod;
  readonly base: URL;
  readonly url: UrlTemplate;
  readonly headers: readonly HeaderTemplate[];
  readonly forStrangers: ReadonlySet<string>;
  readonly body: BodyTemplate | undefined;
  readonly inputSchema: JsonSchema;
  readonly input: ZodType;
  readonly policy: ToolPolicy;
  readonly idempotencyHeader: string | undefined;
  readonly as: 'json' | 'text' | undefined;
  readonly at: readonly string[];
  /** Where an error answer has a text that a model may read. */
  readonly errorAt: readonly string[] | undefined;
  readonly checkOutput: JsonSchemaCheck | undefined;
}

interface Compiled {
  readonly operations: readonly RestOperation[];
  readonly problems: readonly Problem[];
}

/** Keywords behind which a schema can have more properties than it lists. */
const COMPOSED = [
  '$ref',
  '$dynamicRef',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'dependentSchemas',
  'patternProperties',
];
/** Headers that a key would replace. */
const NOT_FOR_A_KEY = ['authorization', 'cookie', 'content-type', 'accept', 'user-agent'];

const baseOf = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new RangeError('must be a URL with scheme and host, such as https://api.example.com/v1');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new RangeError(`must begin with https:// or http://, not ${url.protocol.slice(0, 32)}`);
  if (url.username !== '' || url.password !== '')
    throw new RangeError('must hold no user and no password; send them in a header, with ${env:NAME}');
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text))
    throw new RangeError('must end before ? and #; write a query into the url of each tool');
  return url;
};

/** The input of a tool that has no schema: the names it uses, those of the path required. */
const derivedInput = (url: UrlTemplate, used: readonly string[], takesRest: boolean): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(used.map((name) => [name, {}])),
  required: [...new Set(url.pathNames)],
  additionalProperties: takesRest,
});

const keysOf = (value: unknown): string[] => (typeof value === 'object' && value !== null ? Object.keys(value) : []);

/** Where a schema and what uses the input disagree. Of a composed schema nothing is known. */
const inputProblems = (
  schema: JsonSchema,
  url: UrlTemplate,
  used: readonly string[],
  takesRest: boolean,
): { readonly message: string; readonly at: Path }[] => {
  if (schema['type'] !== 'object')
    return [{ message: 'must have type: object; a tool’s input is an object', at: ['input'] }];
  if (COMPOSED.some((keyword) => keyword in schema)) return [];
  const listed = keysOf(schema['properties']);
  const required: unknown = schema['required'];
  const unlisted = used
    .filter((name) => !listed.includes(name))
    .map((name) => ({
      message: `has no property ${name}, which url, headers or body use; add it, or take it out there`,
      at: ['input', 'properties'],
    }));
  const optional = url.pathNames
    .filter((name) => listed.includes(name) && !(Array.isArray(required) && required.includes(name)))
    .map((name) => ({
      message: `must list ${name}: it stands in the path, which cannot do without it`,
      at: ['input', 'required'],
    }));
  const unused = takesRest
    ? []
    : listed
        .filter((name) => !used.includes(name))
        .map((name) => ({
          message: `is used nowhere; write it into url, as {?${name}}, headers or body, or take it out`,
          at: ['input', 'properties', name],
        }));
  return [...unlisted, ...optional, ...unused];
};

/** Compiles one tool, or gathers what is wrong with it. */
const compileTool = (
  entry: RestToolEntry,
  manifest: RestManifest,
  base: URL | undefined,
  shared: readonly HeaderTemplate[],
  variables: Variables,
  place: Path,
): { readonly operation?: RestOperation; readonly problems: readonly Problem[] } => {
  const {
    id,
    description,
    method = 'GET',
    body_type = 'json',
    response = {},
    response_schema,
    idempotency_header,
  } = entry;
  const problems: Problem[] = policyProblems(entry, place, manifest);
  const tried = <T>(at: Path, compile: () => T): T | undefined => {
    try {
      return compile();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push({ message: error.message, at: [...place, ...at] });
      return undefined;
    }
  };

  const url = tried(['url'], () => urlTemplate(entry.url));
  const own = compileHeaders(entry.headers, variables, [...place, 'headers'], problems);
  const headers = [...shared.filter(({ name }) => !own.some((other) => other.name === name)), ...own];
  if (isSafe(method) && entry.body !== undefined && entry.body !== false)
    problems.push({ message: `${method} takes no body; use another method, or the query`, at: [...place, 'body'] });
  const takesBody = entry.body === undefined ? ['POST', 'PUT', 'PATCH'].includes(method) : entry.body !== false;
  const outside = [
    ...(url?.pathNames ?? []),
    ...(url?.queryNames ?? []),
    ...headers.flatMap(({ template }) => template.names),
  ];
  const body = takesBody ? tried(['body'], () => bodyTemplate(entry.body, body_type, new Set(outside))) : undefined;
  const used = [...new Set([...outside, ...(body?.names ?? [])])];
  const takesRest = body?.takesRest === true;

  const lower = idempotency_header?.toLowerCase();
  const keyRule =
    lower === undefined
      ? undefined
      : (headerRule(lower) ??
        (NOT_FOR_A_KEY.includes(lower) || headers.some(({ name }) => name === lower)
          ? `${lower} is in use for something else; name another header, such as Idempotency-Key`
          : undefined));
  if (keyRule !== undefined) problems.push({ message: keyRule, at: [...place, 'idempotency_header'] });

  const at = tried(['response', 'at'], () => pointerOf(response.at ?? ''));
  const { error_at } = response;
  const errorAt = error_at === undefined ? undefined : tried(['response', 'error_at'], () => pointerOf(error_at));
  if (response.as === 'text' && response.at !== undefined)
    problems.push({
      message: 'finds a part of JSON, so it cannot stand beside as: text; take one of them out',
      at: [...place, 'response', 'at'],
    });
  if (method === 'HEAD' && entry.response !== undefined)
    problems.push({
      message: 'HEAD has no body to read; its output is status and headers',
      at: [...place, 'response'],
    });
  const checkOutput =
    response_schema === undefined
      ? undefined
      : tried(['response_schema'], () => compileJsonSchema(response_schema, { from: 'author' }));
  if (url === undefined) return { problems };
  const inputSchema = entry.input ?? derivedInput(url, used, takesRest);
  if (entry.input !== undefined)
    problems.push(
      ...inputProblems(inputSchema, url, used, takesRest).map(({ message, at: inner }) => ({
        message,
        at: [...place, ...inner],
      })),
    );
  const input = tried(['input'], () => jsonSchemaInput(inputSchema, { from: 'author' }));
  if (base === undefined || at === undefined || input === undefined || problems.length > 0) return { problems };
  const toolName = `${manifest.name}.${id}`;
  const policy = policyOf(entry, manifest);
  return {
    problems,
    operation: {
      toolName,
      description,
      method,
      base,
      url,
      headers,
      forStrangers: namesForStrangers(headers),
      body,
      inputSchema,
      input,
      policy,
      idempotencyHeader: idempotency_header,
      as: response.as,
      at,
      errorAt,
      checkOutput,
    },
  };
};

function compileHeaders(
  entries: Readonly<Record<string, string>> | undefined,
  variables: Variables,
  place: Path,
  problems: Problem[],
): HeaderTemplate[] {
  const seen = new Set<string>();
  return Object.entries(entries ?? {}).flatMap(([name, text]) => {
    const at = [...place, name];
    try {
      if (seen.has(name.toLowerCase())) throw new RangeError('is there twice, in another case; remove one of them');
      seen.add(name.toLowerCase());
      return [headerTemplate(name, text, variables)];
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push({ message: error.message, at });
      return [];
    }
  });
}

/**
 * Compiles the tools of a manifest. What is wrong is gathered, not thrown.
 *
 * @param variables gives the variables that headers refer to
 */
export function compileManifest(manifest: RestManifest, variables: Variables): Compiled {
  const problems: Problem[] = [];
  let base: URL | undefined;
  try {
    base = baseOf(manifest.base_url);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problems.push({ message: error.message, at: ['base_url'] });
  }
  const shared = compileHeaders(manifest.headers, variables, ['headers'], problems);
  const firstAt = new Map<string, number>();
  const operations = manifest.tools.flatMap((entry, index) => {
    const first = firstAt.get(entry.id);
    if (first !== undefined)
      problems.push({
        message: `tools[${first}] has the id ${entry.id} already; give one of them another`,
        at: ['tools', index, 'id'],
      });
    else firstAt.set(entry.id, index);
    const compiled = compileTool(entry, manifest, base, shared, variables, ['tools', index]);
    problems.push(...compiled.problems);
    return compiled.operation === undefined ? [] : [compiled.operation];
  });
  return { operations, problems };
}
