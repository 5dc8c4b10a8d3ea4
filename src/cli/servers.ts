import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { ServerEntry } from '../contract/plan-file.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { mcpStdioProvider } from '../providers/mcp-stdio.ts';
import type { LoadedPlan } from './plan-file.ts';
import { plain } from './text.ts';
import type { Problem } from './yaml.ts';

/** Servers that run. */
export interface Servers {
  readonly providers: ReadonlyMap<string, ToolProvider>;
  readonly close: () => Promise<void>;
}

type Start = typeof mcpStdioProvider;

/** Only a plan with servers needs the SDK, which is an optional peer. */
const loadStart = async (): Promise<Start | Problem> => {
  try {
    return (await import('../providers/mcp-stdio.ts')).mcpStdioProvider;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return { message: 'servers need the package @modelcontextprotocol/sdk, which is not installed; run npm install @modelcontextprotocol/sdk', at: ['servers'], atKey: true };
  }
};

/** Each `node_modules/.bin` from a folder upward, as npm puts them before PATH. */
const binFolders = (folder: string): string[] => {
  const parent = path.dirname(folder);
  return [path.join(folder, 'node_modules', '.bin'), ...(parent === folder ? [] : binFolders(parent))];
};

/** What a server is started with: `cwd` and a relative command start at the plan file's folder; bare names are found as npm finds them. */
export function launchOf({ command, args, env, cwd }: ServerEntry, planFolder: string): { readonly command: string; readonly args?: readonly string[]; readonly env: Readonly<Record<string, string>>; readonly cwd: string } {
  const folder = cwd === undefined ? process.cwd() : path.resolve(planFolder, cwd);
  const isPath = /[/\\]/.test(command);
  return {
    command: isPath ? path.resolve(planFolder, command) : command,
    ...(args === undefined ? {} : { args }),
    env: { PATH: [...binFolders(folder), process.env['PATH'] ?? ''].join(path.delimiter), ...env },
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

/**
 * Starts servers side by side. All of them, or none: one that does not start is a plan that cannot run, and the others are stopped.
 * @throws PlanFileError that names the server, its command, and what it said last
 */
export async function startServers(names: readonly string[], { file, folder, refuse }: LoadedPlan, runtime: Runtime): Promise<Servers> {
  const start = names.length === 0 ? undefined : await loadStart();
  if (typeof start === 'object') throw refuse([start]);
  const providers = new Map<string, ToolProvider>();
  let wanted = true;
  const close = async (): Promise<void> => {
    wanted = false;
    await Promise.allSettled([...providers.values()].map((provider) => provider.close()));
  };
  const startOne = async (name: string): Promise<void> => {
    const entry = file.servers?.[name];
    if (entry === undefined || start === undefined) return;
    const launch = launchOf(entry, folder);
    const at = ['servers', name];
    if (!(await isFolder(launch.cwd))) throw refuse([{ message: `${launch.cwd} is no folder; it starts at the folder of the plan file`, at: [...at, 'cwd'] }]);
    let provider: ToolProvider;
    try {
      provider = await start({ name, ...launch, runtime, ...(entry.start_timeout_ms === undefined ? {} : { connectTimeoutMs: entry.start_timeout_ms }) });
    } catch (error) {
      const line = plain([entry.command, ...(entry.args ?? [])].join(' ')).slice(0, 120);
      throw refuse([{ message: `the server ${name} could not be started with "${line}": ${messageOf(error)}; check its command and args`, at, atKey: true }]);
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
