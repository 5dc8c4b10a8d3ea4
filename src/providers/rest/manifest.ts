import * as z from 'zod';
import * as core from 'zod/v4/core';
import { restManifestSchema, type RestManifest } from '../../contract/formats/rest-manifest.ts';
import { TYPE_WORDS, readYaml, type Path, type Problem, type YamlKind } from '../../formats/yaml.ts';
import { secretsIn, secretsInWords } from '../../policy/redact/named.ts';
import { compileManifest, type RestOperation } from './operation.ts';
import type { Variables } from './reference.ts';

/** A manifest that cannot be used. Nothing has been sent. */
export class RestManifestError extends RangeError {
  /** Always `RestManifestError`. */
  override readonly name: string = 'RestManifestError';
}

type Issue = core.$ZodIssue;

const PROBLEMS_SHOWN = 10;
/** Without aliases a text cannot unfold to more than it is. */
const MANIFEST: YamlKind = { name: 'manifest', aliases: false, maxLength: 1_048_576 };

const dotted = (at: Path): string => (at.length === 0 ? 'the manifest' : core.toDotPath(at));

/** A value as a message shows it. A text is not shown: it may be a secret that stands in the wrong place. */
const show = (value: unknown): string => {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value === undefined || value === null) return 'nothing';
  return typeof value === 'string' ? 'a text' : Array.isArray(value) ? 'a list' : 'a mapping';
};

const valueAt = (root: unknown, at: Path): unknown =>
  at.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Record<string | number, unknown>)[step]
        : undefined,
    root,
  );

/** The keys that a place may have, read from the published schema. */
const keysAt = (at: Path): string[] => {
  let schema: core.JSONSchema.BaseSchema | undefined = z.toJSONSchema(restManifestSchema);
  for (const step of at) {
    const next: unknown = typeof step === 'number' ? schema?.items : schema?.properties?.[step];
    const inner = next as core.JSONSchema.BaseSchema | undefined;
    schema = inner?.anyOf?.find((option) => typeof option === 'object' && 'properties' in option) ?? inner;
  }
  return Object.keys(schema?.properties ?? {});
};

const notText = (value: unknown): string =>
  typeof value === 'string' ? `, not ${JSON.stringify(value.slice(0, 32))}` : '';

const worded = (issue: Issue, root: unknown): Problem[] => {
  const at = issue.path as Path;
  const value = valueAt(root, at);
  switch (issue.code) {
    case 'invalid_type': {
      const wanted = TYPE_WORDS[issue.expected] ?? issue.expected;
      const quotes =
        issue.expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')
          ? '; put it in quotes'
          : '';
      return [
        {
          message:
            value === undefined ? `is missing; it is ${wanted}` : `must be ${wanted}, not ${show(value)}${quotes}`,
          at,
        },
      ];
    }
    case 'too_small':
    case 'too_big': {
      const limit =
        issue.code === 'too_small'
          ? `${issue.inclusive === false ? 'above' : 'at least'} ${issue.minimum}`
          : `at most ${issue.maximum}`;
      const of = typeof value === 'string' ? ' characters' : Array.isArray(value) ? ' entries' : '';
      return [
        {
          message:
            of === ''
              ? `must be ${limit}, not ${show(value)}`
              : `must have ${limit}${of}, not ${(value as string | unknown[]).length}`,
          at,
        },
      ];
    }
    case 'invalid_value':
      return [{ message: `must be one of ${issue.values.map(String).join(', ')}${notText(value)}`, at }];
    case 'unrecognized_keys':
      return issue.keys.slice(0, PROBLEMS_SHOWN).map((key) => ({
        message: `there is no such key here; there is ${keysAt(at).join(', ')}`,
        at: [...at, key.slice(0, 64)],
      }));
    case 'invalid_key':
      return [{ message: `the name ${issue.issues[0]?.message ?? 'cannot be used'}`, at }];
    case 'invalid_union': {
      const inner = issue.errors.find((issues) =>
        issues.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
      );
      if (inner !== undefined)
        return inner.flatMap((found) => worded({ ...found, path: [...issue.path, ...found.path] }, root));
      return [{ message: `${issue.message}, not ${show(value)}`, at }];
    }
    default:
      return [{ message: issue.message, at }];
  }
};

const linesOf = (lines: readonly string[]): string => {
  const more = lines.length > PROBLEMS_SHOWN ? [`... and ${lines.length - PROBLEMS_SHOWN} more`] : [];
  return [...lines.slice(0, PROBLEMS_SHOWN), ...more].join('\n');
};

const refusal = (problems: readonly Problem[]): RestManifestError =>
  new RestManifestError(linesOf(problems.map(({ at, message }) => `${dotted(at)}: ${message}`)));

/** A manifest as its schema gives it, or what is wrong with its shape. */
const shaped = (value: unknown): RestManifest | readonly Problem[] => {
  const parsed = restManifestSchema.safeParse(value);
  return parsed.success ? parsed.data : parsed.error.issues.flatMap((issue) => worded(issue, value));
};

