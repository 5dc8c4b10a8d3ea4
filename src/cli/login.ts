import { randomBytes } from 'node:crypto';
import { firstValueFrom, fromEvent, map, merge, type Observable } from 'rxjs';
import * as z from 'zod';
import { serverEntrySchema, type ServerEntry } from '../contract/formats/server-entry.ts';
import { readYaml } from '../formats/yaml.ts';
import { LOGIN_HELP, parseLogin, type LoginCommand } from './sign-in/arguments.ts';
import { UsageError } from './arguments/usage.ts';
import { EXIT, type CommandContext } from './context.ts';
import { readText, refusal } from './plan/file.ts';
import { headersOf, knownClientOf } from './plan/remote.ts';
import { choices, messageLine, plain } from './show/text.ts';
import { wordedProblems } from './show/wording.ts';
import { openCallback, type Callback } from './sign-in/callback.ts';
import { SignInFile } from './sign-in/file.ts';
import type { KnownClient, PersonSignIn } from './sign-in/provider.ts';

/** Where a person is to sign in, and as whose client. */
interface Place {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly known: KnownClient | undefined;
  readonly scope: string | undefined;
}

const webUrl = (text: string): URL | undefined => {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
};

const withServersSchema = z.looseObject({ servers: z.record(z.string(), serverEntrySchema) });

/** The entry of a server in any file that has servers: one of `mcp`, or a plan. */
const entryIn = async (configPath: string, name: string): Promise<ServerEntry & { readonly url: string }> => {
  const yaml = readYaml(await readText(configPath), { name: 'file' });
  if (yaml.problems.length > 0) throw refusal(configPath, yaml, yaml.problems);
  const parsed = withServersSchema.safeParse(yaml.value);
  if (!parsed.success) throw refusal(configPath, yaml, wordedProblems(parsed.error, yaml.value, withServersSchema));
  const { servers } = parsed.data;
  const entry = new Map(Object.entries(servers)).get(name);
  if (entry === undefined)
    throw new UsageError(
      `${configPath} has no server ${JSON.stringify(name.slice(0, 64))}; ${choices(name, Object.keys(servers))}`,
    );
  const { url } = entry;
  if (url === undefined)
    throw new UsageError(`${name} is started as a process; only a server with a url is signed in at`);
  return { ...entry, url };
};

/** @throws UsageError, PlanFileError */
const placeOf = async ({ server, configPath, scope }: LoginCommand, { env }: CommandContext): Promise<Place> => {
  const given = configPath === undefined ? webUrl(server) : undefined;
  if (given !== undefined) return { url: given, headers: {}, known: undefined, scope };
  if (configPath === undefined)
    throw new UsageError(`${JSON.stringify(server.slice(0, 64))} is no address; name its file with --config`);
  const entry = await entryIn(configPath, server);
  const at = ['servers', server];
  const named = headersOf(entry, at, env);
  if ('message' in named) throw new UsageError(named.message);
  const client = knownClientOf(entry.oauth ?? {}, at, env);
  if ('message' in client) throw new UsageError(client.message);
  return { url: new URL(entry.url), headers: named.headers, known: client.known, scope: scope ?? entry.oauth?.scope };
};

/** The port of the sign-in before, so that its client need not be registered anew; another one where it is taken. */
const openAgain = async (file: SignInFile, state: string, port: number | undefined): Promise<Callback> => {
  if (port !== undefined) return openCallback(state, port);
  const before = URL.parse((await file.read())?.client?.redirect_uris?.[0] ?? '');
  return openCallback(state, Number(before?.port ?? 0)).catch(() => openCallback(state, 0));
};

const ended = (reason: string): never => {
  throw new Error(reason);
};

/** What the rest of the sign-in may take, beside the person. */
const CONNECT_MS = 30_000;

/** What ends the wait for a person: they are taking too long, or whoever started us has had enough. */
const givenUp$ = ({ timeoutMs }: LoginCommand, { runtime, signal }: CommandContext): Observable<never> =>
  merge(
    runtime.after(timeoutMs).pipe(map(() => ended('nobody signed in in time'))),
    fromEvent(signal, 'abort').pipe(map(() => ended('it was interrupted'))),
  );

/** Connects, which has the person sign in where the server asks for it, and shows that what it gave is taken. */
const signIn = async (
  command: LoginCommand,
  { url, headers }: Place,
  { provider, callback }: { readonly provider: PersonSignIn; readonly callback: Callback },
  context: CommandContext,
): Promise<void> => {
  const { mcpHttpProvider } = await import('../providers/mcp-http.ts');
  const connected = await mcpHttpProvider({
    name: 'server',
    url,
    headers,
    authProvider: provider,
    connectTimeoutMs: command.timeoutMs + CONNECT_MS,
    runtime: context.runtime,
    authorizationCode: (page) => {
      const code = firstValueFrom(merge(callback.code$, givenUp$(command, context)));
      if (webUrl(page.href) === undefined) throw new Error('the page to sign in at is no web page');
      context.stderr.write(`open this page to sign in:\n${plain(page.href)}\n`);
      return code;
    },
  });
  await connected.close();
};

/**
 * Runs `spillway mcp login`.
 * @param args the command line after `login`
 * @returns the exit code
 * @throws UsageError, PlanFileError
 */
export async function runLogin(args: readonly string[], context: CommandContext): Promise<number> {
  const command = parseLogin(args);
  const { stdout, stderr, env } = context;
  if (command === undefined) {
    stdout.write(LOGIN_HELP);
    return EXIT.fine;
  }
  const place = await placeOf(command, context);
  const { origin } = place.url;
  const file = new SignInFile(place.url, env);
  if (command.forget) {
    stdout.write((await file.forget()) ? `the sign-in at ${origin} is forgotten\n` : `none is kept for ${origin}\n`);
    return EXIT.fine;
  }
  const { PersonSignIn } = await import('./sign-in/provider.ts');
  const state = randomBytes(32).toString('base64url');
  const callback = await openAgain(file, state, command.port);
  try {
    const { known, scope } = place;
    const provider = new PersonSignIn({ file, known, scope, redirectUrl: callback.redirectUrl }, state);
    await signIn(command, place, { provider, callback }, context);
    stdout.write(provider.isSignedIn ? `signed in at ${origin}\n` : `${origin} asks nobody to sign in\n`);
    return EXIT.fine;
  } catch (error) {
    stderr.write(`spillway: ${messageLine(plain(`not signed in at ${origin}: ${(error as Error).message}`))}\n`);
    return context.signal.aborted ? EXIT.interrupted : EXIT.failed;
  } finally {
    await callback.close();
  }
}
