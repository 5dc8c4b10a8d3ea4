import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthEntry, ServerEntry } from '../../contract/formats/server-entry.ts';
import type { Problem } from '../../formats/yaml.ts';
import { environment, type Environment } from '../environment.ts';
import { SignInFile } from '../sign-in/file.ts';
import type { KnownClient } from '../sign-in/provider.ts';

/** How a server over HTTP is reached, with the secrets that its entry only names. */
export interface Remote {
  readonly headers?: Readonly<Record<string, string>>;
  readonly authProvider?: OAuthClientProvider;
}

const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Only ever compared: nobody comes back to a program without a person. */
const NOWHERE = 'http://127.0.0.1/callback';

/** A variable's value, or what is wrong with it; the value itself is in no message. */
const valueOf = (env: Environment, name: string, at: readonly string[]): string | Problem => {
  const value = env[name];
  if (value === undefined || value === '')
    return { message: `the variable ${name} is not set; set it before the command`, at: [...at] };
  return HEADER_VALUE.test(value)
    ? value
    : { message: `the variable ${name} holds what HTTP does not allow`, at: [...at] };
};

/** All headers of an entry, those whose values are in variables too. */
export function headersOf(
  { headers, headers_from_env: named = {} }: ServerEntry,
  at: readonly string[],
  env: Environment,
): { readonly headers: Readonly<Record<string, string>> } | Problem {
  const all = new Map(Object.entries(headers ?? {}));
  for (const [header, variable] of Object.entries(named)) {
    const value = valueOf(env, variable, [...at, 'headers_from_env', header]);
    if (typeof value !== 'string') return value;
    all.set(header, value);
  }
  return { headers: Object.fromEntries(all) };
}

/** The client that an entry names, of whom its authorization server knows; none where it is to register one. */
export function knownClientOf(
  { client_id: clientId, client_secret_env, issuer }: OAuthEntry,
  at: readonly string[],
  env: Environment,
): { readonly known: KnownClient | undefined } | Problem {
  if (clientId === undefined) return { known: undefined };
  const own = { clientId, ...(issuer === undefined ? {} : { issuer }) };
  if (client_secret_env === undefined) return { known: own };
  const clientSecret = valueOf(env, client_secret_env, [...at, 'oauth', 'client_secret_env']);
  return typeof clientSecret === 'string' ? { known: { ...own, clientSecret } } : clientSecret;
}

const byCredentials = async (
  { clientId, clientSecret = '' }: KnownClient,
  expectedIssuer: string,
  scope: string | undefined,
): Promise<OAuthClientProvider> => {
  const { ClientCredentialsProvider } = await import('@modelcontextprotocol/sdk/client/auth-extensions.js');
  const given = { clientId, clientSecret, expectedIssuer };
  return new ClientCredentialsProvider(scope === undefined ? given : { ...given, scope });
};

/** Who signs in at a server, and how it is called in `spillway mcp login`. */
interface Asked {
  readonly url: string;
  readonly oauth: OAuthEntry | undefined;
  readonly known: KnownClient | undefined;
  readonly login: string;
}

/** The sign-in that a person has made, where one is kept or asked for. */
const byPerson = async (
  { url, oauth, known, login }: Asked,
  env: Environment,
): Promise<OAuthClientProvider | undefined> => {
  const file = new SignInFile(new URL(url), env);
  const kept = await file.read();
  if (kept === undefined && oauth === undefined) return undefined;
  const { KeptSignIn, signInNeeded } = await import('../sign-in/provider.ts');
  const redirectUrl = kept?.client?.redirect_uris?.[0] ?? NOWHERE;
  const options = { file, known, scope: oauth?.scope, redirectUrl };
  return new KeptSignIn(options, () => signInNeeded(new URL(url).origin, `spillway mcp login ${login}`));
};

const speaksForItself = (headers: Readonly<Record<string, string>>): boolean =>
  Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');

/** A server that is given by its address alone. */
export async function remoteAt(url: string, env: Environment = environment): Promise<Remote> {
  const authProvider = await byPerson({ url, oauth: undefined, known: undefined, login: 'URL' }, env);
  return authProvider === undefined ? {} : { authProvider };
}

/**
 * Fills in what the entry of a server over HTTP names: headers from the environment, and a sign-in, which the SDK does:
 * of a program by OAuth's client credentials, or of a person, who has made it by `spillway mcp login`.
 */
export async function remoteOf(
  entry: ServerEntry,
  at: readonly string[],
  env: Environment = environment,
): Promise<Remote | Problem> {
  const { url, oauth } = entry;
  const named = headersOf(entry, at, env);
  if ('message' in named) return named;
  const given = Object.keys(named.headers).length === 0 ? {} : named;
  if (url === undefined || speaksForItself(named.headers)) return given;
  const client = oauth === undefined ? { known: undefined } : knownClientOf(oauth, at, env);
  if ('message' in client) return client;
  const { known } = client;
  if (oauth?.issuer !== undefined && oauth.sign_in === undefined && known !== undefined)
    return { ...given, authProvider: await byCredentials(known, oauth.issuer, oauth.scope) };
  const authProvider = await byPerson({ url, oauth, known, login: `${at.at(-1) ?? 'URL'} --config FILE` }, env);
  return authProvider === undefined ? given : { ...given, authProvider };
}
