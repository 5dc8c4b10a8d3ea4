import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import type { ServerEntry } from '../../contract/formats/server-entry.ts';
import type { Problem } from '../../formats/yaml.ts';
import { UsageError } from '../arguments/usage.ts';
import { secretsOf } from './secrets.ts';
import { launchOf } from './servers.ts';

const exists = async (file: string, mode: number): Promise<boolean> => {
  try {
    await access(file, mode);
    return true;
  } catch {
    return false;
  }
};

const isFolder = async (folder: string): Promise<boolean> => {
  try {
    return (await stat(folder)).isDirectory();
  } catch {
    return false;
  }
};

/** Whether the program of a server is there, as far as one can know without starting it. */
const programIsThere = async (command: string, folders: string): Promise<boolean> => {
  // Windows finds programs by more rules than these.
  if (process.platform === 'win32') return true;
  if (command.includes('/')) return exists(command, constants.X_OK);
  const found = await Promise.all(
    folders
      .split(path.delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => exists(path.join(folder, command), constants.X_OK)),
  );
  return found.includes(true);
};

/** A command that is given more secrets than it can keep out of what it prints refuses to start. */
const secretsProblem = (servers: Readonly<Record<string, ServerEntry>>): Problem[] => {
  try {
    secretsOf(servers);
    return [];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [{ message: error.message, at: ['servers'] }];
  }
};

/** What servers need of this machine: folders must be there, programs should, and secrets must not be too many. */
export const checkServers = async (
  servers: Readonly<Record<string, ServerEntry>>,
  folder: string,
): Promise<{ readonly problems: Problem[]; readonly warnings: string[] }> => {
  const problems = secretsProblem(servers);
  const warnings: string[] = [];
  for (const [name, entry] of Object.entries(servers)) {
    const { command } = entry;
    if (command === undefined) continue;
    const { cwd, command: program, env } = launchOf({ ...entry, command }, folder);
    if (!(await isFolder(cwd)))
      problems.push({
        message: `${cwd} is no folder; it starts at the folder of the file`,
        at: ['servers', name, 'cwd'],
      });
    else if (!(await programIsThere(program, env['PATH'] ?? '')))
      warnings.push(`servers.${name}: there is no program ${program} here`);
  }
  return { problems, warnings };
};
