import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthEntry, ServerEntry } from '../../contract/formats/server-entry.ts';
import type { Problem } from '../../formats/yaml.ts';
import { environment, type Environment } from '../environment.ts';

/** How a server over HTTP is reached, with the secrets that its entry only names. */
export interface Remote {
  readonly headers?: Readonly<Record<string, string>>;
  readonly authProvider?: OAuthClientProvider;
}

const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A variable's value, or what is wrong with it; the value itself is in no message. */
const valueOf = (env: Environment, name: string, at: readonly string[]): string | Problem => {
  const value = env[name];
  if (value === undefined || value === '')
    return { message: `the variable ${name} is not set; set it before the command`, at: [...at] };
  return HEADER_VALUE.test(value)
    ? value
    : { message: `the variable ${name} holds what HTTP does not allow`, at: [...at] };
};

const signedIn = async (
  { client_id: clientId, issuer: expectedIssuer, scope }: OAuthEntry,
  clientSecret: string,
): Promise<OAuthClientProvider> => {
  const { ClientCredentialsProvider } = await import('@modelcontextprotocol/sdk/client/auth-extensions.js');
  const given = { clientId, clientSecret, expectedIssuer };
  return new ClientCredentialsProvider(scope === undefined ? given : { ...given, scope });
};

/**
 * Fills in what the entry of a server over HTTP names: headers from the environment, and a sign-in of a program by
 * OAuth's client credentials, which the SDK does.
 */
export async function remoteOf(
  { headers, headers_from_env: named = {}, oauth }: ServerEntry,
  at: readonly string[],
  env: Environment = environment,
): Promise<Remote | Problem> {
  const all = new Map(Object.entries(headers ?? {}));
  for (const [header, variable] of Object.entries(named)) {
    const value = valueOf(env, variable, [...at, 'headers_from_env', header]);
    if (typeof value !== 'string') return value;
    all.set(header, value);
  }
  const given = all.size === 0 ? {} : { headers: Object.fromEntries(all) };
  if (oauth === undefined) return given;
  const secret = valueOf(env, oauth.client_secret_env, [...at, 'oauth', 'client_secret_env']);
  return typeof secret === 'string' ? { ...given, authProvider: await signedIn(oauth, secret) } : secret;
}
