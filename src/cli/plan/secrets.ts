import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import { secretsIn, secretsInWords } from '../../policy/redact/named.ts';
import { SECRETS_LENGTH_MAX, SECRETS_MAX } from '../../policy/redact/values.ts';
import { UsageError } from '../arguments/usage.ts';
import { environment, type Environment } from '../environment.ts';

/**
 * Secrets of several places, each once.
 * @throws UsageError for more than `redact.secrets` takes: one that is not known would be printed
 */
export const joined = (...places: ReadonlyArray<readonly string[]>): readonly string[] => {
  const all = [...new Set(places.flat())];
  const length = all.reduce((sum, secret) => sum + secret.length, 0);
  if (all.length > SECRETS_MAX || length > SECRETS_LENGTH_MAX)
    throw new UsageError(
      `the servers may be given at most ${SECRETS_MAX} secrets of ${SECRETS_LENGTH_MAX} characters in all, not ` +
        `${all.length} of ${length}: no more are kept out of what is printed; spread the servers over several files`,
    );
  return all;
};

/**
 * What the servers of a file are given as secrets: nothing that is printed or traced may hold one.
 * @throws UsageError as `joined` does
 */
export const secretsOf = (
  servers: Readonly<Record<string, ServerEntry>> = {},
  env: Environment = environment,
): readonly string[] => {
  const places = Object.values(servers).flatMap(
    ({ args, url = '', env: given, headers, headers_from_env: variables = {}, oauth }) => [
      secretsInWords(args),
      secretsInWords([url]),
      secretsIn(given),
      secretsIn(headers),
      // Whoever keeps a value in a variable does not want to see it.
      ...[...Object.values(variables), oauth?.client_secret_env ?? ''].map((name) => secretsIn({ key: env[name] })),
    ],
  );
  return joined(...places);
};
