import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT, folder, spillway, type Folder } from '../cli/support.ts';
import { writeTrace } from './replay/files.ts';
import { recordStorm } from './replay/storm.ts';

const OUTAGE = `name: an outage
duration_s: 30
seeds: 3
engine: fleet
servers: { api: { latency: { median_ms: 20, p99_ms: 200 }, bursts: [{ from_s: 10, to_s: 20, rate: 1 }] } }
tools: { search: { server: api } }
clients: [{ poisson: { rate_per_s: 60 } }]
expect: { load: 1.2, recovery_s: 5 }
`;
const RETRIES = 'defaults: { circuit_breaker: false, retry_policy: { max_attempts: 4 } }\n';

let files: Folder;
const at = (name: string): string => join(files.path, name);
beforeAll(() => {
  files = folder();
  writeTrace(at('trace.ndjson'), recordStorm({ calls: 200, outage: [1_000, 2_500], policy: { breaker: false } }));
  // Most calls are refused by a breaker: what their attempts would have done is in no trace.
  writeTrace(
    at('down.ndjson'),
    recordStorm({ calls: 600, outage: [0, 12_000], policy: { retry: { maxAttempts: 1 } } }),
  );
  files.write('once.yaml', 'name: once\ntools: { pay: { retry_policy: { max_attempts: 1 } } }\n');
  files.write('same.yaml', 'name: the same\n');
  files.write('grid.yaml', 'pay.retry.maxAttempts: [1, 2, 3]\npay.timeoutMs: [900, 1000]\n');
  files.write('outage.yaml', OUTAGE);
  files.write('bad.yaml', `retry_budget: off\n${RETRIES}`);
  files.write('fixed.yaml', `retry_budget: { ratio: 0.1, min_per_second: 0, window_ms: 1000 }\n${RETRIES}`);
});
afterAll(() => files?.[Symbol.dispose]());

interface Found {
  readonly candidates: ReadonlyArray<{
    readonly name: string;
    readonly verdict: { readonly code: string; readonly calls?: number };
    readonly flips: ReadonlyArray<{ readonly change: string; readonly callId: string }>;
  }>;
}

