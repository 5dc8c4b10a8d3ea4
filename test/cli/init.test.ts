import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runInit } from '../../src/cli/init.ts';
import { loadPlan } from '../../src/cli/plan/file.ts';
import { FileError, UsageError } from '../../src/cli/arguments/usage.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { folder, spillway, start, type Folder } from './support.ts';

const SECRET = 'canary-4711';
let files: Folder;
beforeEach(() => {
  files = folder();
});
afterEach(() => files[Symbol.dispose]());

const init = async (
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runInit(args, {
    stdout,
    stderr,
    env: {},
    runtime: liveRuntime,
    signal: new AbortController().signal,
  });
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
};
const made = async (
  source: string,
): Promise<Awaited<ReturnType<typeof init>> & { readonly plan: string; readonly text: string }> => {
  const plan = join(files.path, 'plan.yaml');
  const said = await init(files.write('mcp.json', source), '--out', plan);
  return { ...said, plan, text: readFileSync(plan, 'utf8') };
};

const SERVERS = `{
  // Claude and Cursor call it mcpServers.
  "mcpServers": {
    "git": { "command": "npx", "args": ["-y", "git-server", "a: b"], "env": { "TOKEN": "${SECRET}", "PORT": 80, "HOME_OF": "\${env:HOME}" }, "cwd": "." },
    "far away!": { "type": "http", "url": "https://mcp.example/mcp?key=${SECRET}", "headers": { "authorization": "Bearer ${SECRET}", "x-in": "\${input:token}" } },
    "sse": { "type": "sse", "url": "https://mcp.example/sse" },
    "off": { "command": "x", "disabled": true },
    "odd": { "note": 1 }, /* and one that is none */ "none": 3,
  },
}`;

describe('R-2.9 spillway init', () => {
  it('R-2.9 writes a plan with the servers of an mcp.json that check finds nothing wrong with', async () => {
    const { code, plan } = await made(SERVERS);
    expect(code).toBe(0);
    const { file } = await loadPlan(plan);
    expect(file.servers).toEqual({
      git: { command: 'npx', args: ['-y', 'git-server', 'a: b'], env: { TOKEN: SECRET, PORT: '80' }, cwd: '.' },
      'far-away': { url: `https://mcp.example/mcp?key=${SECRET}`, headers: { authorization: `Bearer ${SECRET}` } },
    });
    expect(file.turn.nodes).toEqual([{ id: 'first', tool: 'git.TOOL', input: {} }]);
  });

  it('R-2.9 says what it could not take over, and prints no value of env, headers or url', async () => {
    const { stdout, stderr, text, plan } = await made(SERVERS);
    expect(stdout).toBe(`${plan}: written, with the servers git, far-away of ${join(files.path, 'mcp.json')}\n`);
    const notes = [
      'git: env HOME_OF is filled in by your editor',
      'far away!: header x-in is filled in by your editor',
      'far away!: is called far-away',
      'sse: speaks SSE',
      'off: is disabled there',
      'odd: has neither a command nor a url',
      'none: is no mapping',
    ];
    for (const note of notes) expect([stderr.includes(note), text.includes(`# ${note}`)], note).toEqual([true, true]);
    expect(`${stdout}${stderr}`).not.toContain(SECRET);
    expect(text).toContain('keep this file out of version control');
    expect(statSync(plan).mode & 0o777).toBe(0o600);
  });

  it('R-2.9 reads what VS Code writes, too', async () => {
    const { plan, stderr } = await made(
      '{ "servers": { "a": { "type": "stdio", "command": "a-server" } }, "inputs": [] }',
    );
    expect((await loadPlan(plan)).file.servers).toEqual({ a: { command: 'a-server' } });
    expect(stderr).toBe('');
  });

  it('R-2.9 never overwrites, not even what may not be read', async () => {
    const plan = files.write('plan.yaml', 'mine');
    const source = files.write('mcp.json', SERVERS);
    await expect(init(source, '--out', plan)).rejects.toThrow(FileError);
    await expect(init(source, '--out', plan)).rejects.toThrow(
      'is there already, and is not overwritten; give another name by --out',
    );
    chmodSync(plan, 0o000);
    await expect(init(source, '--out', plan)).rejects.toThrow('is there already');
    chmodSync(plan, 0o600);
    expect(readFileSync(plan, 'utf8')).toBe('mine');
    expect(readdirSync(files.path).toSorted()).toEqual(['mcp.json', 'plan.yaml']);
  });

  it.each([
    ['', '1:1: has no mcpServers and no servers'],
    ['[]', 'has no mcpServers'],
    ['{ "mcpServers": {} }', 'has no server that a plan can use'],
    [
      '{ "mcpServers": { "a": { "type": "sse", "url": "https://x.example" } } }',
      'has no server that a plan can use (a: speaks SSE',
    ],
    ['{ "mcpServers": { "a": ', 'is not YAML'],
    [`{ "mcpServers": { "a": { "url": "https://me:${SECRET}@x.example" } } }`, 'holds a user name or a password'],
    [`{ "mcpServers": { "a": { "url": "file:///${SECRET}" } } }`, 'its url is none that a plan can use'],
  ])('R-2.9 refuses %j, writes nothing and repeats no secret', async (text, message) => {
    const source = files.write('mcp.json', text);
    const refused = init(source, '--out', join(files.path, 'new.yaml'));
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.not.toThrow(SECRET);
    expect(readdirSync(files.path)).toEqual(['mcp.json']);
  });

  it('R-2.9 refuses what is not there, and lines that ask for too much', async () => {
    await expect(init(join(files.path, 'gone.json'))).rejects.toThrow(/gone\.json: cannot be read \(ENOENT\)/);
    await expect(init(files.write('mcp.json', SERVERS), '--out', join(files.path, 'no', 'plan.yaml'))).rejects.toThrow(
      'name a file in a folder that exists',
    );
    await expect(init('a', 'b')).rejects.toThrow(UsageError);
    await expect(init('--out', '')).rejects.toThrow('--out needs the name of a file');
  });

  it('R-15.2 names from the file cannot drive the terminal, and two that become one are told apart', async () => {
    const { plan, stderr, text } = await made(
      '{ "mcpServers": { "a b": { "command": "x" }, "a-b": { "command": "y" }, "\\u001b[2J": { "command": "z" } } }',
    );
    expect(Object.keys((await loadPlan(plan)).file.servers ?? {})).toEqual(['a-b', 'a-b-2', '2J']);
    expect(`${stderr}${text}`).not.toContain('\u001b');
  });

  it('R-2.9 as a process finds the usual files of a project, and the plan passes check', async () => {
    mkdirSync(join(files.path, '.vscode'));
    files.write(join('.vscode', 'mcp.json'), '{ "servers": { "a": { "command": "node" } } }');
    const ended = await start(['init'], {}, files.path).ended;
    expect(ended).toMatchObject({
      code: 0,
      stdout: 'plan.yaml: written, with the server a of .vscode/mcp.json\n',
      stderr: '',
    });
    expect((await spillway('check', join(files.path, 'plan.yaml'))).code).toBe(0);
    expect(await start(['init'], {}, files.path).ended).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('is there already') as unknown,
    });
  });
});
