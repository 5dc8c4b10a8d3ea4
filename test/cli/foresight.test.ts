import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FileError, UsageError } from '../../src/cli/arguments/usage.ts';
import type { CommandContext } from '../../src/cli/context.ts';
import { runReplay } from '../../src/cli/trace/replay.ts';
import { runSimulate } from '../../src/cli/simulate.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { ndjsonHeader, ndjsonLine } from '../../src/sinks/ndjson.ts';
import { addEvent, emptyTrace, toOtlp } from 'spillway/inspect';
import { recordStorm } from '../simulate/replay/storm.ts';

const folder = mkdtempSync(join(tmpdir(), 'foresight-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);

type Command = (args: readonly string[], context: CommandContext) => Promise<number>;
const run = async (
  command: Command,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string }> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const signal = new AbortController().signal;
  const code = await command(args, { stdout, stderr, env: {}, runtime: liveRuntime, signal });
  return { code, out: String(stdout.read() ?? '') };
};

describe('spillway replay', () => {
  beforeAll(() => {
    const events = recordStorm({ calls: 200, outage: [1_000, 2_500], policy: { breaker: false } });
    const end = ndjsonLine({ source: 'sink', type: 'file_ended', lastSeq: events.at(-1)?.seq });
    const text = [ndjsonHeader(liveRuntime), ...events.map(ndjsonLine), end].join('');
    const lines = text.split('\n');
    const seldom = recordStorm({ calls: 50, everyMs: 10_000 }).map(ndjsonLine);
    writeFileSync(at('seldom.ndjson'), seldom.slice(0, 101).join('').slice(0, -30));
    const idle = lines.findIndex((line) => line.includes('"settled"')) + 1;
    writeFileSync(at('idle.ndjson'), `${lines.slice(0, idle).join('\n')}\n`);
    writeFileSync(at('fewer.ndjson'), [...lines.slice(0, idle), end].join('\n'));
    writeFileSync(at('trace.ndjson'), text);
    writeFileSync(at('torn.ndjson'), text.slice(0, -30));
    writeFileSync(at('cut.ndjson'), `${text.split('\n').slice(0, 100).join('\n')}\n`);
    writeFileSync(at('same.yaml'), 'name: the same\n');
    writeFileSync(at('once.yaml'), 'tools: { pay: { retry_policy: { max_attempts: 1 } } }\n');
    writeFileSync(at('wrong.yaml'), 'tools:\n  pay: { retry_polcy: {} }\n');
    writeFileSync(at('stranger.yaml'), 'tools: { pai: { timeout_ms: 5 } }\n');
    writeFileSync(at('contrary.yaml'), 'pay.breaker: [off]\npay.breaker.cooldownMs: [1]\n');
    writeFileSync(at('otlp.json'), toOtlp(events.reduce(addEvent, emptyTrace())));
    writeFileSync(at('pino.ndjson'), '{"level":30,"time":1,"pid":1,"msg":"call settled"}\n'.repeat(5));
    writeFileSync(at('recorded.har'), JSON.stringify({ log: { version: '1.2', entries: [] } }, null, 2));
    writeFileSync(at('random'), Buffer.from(events.map((_, index) => (index * 7_919) % 256)));
    writeFileSync(at('grid.yaml'), 'pay.retry.maxAttempts: [1, 3]\n');
  });

  it('says safe to ship with 0, and worse with 1', async () => {
    const same = await run(runReplay, at('trace.ndjson'), '--policy', at('same.yaml'));
    expect(same.out).toContain('the same: safe to ship');
    expect(same.code).toBe(0);
    const once = await run(runReplay, at('trace.ndjson'), '--policy', at('once.yaml'));
    expect(once.out).toMatch(/worse for \d+ calls/);
    expect(once.code).toBe(1);
  });

  it('says what a grid comes to, the best first, and what it found as JSON', async () => {
    const { code, out } = await run(runReplay, at('trace.ndjson'), '--rank', at('grid.yaml'), '--json');
    const { candidates, identity } = JSON.parse(out) as { candidates: { name: string }[]; identity: { calls: number } };
    expect(candidates.map(({ name }) => name)).toEqual(['pay.retry.maxAttempts=3', 'pay.retry.maxAttempts=1']);
    expect(identity.calls).toBe(200);
    expect(code).toBe(0);
  });

  it.each([
    [['torn.ndjson'], /1 of its lines cannot be read, the first is line \d+ \(torn\)/],
    [['cut.ndjson'], /it has no last line/],
    [['idle.ndjson'], /it has no last line/],
    [['fewer.ndjson'], /its last event is \d+, and was \d+/],
    [['torn.ndjson', '--set', 'pay.timeoutMs=5'], /torn/],
    [['none.ndjson'], /there is no such file/],
    [['trace.ndjson', '--policy', at('wrong.yaml')], /wrong\.yaml:2:\d+ /],
    [['trace.ndjson', '--set', 'pya.timeoutMs=5'], /"pya\.timeoutMs" is of no tool; did you mean pay\?/],
    [['trace.ndjson', '--set', 'retryBudgt.ratio=1'], /is of no tool; did you mean retryBudget\?/],
    [['trace.ndjson', '--set', 'nothing.timeoutMs=5'], /"nothing\.timeoutMs" is of no tool; there is pay, retryBudget/],
    [['trace.ndjson', '--policy', at('stranger.yaml')], /there is no tool "pai"; did you mean pay\?/],
    [
      ['trace.ndjson', '--set', 'pay.timeoutMs=5', '--set', 'pay.timeoutMs=7'],
      /"pay\.timeoutMs=5" and .* set the same/,
    ],
    [['trace.ndjson', '--set', 'pay.timeoutMs=5', '--set', '*.timeoutMs=7'], /set the same; leave one of them out/],
    [['trace.ndjson', '--set', 'pay.breaker=off', '--set', 'pay.breaker.cooldownMs=7'], /set the same/],
    [['trace.ndjson', '--set', 'pay.retry.maxAttempts=2', '--rank', at('grid.yaml')], /set the same/],
    [['trace.ndjson', '--rank', at('contrary.yaml')], /"pay\.breaker=off" and "pay\.breaker\.cooldownMs=1" set/],
    [['otlp.json'], /it holds no events of spillway: line 1 is none \(not an event\)/],
    [['pino.ndjson'], /it holds no events of spillway/],
    [['recorded.har'], /it holds no events of spillway: line 1 is none \(not json\)/],
    [['random', '--running'], /it holds no events of spillway/],
    [['trace.ndjson', '--set', 'pay.timeoutMs=-5'], /tool pay: timeoutMs must be/],
    [['trace.ndjson', '--set', 'pay.timeoutMS=5'], /there is no option "timeoutMS"; did you mean timeoutMs\?/],
  ])('RPL-6 refuses %s', async ([name = '', ...args], message) => {
    await expect(run(runReplay, at(name), ...args)).rejects.toThrow(message);
    await expect(run(runReplay, at(name), ...args)).rejects.toThrow(FileError);
  });

  it('RPL-6 replays what a process that still runs has written, up to when no call was open, where told so', async () => {
    const { code, out } = await run(runReplay, at('seldom.ndjson'), '--policy', at('same.yaml'), '--running', '--json');
    const { identity } = JSON.parse(out) as { identity: { calls: number } };
    expect(identity.calls).toBeGreaterThan(0);
    expect(identity.calls).toBeLessThan(50);
    expect(code).toBe(0);
    await expect(run(runReplay, at('cut.ndjson'), '--running')).rejects.toThrow(/the trace ends before .* did/);
    await expect(run(runReplay, at('seldom.ndjson'))).rejects.toThrow(/torn/);
  });

  it('says which option was meant', async () => {
    await expect(run(runReplay, at('trace.ndjson'), '--polcy', 'x')).rejects.toThrow('did you mean --policy?');
    await expect(run(runReplay)).rejects.toThrow(UsageError);
  });
});

describe('spillway simulate', () => {
  const scenario = `name: an outage
duration_s: 40
seeds: 3
engine: fleet
servers: { api: { latency: { constant_ms: 20 }, bursts: [{ from_s: 10, to_s: 20, rate: 1 }] } }
tools: { search: { server: api } }
clients: [{ poisson: { rate_per_s: 100 } }]
expect: { load: 1.2, recovery_s: 5 }
`;
  beforeAll(() => {
    writeFileSync(at('storm.yaml'), scenario);
    writeFileSync(
      at('bad.yaml'),
      'retry_budget: off\ndefaults: { circuit_breaker: false, retry_policy: { max_attempts: 4 } }\n',
    );
    writeFileSync(
      at('fixed.yaml'),
      'retry_budget: { ratio: 0.1, min_per_second: 0, window_ms: 1000 }\ndefaults: { circuit_breaker: false, retry_policy: { max_attempts: 4 } }\n',
    );
  });

  it('SIM-4 turns red for retries without a budget, and green for the same with one', async () => {
    const bad = await run(runSimulate, at('storm.yaml'), '--policy', at('bad.yaml'));
    expect(bad.out).toContain('BROKEN');
    expect(bad.code).toBe(1);
    const fixed = await run(runSimulate, at('storm.yaml'), '--policy', at('fixed.yaml'));
    expect(fixed.out).not.toContain('BROKEN');
    expect(fixed.code).toBe(0);
  });

  it('writes a page and a picture with the numbers of its JSON', async () => {
    const args = [at('storm.yaml'), '--policy', at('fixed.yaml'), '--seeds', '2', '--json'];
    const { out } = await run(runSimulate, ...args, '--html', at('storm.html'), '--svg', at('storm.svg'));
    const report = JSON.parse(out) as { seeds: { count: number }; policies: { series: { attempts: number[] } }[] };
    expect(report.seeds.count).toBe(2);
    const values = `data-values="${report.policies[0]?.series.attempts.join(' ') ?? ''}"`;
    expect(readFileSync(at('storm.svg'), 'utf8')).toContain(values);
    expect(readFileSync(at('storm.html'), 'utf8')).toContain(values);
  });

  it('takes latencies from a trace', async () => {
    writeFileSync(at('timed.yaml'), scenario.replace('constant_ms: 20', 'trace: trace.ndjson, tool: pay'));
    const { out } = await run(runSimulate, at('timed.yaml'), '--policy', at('fixed.yaml'), '--json');
    const took = recordStorm({ calls: 200, outage: [1_000, 2_500], policy: { breaker: false } }).flatMap((event) =>
      event.type === 'attempt_succeeded' ? [event.durationMs] : [],
    );
    const { figures } = (JSON.parse(out) as { policies: { figures: { p50: { mean: number } } }[] }).policies[0] ?? {};
    expect(figures?.p50.mean).toBeGreaterThan(Math.min(...took));
    expect(figures?.p50.mean).toBeLessThan(Math.max(...took));
  });

  it.each([
    ['duration_s: 40', 'duration_s: -1', /storm2\.yaml:2:13 duration_s/],
    ['server: api', 'server: apo', /there is no server apo; there are api/],
    ['poisson', 'poison', /storm2\.yaml:7/],
  ])('refuses %s as %s', async (from, to, message) => {
    writeFileSync(at('storm2.yaml'), scenario.replace(from, to));
    await expect(run(runSimulate, at('storm2.yaml'))).rejects.toThrow(message);
    await expect(run(runSimulate, at('storm2.yaml'))).rejects.toThrow(FileError);
  });
});