describe('the command spillway replay', () => {
  it.each([
    ['RPL-2 safe to ship, with 0', 'trace.ndjson', ['--policy', 'same.yaml'], /\nthe same: safe to ship\n/, 0],
    [
      'RPL-2 worse for so many calls, with 1',
      'trace.ndjson',
      ['--policy', 'once.yaml'],
      /\nonce: worse for 53 calls\n/,
      1,
    ],
    [
      'RPL-4 cannot tell, and why, with 3',
      'down.ndjson',
      ['--set', 'pay.breaker=off', '--set', 'pay.retry.maxAttempts=5'],
      /: cannot tell: \d+ of 600 calls hang on what the trace does not tell, and 20\.0 % is the most\n/,
      3,
    ],
    [
      'RPL-2 what is worse before what nobody can tell, of two policies',
      'trace.ndjson',
      ['--policy', 'same.yaml', '--policy', 'once.yaml'],
      /the same: safe to ship\n[^]*\nonce: worse for 53 calls/,
      1,
    ],
    [
      'RPL-2 a setting on top of a policy',
      'trace.ndjson',
      ['--policy', 'once.yaml', '--set', 'pay.retry.maxAttempts=3'],
      /\nonce: safe to ship\n/,
      0,
    ],
  ] as const)('says %s', async (_, trace, args, says, code) => {
    const ran = await spillway('replay', at(trace), ...args.map((arg) => (arg.endsWith('.yaml') ? at(arg) : arg)));
    expect(ran).toMatchObject({ code, stderr: '' });
    expect(ran.stdout).toMatch(says);
  });

  it('RPL-2 lists flipped calls in the order of its JSON, the worst first', async () => {
    const [text, json] = await Promise.all(
      [[], ['--json']].map((args) => spillway('replay', at('trace.ndjson'), '--policy', at('once.yaml'), ...args)),
    );
    const [once] = (JSON.parse(json?.stdout ?? '') as Found).candidates;
    const flips = once?.flips ?? [];
    const listed = [...(text?.stdout ?? '').matchAll(/^ +(?:worse|better|other) pay (\S+): /gm)].map(([, id]) => id);
    expect(listed).toEqual(flips.slice(0, 20).map(({ callId }) => callId));
    expect(text?.stdout).toContain(`and ${flips.length - 20} more calls are decided otherwise`);
    const kinds = flips.map(({ change }) => change);
    expect(kinds).toEqual(
      kinds.toSorted((a, b) => ['worse', 'other', 'better'].indexOf(a) - ['worse', 'other', 'better'].indexOf(b)),
    );
    expect(kinds.filter((change) => change === 'worse')).toHaveLength(once?.verdict.calls ?? 0);
  });

  it('RPL-2 ranks a grid, the best first, and ends as the best one does', async () => {
    const ran = await spillway('replay', at('trace.ndjson'), '--rank', at('grid.yaml'), '--json');
    const { candidates } = JSON.parse(ran.stdout) as Found;
    expect(candidates).toHaveLength(6);
    expect(candidates[0]?.name).toBe('pay.retry.maxAttempts=3 pay.timeoutMs=1000');
    const codes = candidates.map(({ verdict }) => verdict.code);
    const order = ['safe', 'worse', 'cannot_tell'];
    expect(codes).toEqual(codes.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)));
    expect(ran).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('the command spillway simulate', () => {
  it('SIM-4 turns CI red for retries without a budget, and green for the same with one', async () => {
    const [bad, fixed] = await Promise.all(
      ['bad.yaml', 'fixed.yaml'].map((policy) => spillway('simulate', at('outage.yaml'), '--policy', at(policy))),
    );
    expect(bad).toMatchObject({ code: 1, stderr: '' });
    expect(bad?.stdout).toMatch(/^BROKEN .*: load at most 1\.2, it is 3\.\d+$/m);
    expect(fixed).toMatchObject({ code: 0, stderr: '' });
    expect(fixed?.stdout).not.toContain('BROKEN');
  });
});

describe('SIM-1 the same seed gives the same bytes', { timeout: 120_000 }, () => {
  const runFile = promisify(execFile);
  const PARTS = { simulated: ['html', 'svg'], replayed: ['html'] } as const;
  /** Everything that both commands say and write, in a process of its own. */
  const bytes = async (
    tag: string,
    env: Readonly<Record<string, string>>,
    flags: readonly string[],
    [command, ...before]: readonly string[],
  ): Promise<Record<string, string>> => {
    const all: Record<string, string> = {};
    const node = [...before, ...(command === undefined ? [] : [process.execPath]), ...flags, 'src/cli/main.ts'];
    const run = async (of: keyof typeof PARTS, args: readonly string[]): Promise<void> => {
      const out = PARTS[of].flatMap((kind) => [`--${kind}`, at(`${tag}-${of}.${kind}`)]);
      const options = { cwd: ROOT, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
      // A policy that falls short ends it with 1, and is what is wanted here.
      const { stdout } = await runFile(
        command ?? process.execPath,
        [...node, ...args, ...out, '--json'],
        options,
      ).catch((error: unknown) => {
        const { code, stdout: said, stderr } = error as { code: number; stdout: string; stderr: string };
        if (code !== 1 || stderr !== '') throw error;
        return { stdout: said };
      });
      all[of] = stdout;
      for (const kind of PARTS[of]) all[`${of} ${kind}`] = readFileSync(at(`${tag}-${of}.${kind}`), 'utf8');
    };
    await run('simulated', [
      'simulate',
      at('outage.yaml'),
      '--policy',
      at('bad.yaml'),
      '--engine',
      'fidelity',
      '--seeds',
      '1',
    ]);
    await run('replayed', ['replay', at('trace.ndjson'), '--set', 'pay.retry.maxAttempts=4']);
    return all;
  };
  let first: Record<string, string>;
  beforeAll(async () => {
    first = await bytes('first', { TZ: 'UTC', LC_ALL: 'C' }, [], []);
  });

  it.each<[string, Record<string, string>, string[], string[]]>([
    ['in another language and time zone', { TZ: 'Asia/Kathmandu', LC_ALL: 'tr_TR.UTF-8', LANG: 'tr_TR.UTF-8' }, [], []],
    ['interpreted', {}, ['--no-opt', '--no-sparkplug', '--no-maglev'], []],
    ['compiled at once, with another heap', {}, ['--always-turbofan', '--max-semi-space-size=1'], []],
    ['on one processor and one thread', { UV_THREADPOOL_SIZE: '1' }, ['--single-threaded'], ['taskset', '-c', '0']],
  ])('%s', async (tag, env, flags, command) => {
    const again = await bytes(tag.replaceAll(/\W/g, ''), env, flags, command);
    expect(Object.keys(again)).toHaveLength(5);
    for (const [part, text] of Object.entries(again)) expect(text === first[part], part).toBe(true);
    expect(again['replayed']).toContain('"verdict"');
  });
});