/** A manifest's text, as far as it could be read. */
export interface ExaminedManifest {
  /** Absent where it cannot be used. */
  readonly manifest?: RestManifest;
  /** All that is wrong with it, each with its place. */
  readonly problems: ReadonlyArray<{
    readonly line: number;
    readonly column: number;
    readonly at: string;
    readonly message: string;
  }>;
  /** The variables of the environment that its headers refer to. */
  readonly variables: readonly string[];
}

/** Reads a REST manifest from YAML (JSON is YAML too) and finds all that is wrong with it, but for the environment. */
export function examineManifest(yamlText: string): ExaminedManifest {
  const yaml = readYaml(yamlText, MANIFEST);
  const variables = new Set<string>();
  const found = (problems: readonly Problem[], manifest?: RestManifest): ExaminedManifest => ({
    problems: problems.map((problem) => ({
      ...yaml.positionOf(problem),
      at: dotted(problem.at),
      message: problem.message,
    })),
    variables: [...variables],
    ...(manifest === undefined || problems.length > 0 ? {} : { manifest }),
  });
  if (yaml.problems.length > 0) return found(yaml.problems);
  if (yaml.value === null || yaml.value === undefined)
    return found([{ message: 'is empty; it needs name, base_url and tools', at: [] }]);
  const manifest = shaped(yaml.value);
  if (!('tools' in manifest)) return found(manifest);
  const { problems } = compileManifest(manifest, (name) => {
    variables.add(name);
    return 'x';
  });
  return found(problems, manifest);
}

/**
 * Reads a REST manifest from YAML (JSON is YAML too) and checks all of it but the environment.
 *
 * @throws RestManifestError that names line, place, rule and remedy of up to ten problems
 *
 * @example
 * const manifest = readRestManifest(await readFile('github.yaml', 'utf8'));
 */
export function readRestManifest(yamlText: string): RestManifest {
  if (typeof yamlText !== 'string')
    throw new RestManifestError(
      `a manifest's text must be a string, not ${typeof yamlText}; restProvider takes a manifest that is an object`,
    );
  const { manifest, problems } = examineManifest(yamlText);
  if (manifest === undefined)
    throw new RestManifestError(
      linesOf(problems.map(({ line, column, at, message }) => `${line}:${column}: ${at}: ${message}`)),
    );
  return manifest;
}

/** A shorter one would also cross out ordinary words. */
const SECRET_LENGTH_MIN = 4;

/**
 * What is a secret by the name of its header, parameter or variable: written into the manifest, or filled in from a
 * variable. What is filled in by a call is none.
 */
const credentialsOf = ({ headers, tools }: RestManifest, variables: Variables): readonly string[] => {
  const inHeaders = [{ headers }, ...tools].flatMap((its) => Object.entries(its.headers ?? {}));
  const found = inHeaders.flatMap(([header, text]) => [
    ...secretsIn({ [header]: text }),
    ...[...text.matchAll(/\$\{env:(\w+)\}/g)].flatMap(([, name = '']) => {
      const value = variables(name);
      return secretsIn({ [header]: value, [name]: value });
    }),
  ]);
  const all = [...found, ...secretsInWords(tools.map(({ url }) => url))];
  return [...new Set(all.filter((secret) => !secret.includes('${')))];
};

/** A manifest that can be used. */
export interface CompiledManifest {
  readonly manifest: RestManifest;
  readonly operations: readonly RestOperation[];
  /** What no answer may repeat: others of its data may be the same as a variable. */
  readonly credentials: readonly string[];
  /** What no message may repeat: credentials, and whatever is in a variable. */
  readonly secrets: readonly string[];
}

/**
 * Checks and compiles a manifest, with the variables that its headers refer to.
 * @throws RestManifestError that names place, rule and remedy of up to ten problems
 */
export function compiledManifest(value: unknown, env: Readonly<Record<string, string | undefined>>): CompiledManifest {
  const manifest = shaped(value);
  if (!('tools' in manifest)) throw refusal(manifest);
  const secrets = new Set<string>();
  const variables: Variables = (name) => {
    const secret = Object.hasOwn(env, name) ? env[name] : undefined;
    if (typeof secret !== 'string' || secret === '')
      throw new RangeError(`\${env:${name}} is not set; give it in the option env: { ${name}: ... }`);
    if (!/^[\t\x20-\x7e]*$/.test(secret))
      throw new RangeError(
        `\${env:${name}} must hold printable ASCII only, no line breaks; is there a line end behind it?`,
      );
    secrets.add(secret);
    return secret;
  };
  const { operations, problems } = compileManifest(manifest, variables);
  if (problems.length > 0) throw refusal(problems);
  const credentials = credentialsOf(manifest, variables);
  const long = [...secrets].filter(({ length }) => length >= SECRET_LENGTH_MIN);
  return { manifest, operations, credentials, secrets: [...new Set([...long, ...credentials])] };
}
