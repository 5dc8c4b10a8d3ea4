import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

/** What `beforeAll` should wait for an install: it is made once per machine. */
export const SIDE_INSTALL_TIMEOUT_MS = 600_000;

/**
 * Under node_modules, where test runners leave modules alone, so that `import` is Node's own and starts from that
 * folder.
 */
const LOADER = join('node_modules', 'side-install.mjs');

const install = async (folder: string, packages: readonly string[], flags: readonly string[]): Promise<void> => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const options = ['--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', ...flags];
  await promisify(execFile)('npm', ['install', ...options, ...packages], {
    cwd: folder,
    timeout: SIDE_INSTALL_TIMEOUT_MS - 30_000,
    maxBuffer: 2 ** 24,
  });
  writeFileSync(join(folder, LOADER), 'export const load = (specifier) => import(specifier);\n');
};

/** Who installs touches the lock so often; one that was not touched for so long is nobody's. */
const BEAT_MS = 2_000;
const STALE_MS = 60_000;

/** Whether the lock is this process's now: nobody has it, or who had it is long gone. */
const locked = (lock: string): boolean => {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > STALE_MS) rmSync(lock, { recursive: true, force: true });
    return false;
  }
};

/**
 * Installs packages that do not fit into the main install, into a folder of the system's temporary one that later runs
 * find again. It gets its name by a rename once it is complete. Whoever comes while it is made waits for it.
 *
 * @param name a word for the folder's name
 * @param packages each with its exact version
 * @param flags more flags of `npm install`
 * @returns imports a module as a file in that folder would
 *
 * @example
 * const load = await sideInstall('otel2', ['@opentelemetry/sdk-trace-base@2.11.0']);
 * const { BasicTracerProvider } = (await load('@opentelemetry/sdk-trace-base')) as TraceBase;
 */
export async function sideInstall(
  name: string,
  packages: readonly string[],
  flags: readonly string[] = [],
): Promise<(specifier: string) => Promise<unknown>> {
  const folder = await sideInstalled(name, packages, flags);
  const { load } = (await import(/* @vite-ignore */ pathToFileURL(join(folder, LOADER)).href)) as {
    load: (specifier: string) => Promise<unknown>;
  };
  return load;
}

/** Does the same, and gives the folder. */
export async function sideInstalled(
  name: string,
  packages: readonly string[],
  flags: readonly string[] = [],
): Promise<string> {
  const inexact = packages.filter((wanted) => !/^(?:@[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+[\w.+-]*$/.test(wanted));
  if (inexact.length > 0)
    throw new RangeError(`a side install takes name@version with an exact version, not ${inexact.join(', ')}`);
  const hash = createHash('sha256')
    .update(JSON.stringify([packages.toSorted(), flags, process.platform, process.arch, process.getuid?.()]))
    .digest('hex');
  const parent = join(tmpdir(), 'spillway-side-install');
  const folder = join(parent, `${name}-${hash.slice(0, 16)}`);
  const complete = (): boolean => existsSync(join(folder, LOADER));
  if (complete()) return folder;
  mkdirSync(parent, { recursive: true });
  const lock = `${folder}.lock`;
  while (!locked(lock)) {
    if (complete()) return folder;
    await sleep(200);
  }
  const beat = setInterval(() => utimesSync(lock, new Date(), new Date()), BEAT_MS);
  const making = mkdtempSync(join(parent, `.${name}-`));
  try {
    if (!complete()) {
      await install(making, packages, flags);
      renameSync(making, folder);
    }
  } catch (error) {
    if (!complete()) throw error;
  } finally {
    clearInterval(beat);
    rmSync(making, { recursive: true, force: true });
    rmSync(lock, { recursive: true, force: true });
  }
  return folder;
}
