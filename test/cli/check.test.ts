import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { runCheck } from '../../src/cli/check.ts';
import { UsageError } from '../../src/cli/arguments/usage.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { DEMO, STACK_TRACE, folder, spillway } from './support.ts';

const files = folder();
afterAll(() => files[Symbol.dispose]());

const check = async (
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ readonly code: number; readonly stdout: string }> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runCheck(args, {
    stdout,
    stderr,
    env,
    runtime: liveRuntime,
    signal: new AbortController().signal,
  });
  return { code, stdout: String(stdout.read() ?? '') };
};

const STARTED = join(files.path, 'started');
const server = `{ command: ${JSON.stringify(process.execPath)}, args: [-e, 'require("node:fs").writeFileSync(${JSON.stringify(STARTED)}, "")'] }`;

const scenario = (servers: string): string =>
  `name: s\nduration_s: 9\nservers: ${servers}\ntools: { t: { server: a } }\n` +
  'clients: [{ closed: { users: 1, think_ms: 5 } }]\n';

/** One of each kind of mistake, in one file. */
const ALL_WRONG = `servers:
  s: ${server}
  away: { command: no-such-program-here }
  lost: { command: x, cwd: nowhere }
tools:
  - { id: a, server: s, tool: x, timeout_ms: -1 }
  - { id: b, server: q, tool: x, retry_polcy: {} }
  - { id: c, server: s, tool: x, circuit_breaker: { window_size: 5, minimum_calls: 9 }, alternatives: [ghost] }
  - { id: slow, server: s, tool: x, timeout_ms: 9000, retry_policy: { max_attempts: 3, max_total_time_ms: 2000 } }
turn:
  nodes:
    - { id: one, tool: a, needs: [two] }
    - { id: two, tool: z, needs: [one] }
    - { id: three }
    - { id: four, tool: a, input: { m: "\${one}" } }
    - { id: five, tool: a, needs: [nothing, three], input: { m: "\${three}" } }
    - { id: five, tool: a, default: 1 }
    - { id: six, tool: a, input: { m: "\${a b}" } }
`;

