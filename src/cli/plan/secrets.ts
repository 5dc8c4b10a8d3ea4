import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import { visible } from '../../policy/redact/invisible.ts';
import { REDACTED, literal } from '../../policy/redact/text.ts';
import { SECRETS_MAX, SECRET_LENGTH_MAX, redactorOf } from '../../policy/redact/values.ts';
import { environment, type Environment } from '../environment.ts';

/** A shorter one would take half of every text along. */
const LENGTH_MIN = 6;
/** What a header's value begins with that is no secret itself. */
const SCHEME = /^(?:bearer|basic|token)\s+/i;
/** Names of a shell's that only look as if: the folder that it is in. */
const FOLDERS = /^(?:OLD)?PWD$/;

const { value: shown } = redactorOf();

/** How names of variables end that the redactor does not know: `GH_PAT`, `STRIPE_SK`, `DB_PW`. */
const ENDS_AS_SECRET = /key$|(?:^|[_-])(?:pat|sk|pw|jwt|dsn)\d?$/i;

/** Whether what a variable or a header is called says that its value is a secret. */
const isSecretName = (name: string): boolean =>
  !FOLDERS.test(name) &&
  (ENDS_AS_SECRET.test(name) || Object.values(shown({ [name]: '' }) as object).includes(REDACTED));

const bare = (value: string): string => value.replace(SCHEME, '').trim();

/** The passwords of addresses, as they stand there and as they are meant: `postgres://ann:p%40ss@db/shop`. */
const passwordsIn = (value: string): readonly string[] => {
  const found = [...value.matchAll(/\b[a-z][\w+.-]{0,30}:\/\/[^\s/?#:]{0,256}:([^\s/?#]{1,512})@/gi)];
  return found.flatMap(([, written = '']) => {
    try {
      return [written, decodeURIComponent(written)];
    } catch {
      return [written];
    }
  });
};

/** Secrets of several places, each once, and as many as `redact.secrets` takes. */
export const joined = (...places: ReadonlyArray<readonly string[]>): readonly string[] =>
  [...new Set(places.flat())].slice(0, SECRETS_MAX);

/** Of variables or headers, the values that are secrets by their names, and the passwords in addresses. */
export const secretsIn = (values: Environment = {}): readonly string[] => {
  const found = Object.entries(values).flatMap(([name, value = '']) => [
    ...(isSecretName(name) ? [bare(value)] : []),
    ...passwordsIn(value),
  ]);
  return joined(found.filter(({ length }) => length >= LENGTH_MIN && length <= SECRET_LENGTH_MAX));
};

/** What the servers of a file are given as secrets: nothing that is printed or traced may hold one. */
export const secretsOf = (
  servers: Readonly<Record<string, ServerEntry>> = {},
  env: Environment = environment,
): readonly string[] => {
  const places = Object.values(servers).flatMap(({ env: given, headers, headers_from_env: variables = {}, oauth }) => [
    secretsIn(given),
    secretsIn(headers),
    // Whoever keeps a value in a variable does not want to see it.
    ...[...Object.values(variables), oauth?.client_secret_env ?? ''].map((name) => secretsIn({ key: env[name] })),
  ]);
  return joined(...places);
};

/**
 * Makes a function that takes values out of a text, however they are written, and nothing else: what else looks like a
 * secret may be meant for a person to use. Terminal sequences and invisible characters go first: one within a value
 * would hide it, and is not shown.
 */
export const withoutSecrets = (secrets: readonly string[]): ((text: string) => string) => {
  const known = literal(secrets);
  return known === undefined ? (text) => text : (text) => visible(text).replaceAll(known, REDACTED);
};
