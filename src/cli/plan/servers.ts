import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import type { ToolProvider } from '../../contract/provider.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { Problem } from '../../formats/yaml.ts';
import type { mcpHttpProvider } from '../../providers/mcp-http.ts';
import type { mcpStdioProvider } from '../../providers/mcp-stdio.ts';
import { textRedactor } from '../../policy/redact/text.ts';
import { environment } from '../environment.ts';
import type { LoadedPlan } from './file.ts';
import { remoteOf, type Remote } from './remote.ts';
import { secretsOf } from './secrets.ts';
import { plain } from '../show/text.ts';

/** Servers that run. */
export interface Servers {
  readonly providers: ReadonlyMap<string, ToolProvider>;
  readonly close: () => Promise<void>;
}

/** A server that is started. */
type CommandEntry = ServerEntry & { readonly command: string };

interface Connectors {
  readonly stdio: typeof mcpStdioProvider;
  readonly http: typeof mcpHttpProvider;
}

/** Only a plan with servers needs the SDK, which is an optional peer. */
const loadConnectors = async (): Promise<Connectors | Problem> => {
  try {
    const [stdio, http] = await Promise.all([
      import('../../providers/mcp-stdio.ts'),
      import('../../providers/mcp-http.ts'),
    ]);
    return { stdio: stdio.mcpStdioProvider, http: http.mcpHttpProvider };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return {
      message:
        'servers need the package @modelcontextprotocol/sdk, which is not installed; run npm install ' +
        '@modelcontextprotocol/sdk',
      at: ['servers'],
      atKey: true,
    };
  }
};

/** Each `node_modules/.bin` from a folder upward, as npm puts them before PATH. */
const binFolders = (folder: string): string[] => {
  const parent = path.dirname(folder);
  return [path.join(folder, 'node_modules', '.bin'), ...(parent === folder ? [] : binFolders(parent))];
};

/**
 * What a server is started with: `cwd` and a relative command start at the plan file's folder; bare names are found as
 * npm finds them.
 */
export function launchOf(
  { command, args, env, cwd }: CommandEntry,
  planFolder: string,
): {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
} {
  const folder = cwd === undefined ? process.cwd() : path.resolve(planFolder, cwd);
  const isPath = /[/\\]/.test(command);
  return {
    command: isPath ? path.resolve(planFolder, command) : command,
    ...(args === undefined ? {} : { args }),
    env: { PATH: [...binFolders(folder), environment['PATH'] ?? ''].join(path.delimiter), ...env },
    cwd: folder,
  };
}

const isFolder = async (folder: string): Promise<boolean> => {
  try {
    return (await stat(folder)).isDirectory();
  } catch {
    return false;
  }
};

const messageOf = (thrown: unknown): string => plain(thrown instanceof Error ? thrown.message : String(thrown));

/** What a server is called in a message; an address can hold a secret in its path and query. */
const shown = ({ command = '', args = [], url }: ServerEntry): string =>
  url === undefined ? plain([command, ...args].join(' ')).slice(0, 120) : new URL(url).origin;

interface Wanted {
  readonly name: string;
  readonly entry: ServerEntry;
  readonly folder: string;
  readonly remote: Remote;
  readonly runtime: Runtime;
}

const connected = (
  { name, entry, folder, remote, runtime }: Wanted,
  { stdio, http }: Connectors,
): Promise<ToolProvider> => {
  const { command = '', url, start_timeout_ms } = entry;
  const common = { name, runtime, ...(start_timeout_ms === undefined ? {} : { connectTimeoutMs: start_timeout_ms }) };
  return url === undefined
    ? stdio({ ...common, ...launchOf({ ...entry, command }, folder) })
    : http({ ...common, url, ...remote });
};

/**
 * Starts servers, or connects to them, side by side. All of them, or none: one that does not start is a plan that
 * cannot run, and the others are stopped.
 * @throws PlanFileError that names the server, its command or origin, and what it said last
 */
export async function startServers(
  names: readonly string[],
  { file, folder, refuse }: LoadedPlan,
  runtime: Runtime,
): Promise<Servers> {
  const connectors = names.length === 0 ? undefined : await loadConnectors();
  if (connectors !== undefined && 'message' in connectors) throw refuse([connectors]);
  const providers = new Map<string, ToolProvider>();
  // It may repeat what it was given, as may its command line.
  const clean = textRedactor(secretsOf(file.servers));
  let wanted = true;
  const close = async (): Promise<void> => {
    wanted = false;
    await Promise.allSettled([...providers.values()].map((provider) => provider.close()));
  };
  const startOne = async (name: string): Promise<void> => {
    const entry = file.servers?.[name];
    if (entry === undefined || connectors === undefined) return;
    const { command, url } = entry;
    const at = ['servers', name];
    const cwd = command === undefined ? undefined : launchOf({ ...entry, command }, folder).cwd;
    if (cwd !== undefined && !(await isFolder(cwd)))
      throw refuse([{ message: `${cwd} is no folder; it starts at the folder of the plan file`, at: [...at, 'cwd'] }]);
    const remote = await remoteOf(entry, at);
    if ('message' in remote) throw refuse([remote]);
    let provider: ToolProvider;
    try {
      provider = await connected({ name, entry, folder, remote, runtime }, connectors);
    } catch (error) {
      const [failed, check] =
        url === undefined ? ['started with', 'command and args'] : ['reached at', 'url and headers'];
      const message = `the server ${name} could not be ${failed} "${clean(shown(entry))}": ${clean(messageOf(error))}`;
      throw refuse([{ message: `${message}; check its ${check}`, at, atKey: true }]);
    }
    // Another one failed meanwhile, and nobody waits for this one.
    if (wanted) providers.set(name, provider);
    else await provider.close();
  };
  try {
    await Promise.all(names.map(startOne));
  } catch (error) {
    await close();
    throw error;
  }
  return { providers, close };
}
