import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXAMPLE_TIMEOUT_MS, linesOf } from '../examples/started.ts';
import { matches } from '../snippets.ts';
import { manifest, root } from './consumer.ts';
import { build, install } from './packed.ts';

/**
 * A project as the README has one begin it: the packed package, what it says to install beside it, and the MCP servers
 * of the examples. Nothing of the repository can be reached from it.
 */
const folder = mkdtempSync(join(tmpdir(), 'spillway-newcomer-'));
const project = join(folder, 'project');
const modules = join(project, 'node_modules');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SERVERS = { 'mcp-server-filesystem': 'server-filesystem', 'mcp-server-everything': 'server-everything' } as const;
const BESIDE = ['rxjs', 'zod', '@modelcontextprotocol/sdk'];

const link = (from: string, to: string): void => {
  mkdirSync(dirname(to), { recursive: true });
  if (!existsSync(to)) symlinkSync(from, to);
};

beforeAll(() => {
  const staged = join(folder, 'staged');
  build(staged, []);
  install(staged, folder, join(modules, 'spillway'));
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
  for (const name of [...BESIDE, ...Object.keys(manifest.dependencies)])
    link(join(root, 'node_modules', name), join(modules, name));
  for (const [bin, server] of Object.entries(SERVERS)) {
    const installedServer = join(modules, '@modelcontextprotocol', server);
    link(join(root, 'node_modules/@modelcontextprotocol', server), installedServer);
    link(join(installedServer, 'dist/index.js'), join(modules, '.bin', bin));
  }
}, 300_000);

it('the README says what a project of one’s own needs', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  expect(readme.replaceAll('\n', ' ')).toMatch(
    /`npm install spillway rxjs zod`, and `@modelcontextprotocol\/sdk` too if you use MCP servers/,
  );
  // What is linked to is in the package: its own test sees to that.
  const linked = matches(readme, /\]\(([\w/.-]+)\)/g);
  expect(linked).toEqual(
    expect.arrayContaining([
      'src/testing/README.md',
      'src/providers/README.md',
      'src/agent/README.md',
      'src/sinks/README.md',
    ]),
  );
});

it.each([
  ['pipeline', 'a stream of questions, two agents'],
  ['policy', 'marble tests'],
  ['rest', 'a REST API as tools'],
  ['mcp', 'an agent with two MCP servers'],
  ['dashboard', 'the trace'],
])('%s: %s, from the package alone', { timeout: 2 * EXAMPLE_TIMEOUT_MS }, async (name) => {
  copyFileSync(join(root, 'test/examples', `${name}.ts`), join(project, `${name}.ts`));
  const { stdout } = await promisify(execFile)(process.execPath, [`${name}.ts`], {
    cwd: project,
    env: { ...process.env, NO_COLOR: '1' },
    timeout: EXAMPLE_TIMEOUT_MS,
  });
  expect(stdout.trimEnd().split('\n')).toEqual(await linesOf(name));
});