describe('R-2.9 spillway check', () => {
  it('R-2.9 says all that is wrong with a plan at once: shape, policies, names, references, circles, folders', async () => {
    const { code, stdout } = await check([files.write('all.yaml', ALL_WRONG)]);
    const lines = stdout
      .replaceAll(/^.*all\.yaml:/gm, '')
      .trimEnd()
      .split('\n');
    expect(code).toBe(2);
    expect(lines.map((line) => line.replace(/^(\d+):\d+: /, '$1 '))).toEqual([
      '6 tools[0].timeout_ms: must be above 0, not -1',
      '7 tools[1].retry_polcy: there is no such key here; did you mean retry_policy?',
      '14 turn.nodes[2].tool: is missing; it is a text',
      expect.stringMatching(/^17 turn\.nodes\[5\]\.default: Node five has a default and needs nothing/),
      expect.stringMatching(/^17 turn\.nodes\[5\]\.id: Two nodes have the id five/),
      expect.stringMatching(/^16 turn\.nodes\[4\]\.needs\[0\]: Node five needs nothing, which is not a node/),
      expect.stringMatching(/^12 turn\.nodes\[0\]\.needs\[0\]: The nodes need each other in a circle: one, two, one/),
      '7 tools[1].server: there is no server q; there is s, away, lost',
      expect.stringMatching(/^8 tools\[2\]\.circuit_breaker: minimum_calls must be an integer from 1 to window_size/),
      expect.stringMatching(/^8 tools\[2\]\.alternatives\[0\]: there is no tool ghost/),
      expect.stringMatching(/^13 turn\.nodes\[1\]\.tool: there is no tool z/),
      '15 turn.nodes[3].input.m: ${one} refers to what four does not need: add one to the needs of four',
      expect.stringMatching(/^18 turn\.nodes\[6\]\.input\.m: \$\{a b\} is no reference/),
      expect.stringMatching(/^4 servers\.lost\.cwd: .*nowhere is no folder/),
      ' warning: tool slow: a timeout is never retried, since timeoutMs (9000) is not below retry.maxTotalTimeMs (2000)',
      ' warning: servers.away: there is no program no-such-program-here here',
      ' 14 problems',
    ]);
  });

  it('R-2.9 a plan with which nothing is wrong is fine, and its servers are not started', async () => {
    const plan = files.write(
      'fine.yaml',
      `servers:\n  s: ${server}\nturn: { nodes: [{ id: a, tool: s.x }, { id: b, tool: s.y, needs: [a], input: { m: "\${a}" } }] }\n`,
    );
    expect(await check([plan])).toEqual({
      code: 0,
      stdout: `${plan}: fine: a turn of 2 nodes, 0 tools of its own, 1 server\n`,
    });
    expect(existsSync(STARTED)).toBe(false);
    expect((await check([DEMO])).stdout).toMatch(
      /plan\.yaml: fine: a turn of 9 nodes, 7 tools of its own, 2 servers\n$/,
    );
  });

  it('R-2.9 reads manifests as well, and tells which variables are not set, never what they are', async () => {
    const good = files.write(
      'good.yaml',
      'name: w\nbase_url: https://api.example.com\nheaders: { x-key: "${env:WEATHER_KEY}" }\ntools: [{ id: t, url: /x }]\n',
    );
    expect(await check([good], { WEATHER_KEY: 'canary' })).toEqual({ code: 0, stdout: `${good}: fine: 1 tool\n` });
    expect((await check([good])).stdout).toMatch(
      /: warning: \$\{env:WEATHER_KEY\} is not set in this environment\n.*: fine: 1 tool\n$/,
    );
    const bad = files.write(
      'bad.yaml',
      `name: w\nbase_url: https://api.example.com\nhedders: {}\ntools:\n${Array.from({ length: 15 }, (_, index) => `  - { id: t${index}, url: /x, methd: GET }\n`).join('')}`,
    );
    const { code, stdout } = await check([bad]);
    expect(code).toBe(2);
    expect(stdout).toMatch(/bad\.yaml:3:\d+: hedders: there is no such key here/);
    expect(stdout).toMatch(/bad\.yaml: 16 problems\n$/);
    expect(stdout.trimEnd().split('\n')).toHaveLength(17);
  });

  it.each([
    [
      'a file of mcp',
      'servers: { files: { command: node } }\ntools: { files.read: { timeout_ms: 900 } }\n',
      'fine: 1 server and the policies of 1 tool, for spillway mcp',
    ],
    ['its servers alone', 'servers: { files: { command: node } }\n', 'fine: 1 server and the policies of 0 tools,'],
    [
      'policies',
      'name: next\ndefaults: { timeout_ms: 900 }\ntools: { pay: { retry_policy: { max_attempts: 2 } } }\n',
      'fine: the policies of 1 tool, for spillway replay and spillway simulate',
    ],
    [
      'a scenario',
      scenario('{ a: { latency: { constant_ms: 5 } } }'),
      'fine: 1 server, 1 tool and 1 kind of clients, for spillway simulate',
    ],
  ])('R-2.9 knows %s by its keys, and says what it is for', async (what, text, said) => {
    const { code, stdout } = await check([files.write(`${what.replaceAll(' ', '-')}.yaml`, text)]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(said)]);
  });

  it.each([
    ['servers: {}\ntools: { a.b: { timout_ms: 1 } }\n', 'tools.a.b.timout_ms: there is no such key here; did you mean'],
    [
      'servers: { a: { command: node }, b: { command: node } }\ntools: { c.d: {} }\n',
      '2:10: tools.c.d: names no server; there is a, b',
    ],
    ['servers: { a: { command: node, cwd: nowhere } }\ntools: {}\n', 'nowhere is no folder'],
    [
      'servers: {}\ndefaults: { circuit_breaker: { window_size: 5, minimum_calls: 9 } }\n',
      '2:11: defaults: tool defaults: minimumCalls must be an integer from 1 to windowSize, which is 5, not 9',
    ],
    ['retry_budget: off\ntools: { a: { timeout_ms: -1 } }\n', 'tools.a.timeout_ms: must be above 0, not -1'],
    ['retry_budget: off\ntols: {}\n', 'tols: there is no such key here; did you mean tools?'],
    ['duration_s: 9\nclients: []\n', '1:1: name: is missing; it is a text'],
    [scenario('{}'), 'other.yaml: tools.t: there is no server a; there are none'],
  ])('R-2.9 says what is wrong with it as what it is: %j', async (text, said) => {
    const { code, stdout } = await check([files.write('other.yaml', text)]);
    expect([code, stdout]).toEqual([2, expect.stringContaining(said)]);
    expect(stdout).toMatch(/other\.yaml: \d problems?\n$/);
  });

  it('R-2.9 takes several files, and --json tells each as an object', async () => {
    const [fine, wrong] = [
      join(files.path, 'fine.yaml'),
      files.write('wrong.yaml', 'turn: { nodes: [{ id: a, tool: ghost }] }\n'),
    ];
    const gone = join(files.path, 'gone.yaml');
    const { code, stdout } = await check([fine, wrong, gone, '--json']);
    expect(code).toBe(2);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { file: fine, kind: 'plan', ok: true, problems: [], warnings: [] },
      {
        file: wrong,
        kind: 'plan',
        ok: false,
        problems: [
          {
            line: 1,
            column: 32,
            at: 'turn.nodes[0].tool',
            message: expect.stringContaining('there is no tool ghost') as unknown,
          },
        ],
        warnings: [],
      },
      {
        file: gone,
        kind: 'plan',
        ok: false,
        problems: [{ message: expect.stringContaining('there is no such file') as unknown }],
        warnings: [],
      },
    ]);
  });

  it.each([
    ['an empty file', ''],
    ['no mapping', '- a\n'],
    ['broken YAML', 'turn: { nodes: ['],
    [
      'nodes that are none',
      'servers: 5\ntools: [1, null, { id: 7 }]\nturn: { nodes: [3, null, [], { id: 9, needs: x }] }\n',
    ],
    ['a turn that is none', 'turn: []\n'],
    [
      'hostile names',
      'servers: { s: { command: x } }\ntools: [{ id: "\\e[2Jforged", server: s, tool: x }]\nturn: { nodes: [{ id: a, tool: "x\\e]0;y\\a" }] }\n',
    ],
  ])('R-15.2 %s is told in printable lines, without a crash', async (what, text) => {
    const { code, stdout } = await check([files.write(`${what.replaceAll(' ', '-')}.yaml`, text)]);
    expect(code).toBe(2);
    expect(stdout).toMatch(/: \d+ problems?\n$/);
    expect(stdout).not.toMatch(/[^\n -~\u00a0-\uffff]/);
  });

  it('R-2.9 as a process exits 0 or 2, without a stack, and needs a file', async () => {
    const [fine, wrong, nothing, option] = await Promise.all([
      spillway('check', DEMO),
      spillway('check', join(files.path, 'all.yaml')),
      spillway('check'),
      spillway('check', DEMO, '--jsn'),
    ]);
    expect([fine, wrong, nothing, option].map(({ code }) => code)).toEqual([0, 2, 2, 2]);
    expect(nothing.stderr).toContain('the file is missing; write spillway check PLAN.yaml');
    expect(option.stderr).toContain('there is no option --jsn; did you mean --json?');
    for (const { stderr } of [fine, wrong, nothing, option]) expect(stderr).not.toMatch(STACK_TRACE);
    await expect(check([''])).rejects.toThrow(UsageError);
    expect(existsSync(STARTED)).toBe(false);
  });
});
