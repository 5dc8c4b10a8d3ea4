import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createSpillway, type TraceEvent } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnyTool, ToolContext } from '../../src/contract/tool.ts';
import { SimulatedTime } from '../../src/simulate/time.ts';
import { folder, type Folder } from '../cli/support.ts';
import { manifest, root } from '../package/consumer.ts';
import { build, install } from '../package/packed.ts';
import { SIDE_INSTALL_TIMEOUT_MS, sideInstalled } from '../side-install.ts';
import { writeTrace } from './replay/files.ts';
import { recordStorm } from './replay/storm.ts';

/** Every number here is drawn, or comes of one that was: by `log`, `exp` and `cos`. */
const STORM = `name: all that is drawn
duration_s: 15
weather: { rain: { every_s: 6, for_s: 2 } }
servers:
  api:
    latency: { median_ms: 30, p99_ms: 400 }
    workers: 12
    errors: { rate: 0.05 }
    weather: rain
    weather_rate: 0.6
    bursts: [{ from_s: 6, to_s: 12, rate: 1 }]
    dips: [{ from_s: 13, to_s: 14, factor: 0.3 }]
  bank: { latency: { values_ms: [5, 9, 70] }, lost_answers: 0.1 }
tools: { ask: { server: api }, pay: { server: bank, effects: mutating } }
plans: { trip: { timeout_ms: 4000, nodes: [{ id: a, tool: ask }, { id: b, tool: pay, needs: [a] }] } }
clients:
  - { tool: ask, poisson: { rate_per_s: 25, surges: [{ from_s: 3, to_s: 4, factor: 3 }] } }
  - { plan: trip, closed: { users: 6, think_ms: 300 } }
  - { tool: pay, burst: { count: 20, every_s: 5 } }
policies:
  patient:
    retry_budget: off
    defaults:
      timeout_ms: 1000
      circuit_breaker: false
      retry_policy: { multiplier: 1.7, max_attempts: 6, max_total_time_ms: 9000 }
  guarded:
    defaults:
      timeout_ms: 800
      circuit_breaker: { timeout_ms: 300, cooldown_multiplier: 1.7, ramp_ms: 500 }
      retry_policy: { strategy: full_jitter, max_attempts: 4 }
  apart:
    defaults: { retry_policy: { strategy: decorrelated, max_attempts: 3 } }
`;

/** A call whose waits are powers beyond the thirty-fourth: identity is bit for bit, and `**` is not on every Node. */
const recordPowers = (): TraceEvent[] => {
  const time = new SimulatedTime(1_000_000);
  const retry = { maxAttempts: 45, multiplier: 1.5, initialDelayMs: 0.001, maxDelayMs: 60_000, maxTotalTimeMs: 90_000 };
  const execute = (_: unknown, { attempt }: ToolContext): string => {
    if (attempt < 43) throw Object.assign(new Error('unavailable'), { status: 503 });
    return 'paid';
  };
  const pay: AnyTool = { name: 'pay', policy: { effects: 'read', breaker: false, retry }, execute };
  const layer = createSpillway({ tools: [pay], runtime: time, retryBudget: false });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void events.push(event));
  layer.call({ toolName: 'pay', input: {} }).subscribe();
  time.run();
  return events;
};

describe('SIM-1 the same seed gives the same bytes under another Node', { timeout: SIDE_INSTALL_TIMEOUT_MS }, () => {
  let files: Folder;
  const at = (name: string): string => join(files.path, name);

  /** What the command of the package says and writes, by its name, in a process of that Node. */
  const bytesUnder = async (node: string): Promise<ReadonlyMap<string, string>> => {
    const found = new Map<string, string>();
    const keep = async (name: string, code: number, args: readonly string[]): Promise<void> => {
      const out = [at(`${name}.html`), at(`${name}.svg`)].slice(0, args[0] === 'replay' ? 1 : 2);
      const kinds = out.flatMap((path, index) => [['--html', '--svg'][index] ?? '', path]);
      const command = [at('node_modules/spillway/dist/cli/main.js'), ...args, '--json', ...kinds];
      const ran = await promisify(execFile)(node, command, { cwd: files.path, maxBuffer: 2 ** 26 }).catch(
        (error: unknown) => error as { readonly code: number; readonly stdout: string; readonly stderr: string },
      );
      expect({ code: 0, ...ran }, ran.stderr).toMatchObject({ code, stderr: '' });
      found.set(`${name}.json`, ran.stdout);
      for (const path of out) found.set(path.slice(files.path.length + 1), readFileSync(path, 'utf8'));
    };
    await keep('layer', 0, ['simulate', at('storm.yaml'), '--seeds', '1']);
    await keep('policies', 0, ['simulate', at('storm.yaml'), '--seeds', '3', '--engine', 'fleet']);
    await keep('fewer', 1, ['replay', at('trace.ndjson'), '--set', 'pay.retry.maxAttempts=1']);
    await keep('powers', 0, ['replay', at('powers.ndjson'), '--set', 'pay.retry.maxAttempts=44']);
    await keep('sooner', 0, ['replay', at('trace.ndjson'), '--set', 'pay.retry.initialDelayMs=80']);
    return found;
  };

  let here: ReadonlyMap<string, string>;
  beforeAll(async () => {
    files = folder();
    build(at('staged'), []);
    install(at('staged'), files.path, at('node_modules/spillway'));
    for (const name of ['rxjs', 'zod', ...Object.keys(manifest.dependencies)]) {
      const link = at(`node_modules/${name}`);
      mkdirSync(dirname(link), { recursive: true });
      if (!existsSync(link)) symlinkSync(join(root, 'node_modules', name), link);
    }
    writeFileSync(at('storm.yaml'), STORM);
    writeTrace(at('trace.ndjson'), recordStorm({ calls: 200, outage: [1_000, 2_500], policy: { breaker: false } }));
    writeTrace(at('powers.ndjson'), recordPowers());
    here = await bytesUnder(process.execPath);
    const { candidates } = JSON.parse(here.get('sooner.json') ?? '') as {
      readonly candidates: ReadonlyArray<{ readonly unknown: { readonly shifted: number } }>;
    };
    expect(candidates[0]?.unknown.shifted).toBeGreaterThan(0);
  }, SIDE_INSTALL_TIMEOUT_MS);
  afterAll(() => files?.[Symbol.dispose]());

  it.each(['22.23.3', '26.10.0'])('%s', async (version) => {
    const name = `node-${process.platform}-${process.arch}`;
    const beside = await sideInstalled(`node${version}`, [`${name}@${version}`]);
    const node = join(beside, 'node_modules', name, 'bin/node');
    expect((await promisify(execFile)(node, ['--version'])).stdout).toBe(`v${version}\n`);
    expect(process.version).not.toBe(`v${version}`);
    const there = await bytesUnder(node);
    expect([...there.keys()]).toEqual([...here.keys()]);
    expect([...there].filter(([part, text]) => text !== here.get(part)).map(([part]) => part)).toEqual([]);
  });
});
