import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { manifest, root } from './consumer.ts';

/** What a command that must succeed prints. */
export const run = (cwd: string, command: string, ...args: string[]): string => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', input: '' });
  expect(status, `${command} ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout;
};

/** Builds into a folder of its own. @param beside files of the tree that are there, too */
export const build = (staged: string, beside: readonly string[]): void => {
  run(root, process.execPath, join(root, '.ci/build.ts'), join(staged, 'dist'));
  for (const name of ['package.json', ...beside]) {
    mkdirSync(dirname(join(staged, name)), { recursive: true });
    copyFileSync(join(root, name), join(staged, name));
  }
};

/** Packs what was built, and unpacks it where a project has it. @returns the tarball, in `folder` */
export const install = (staged: string, folder: string, installed: string): string => {
  run(staged, 'npm', 'pack', '--ignore-scripts', '--pack-destination', folder);
  const tarball = join(folder, `spillway-${manifest.version}.tgz`);
  mkdirSync(installed, { recursive: true });
  run(installed, 'tar', '-xzf', tarball, '--strip-components=1');
  return tarball;
};
