import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { PACKAGES } from './adapters/frameworks/packages.ts';
import { root } from './pages.ts';
import { sideInstalled } from './side-install.ts';

/** The packages in a folder of modules, those of a scope one by one. */
const packagesIn = (modules: string): string[] =>
  readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : name,
  );

/** What `beforeAll` waits for: the frameworks, which are installed once per machine. */
export async function installFrameworks(): Promise<void> {
  // One after the other: npm takes the whole machine.
  for (const install of Object.values(PACKAGES)) await sideInstalled(...install);
}

/** Gives a folder the modules of a reader: our own install, and the frameworks that are installed beside it. */
export async function linkModules(folder: string): Promise<void> {
  const link = (from: string, name: string): void => {
    const to = join(folder, 'node_modules', name);
    mkdirSync(dirname(to), { recursive: true });
    if (!existsSync(to)) symlinkSync(join(from, name), to, 'junction');
  };
  const main = join(root, 'node_modules');
  for (const name of packagesIn(main)) link(main, name);
  for (const install of Object.values(PACKAGES)) {
    const beside = join(await sideInstalled(...install), 'node_modules');
    for (const wanted of install[1]) link(beside, wanted.slice(0, wanted.lastIndexOf('@')));
  }
}

/** Runs a file in the root of the repository, where the reader's project would be. */
export async function runFile(
  path: string,
): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
  // Anywhere but in production VoltAgent asks the network for a list of models while it is loaded.
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(process.execPath, [path], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
  });
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { status, stdout, stderr: stderr.replaceAll(/^.*(?:Warning|--trace-).*\n/gm, '') };
}
