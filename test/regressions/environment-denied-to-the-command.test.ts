// Was: where the environment may not be read (Deno without --allow-env) the command crashed at its first look. Now:
// what is denied is not set.
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { DEMO, STACK_TRACE, folder, start } from '../cli/support.ts';

const files = folder();
afterAll(() => files[Symbol.dispose]());

/** Denies the environment to all code but Node's own, which looks at it while it loads modules. */
const DENIED = `const own = process.env;
const isNode = () => /^ +at .*node:/.test((new Error().stack ?? '').split('\\n')[3] ?? '');
const denied = () => { throw Object.assign(new Error('Requires env access, run again with the --allow-env flag'), { name: 'NotCapable' }); };
const guard = (act) => (...args) => isNode() ? act(...args) : denied();
const all = new Proxy(own, Object.fromEntries(['get', 'has', 'ownKeys', 'getOwnPropertyDescriptor'].map((name) => [name, guard(Reflect[name])])));`;
/** Code that runs before the command, in its process. */
const before = (code: string): string[] => [
  '--import',
  `data:text/javascript,${encodeURIComponent(`${DENIED}\n${code}`)}`,
];
const AT_EACH_LOOK = before(`Object.defineProperty(process, 'env', { value: all, configurable: true });`);
const AT_ALL = before(`Object.defineProperty(process, 'env', { get: guard(() => own), configurable: true });`);

describe('R-11.2 the command in an environment that may not be read', () => {
  it.each([
    ['at each look', AT_EACH_LOOK],
    ['at all', AT_ALL],
  ])('R-11.2 %s checks, shows and helps as elsewhere', async (_, denied) => {
    const trace = files.write(
      'trace.ndjson',
      `${JSON.stringify({ source: 'call', type: 'call_started', seq: 1, atMs: 0, callId: 'c', toolName: 't' })}\n`,
    );
    const run = (...args: string[]) => start(args, {}, undefined, denied).ended;
    const [check, show, help, wrong, admin] = await Promise.all([
      run('check', DEMO),
      run('show', trace),
      run('--help'),
      run('rn'),
      run('admin', 'status'),
    ]);
    expect([check, show, help, wrong, admin].map(({ code }) => code)).toEqual([0, 0, 0, 2, 2]);
    expect(show.stdout).toMatch(/^1 call, 1 of which did not succeed/);
    expect(admin.stderr).toContain('the address is missing; give --url, or set SPILLWAY_ADMIN_URL');
    for (const { stderr } of [check, show, help, wrong, admin]) expect(stderr).not.toMatch(/NotCapable|allow-env/);
  });

  it('R-11.2 runs a plan and its servers, which then have no more than the plan gives them', async () => {
    const server = `{ command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js'))}, stdio] }`;
    const plan = files.write(
      'plan.yaml',
      `servers:\n  everything: ${server}\nturn: { nodes: [{ id: a, tool: everything.echo, input: { message: x } }] }\n`,
    );
    const { code, stdout, stderr } = await start(['run', plan], {}, undefined, AT_EACH_LOOK).ended;
    expect({ code, said: /\ncompleted: /.test(stdout), stderr }).toEqual({
      code: 0,
      said: true,
      stderr: expect.not.stringMatching(STACK_TRACE) as unknown,
    });
  });
});
