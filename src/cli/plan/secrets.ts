import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import { visible } from '../../policy/redact/invisible.ts';
import { REDACTED, literal } from '../../policy/redact/text.ts';
import { redactorOf } from '../../policy/redact/values.ts';
import { environment, type Environment } from '../environment.ts';

/** As many and as long as `redact.secrets` takes them; a shorter one would take half of every text along. */
const LENGTH_MIN = 6;
const LENGTH_MAX = 4096;
export const SECRETS_MAX = 256;
/** What a header's value begins with that is no secret itself. */
const SCHEME = /^(?:bearer|basic|token)\s+/i;
/** Names of a shell's that only look as if: the folder that it is in. */
const FOLDERS = /^(?:OLD)?PWD$/;

const { value: shown } = redactorOf();

/** Whether what a variable or a header is called says that its value is a secret. */
const isSecretName = (name: string): boolean =>
  !FOLDERS.test(name) && (/key$/i.test(name) || Object.values(shown({ [name]: '' }) as object).includes(REDACTED));

const bare = (value: string): string => value.replace(SCHEME, '').trim();

/** Of variables or headers, the values that are secrets by their names. */
export const secretsIn = (values: Environment = {}): readonly string[] => {
  const found = Object.entries(values).flatMap(([name, value = '']) => (isSecretName(name) ? [bare(value)] : []));
  const usable = found.filter(({ length }) => length >= LENGTH_MIN && length <= LENGTH_MAX);
  return [...new Set(usable)].slice(0, SECRETS_MAX);
};

/** What the servers of a file are given as secrets: nothing that is printed or traced may hold one. */
export const secretsOf = (
  servers: Readonly<Record<string, ServerEntry>> = {},
  env: Environment = environment,
): readonly string[] => {
  const values = Object.values(servers).flatMap(({ env: given, headers, headers_from_env: variables = {}, oauth }) => [
    ...secretsIn(given),
    ...secretsIn(headers),
    // Whoever keeps a value in a variable does not want to see it.
    ...[...Object.values(variables), oauth?.client_secret_env ?? ''].flatMap((name) => secretsIn({ key: env[name] })),
  ]);
  return [...new Set(values)].slice(0, SECRETS_MAX);
};

/**
 * Makes a function that takes values out of a text, however they are written, and nothing else: what else looks like a
 * secret may be meant for a person to use. Terminal sequences and invisible characters go first: one within a value
 * would hide it, and is not shown.
 */
export const without = (secrets: readonly string[]): ((text: string) => string) => {
  const known = literal(secrets);
  return known === undefined ? (text) => text : (text) => visible(text).replaceAll(known, REDACTED);
};
