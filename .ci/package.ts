// Installs the packed package in empty projects, from the registry, as its users do: with the versions we develop
// against and with the oldest its peer ranges allow, on the oldest and the newest Node. `test/package` has what needs
// no download.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { manifest, root, tsconfigs, writeConsumer } from '../test/package/consumer.ts';

/** The floor of `engines`, the last of its line, the toolchain's own, the newest. */
const NODES = ['22.0.0', '22.23.3', manifest.devDependencies['node'] ?? '', '26.10.0'];
const TOOLS = ['typescript@5.9.3', '@types/node@22.20.1'];

const folder = mkdtempSync(join(tmpdir(), 'spillway-install-'));
const startedAt = performance.now();
const say = (text: string): void =>
  console.log(`package: ${text} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);

const run = async (
  cwd: string,
  command: string,
  args: readonly string[],
  path = process.env['PATH'],
): Promise<string> => {
  try {
    return (await promisify(execFile)(command, args, { cwd, env: { ...process.env, PATH: path } })).stdout;
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) console.error(String(error.stdout));
    throw error;
  }
};

/** The oldest version a range such as ^1.2.3 allows. */
const floorOf = (range: string): string => range.replace(/^\^/, '');
const peers = Object.keys(manifest.peerDependencies);
const projects = [
  { name: 'current', versions: peers.map((peer) => `${peer}@${manifest.devDependencies[peer]}`) },
  { name: 'oldest', versions: peers.map((peer) => `${peer}@${floorOf(manifest.peerDependencies[peer] ?? '')}`) },
];

/** Every entry, in both modes of resolution; that the root needs no types of Node is the offline test's. */
const everyEntry = tsconfigs.filter((name) => name.includes('-node'));

/** Installs a Node from its npm package, and gives the path of its executable. */
const installNode = async (version: string): Promise<string> => {
  const prefix = join(folder, `node-${version}`);
  await run(folder, 'npm', ['install', '--prefix', prefix, '--ignore-scripts=false', `node@${version}`]);
  return join(prefix, 'node_modules/node/bin/node');
};

const installProject = async (name: string, versions: readonly string[]): Promise<string> => {
  const project = join(folder, name);
  writeConsumer(project);
  await run(project, 'npm', ['install', join(folder, `spillway-${manifest.version}.tgz`), ...versions, ...TOOLS]);
  return project;
};

try {
  await run(root, 'npm', ['pack', '--pack-destination', folder]);
  say('packed');
  const [nodes, installed] = await Promise.all([
    Promise.all(NODES.map(installNode)),
    Promise.all(
      projects.map(async ({ name, versions }) => ({ versions, project: await installProject(name, versions) })),
    ),
  ]);
  say('installed');

  for (const { project, versions } of installed) {
    for (const node of nodes) {
      const version = (await run(project, node, ['imports.js'])).trim();
      // The command, found as npx finds it, on this Node.
      const help = await run(
        project,
        join(project, 'node_modules/.bin/spillway'),
        ['--help'],
        `${dirname(node)}${delimiter}${process.env['PATH']}`,
      );
      if (!help.includes('spillway')) throw new Error(`spillway --help on ${version} says nothing of itself: ${help}`);
      say(`Node ${version} imports every entry and runs the command, with ${versions.join(' ')}`);
    }
    await Promise.all(
      everyEntry.map((tsconfig) => run(project, process.execPath, ['node_modules/typescript/bin/tsc', '-p', tsconfig])),
    );
    say(`${TOOLS[0]} compiles a strict program, with ${versions.join(' ')}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
