import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { runTools } from '../../src/cli/list-tools.ts';
import { UsageError } from '../../src/cli/arguments/usage.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { ROOT, STACK_TRACE, folder, gone, marked, processesOf, start, spillway, until } from './support.ts';

const files = folder();
afterAll(() => files[Symbol.dispose]());

const tools = async (
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runTools(args, {
    stdout,
    stderr,
    env: {},
    runtime: liveRuntime,
    signal: new AbortController().signal,
  });
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
};
interface Shown {
  readonly server: string;
  readonly tool: string;
  readonly names: readonly string[];
  readonly effects: string;
  readonly description?: string;
  readonly inputSchema?: { readonly properties?: Readonly<Record<string, unknown>> };
}
const parsed = (text: string): Shown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Shown);

const planOf = (mark: string, more = ''): string =>
  files.write(
    `${mark}.yaml`,
    `${marked(mark)}${more}tools:\n  - { id: adder, server: everything, tool: get-sum, effects: mutating }\nturn: { nodes: [{ id: a, tool: everything.echo, input: { message: x } }] }\n`,
  );
const hostile = `  hostile: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(join(ROOT, 'test/regressions/hostile-names-server.ts'))}] }\n`;

describe('R-2.9 spillway tools', () => {
  it('R-2.9 lists what the servers of a plan have, with effects, schemas and the names of the plan', async () => {
    const plan = planOf('spillway-tools');
    const { code, stdout } = await tools(plan, '--no-color');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^everything: \d+ tools\n {2}tool +effects +input\n/);
    expect(stdout).toMatch(/^ {2}echo +read +message: string\n {6}Echoes back the input string\n/m);
    // What the plan says of its own tool goes before what its server says.
    expect(stdout).toMatch(/^ {2}get-sum \(adder\) +mutating +a: number, b: number$/m);
    expect(stdout).toMatch(/^note: everything\.simulate-research-query is left out: it only runs as a task/m);
    await gone('spillway-tools');
  });

  it('R-2.9 --json gives each with its whole schema', async () => {
    const { code, stdout, stderr } = await tools(planOf('spillway-tools-json'), '--json');
    const shown = parsed(stdout);
    expect([code, stderr.startsWith('note: everything.simulate-research-query is left out')]).toEqual([0, true]);
    expect(shown.find(({ tool }) => tool === 'get-sum')).toEqual({
      server: 'everything',
      tool: 'get-sum',
      names: ['adder', 'everything.get-sum'],
      effects: 'mutating',
      description: expect.any(String) as unknown,
      inputSchema: expect.objectContaining({
        type: 'object',
        required: ['a', 'b'],
        properties: {
          a: expect.objectContaining({ type: 'number' }) as unknown,
          b: expect.objectContaining({ type: 'number' }) as unknown,
        },
      }) as unknown,
    });
    expect(shown.find(({ tool }) => tool === 'echo')?.effects).toBe('read');
  });

  it('R-2.9 --server takes only some, and starts no other', async () => {
    const plan = files.write(
      'two.yaml',
      `${marked('spillway-two')}  broken: { command: no-such-command-here }\nturn: { nodes: [{ id: a, tool: everything.echo }] }\n`,
    );
    expect((await tools(plan, '--server', 'everything')).code).toBe(0);
    await expect(tools(plan)).rejects.toThrow(/servers\.broken: the server broken could not be started/);
    await expect(tools(plan, '--server', 'evrything')).rejects.toThrow(
      'there is no server "evrything" in the plan; did you mean everything?',
    );
    await gone('spillway-two');
  });

  it('R-2.9 lists a manifest without sending anything or needing its secrets', async () => {
    const manifest = files.write(
      'weather.yaml',
      'name: weather\nbase_url: https://api.example.com\nheaders: { x-key: "${env:WEATHER_KEY}" }\ntools:\n  - { id: forecast, description: The weather of a city., url: "/cities/{city}", input: { type: object, properties: { city: { type: string } }, required: [city] } }\n',
    );
    const { stdout } = await tools(manifest, '--no-color');
    expect(stdout).toMatch(
      /^weather: 1 tool\n {2}tool +effects +input\n {2}\S*forecast +read +city: string\n {6}The weather of a city\.\n$/,
    );
    expect(parsed((await tools(manifest, '--json')).stdout)).toMatchObject([
      { server: 'weather', effects: 'read', inputSchema: { properties: { city: { type: 'string' } } } },
    ]);
    await expect(tools(files.write('bad-manifest.yaml', 'name: w\nbase_url: nothing\ntools: []\n'))).rejects.toThrow(
      UsageError,
    );
  });

  it('R-15.2 what a server calls its tools cannot drive the terminal, nor forge a line', async () => {
    const plan = files.write('hostile.yaml', `servers:\n${hostile}turn: { nodes: [{ id: a, tool: hostile.x }] }\n`);
    for (const args of [[], ['--json']]) {
      const { stdout, stderr } = await tools(plan, '--no-color', ...args);
      expect(stdout.length).toBeGreaterThan(20);
      expect(`${stdout}${stderr}`).not.toMatch(/[^\n -~\u00a0-\u200a\u2010-\u2027\u2030-\uffff]/);
    }
  });

  it('R-2.9 as a process exits 0 or 2; interrupted while a server starts it exits 130 and leaves none', async () => {
    const mark = 'spillway-tools-slow';
    const slow = files.write(
      'slow.yaml',
      `servers:\n  slow: { command: ${JSON.stringify(process.execPath)}, args: [-e, "setInterval(() => {}, 1000)", stdio, ${mark}] }\nturn: { nodes: [{ id: a, tool: slow.x }] }\n`,
    );
    const { child, ended } = start(['tools', slow]);
    await until(() => processesOf(mark).length > 0);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stdout: '' });
    await gone(mark);
    const [wrong, nothing, fine] = await Promise.all([
      spillway('tools', files.write('wrong.yaml', 'turn: 1\n')),
      spillway('tools'),
      spillway('tools', planOf('spillway-tools-fine')),
    ]);
    expect([wrong.code, nothing.code, fine.code]).toEqual([2, 2, 0]);
    expect(nothing.stderr).toContain('the plan file is missing; write spillway tools PLAN.yaml');
    for (const { stderr } of [wrong, nothing, fine]) expect(stderr).not.toMatch(STACK_TRACE);
  });
});
