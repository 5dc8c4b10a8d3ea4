import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { DEMO, STACK_TRACE, folder, gone, marked, spillway, start, type Ended } from './support.ts';
import { readNdjson } from 'spillway/sinks/ndjson';
import type { TurnEvent } from '../../src/contract/event.ts';

const LONG_MS = 60_000;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const TRACE = join(folder().path, 'demo.ndjson');

/** The lines of an NDJSON text. */
const eventsOf = <E = TurnEvent>(text: string): E[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as E);

const resultOf = (text: string) => {
  const last = eventsOf(text).at(-1);
  if (last?.source !== 'turn' || last.type !== 'settled') throw new Error('the last line is not the settled turn');
  return last.result;
};

describe('CLI runs the demo', { timeout: LONG_MS }, () => {
  let demo: Ended;
  beforeAll(async () => {
    demo = await spillway('run', DEMO, '--seed', '1', '--trace', TRACE, '--traceparent', TRACEPARENT);
  }, LONG_MS);

  it('and exits 0 with the table, the diagram and the sentence on stdout', () => {
    expect(demo).toMatchObject({ code: 0, signal: null });
    expect(demo.stdout).toMatch(/^node +tool +state +tries +time +result\n/);
    expect(demo.stdout).toMatch(
      /\npartial: Completed flights, seats, hotels and itinerary, but activities and tickets timed out/,
    );
    expect(demo.stdout).not.toContain('\u001b');
    expect(demo.stderr).not.toMatch(/warning|\u001b/);
  });

  it('R-8.3 and as part of the trace that it was given', async () => {
    const parents: Array<string | undefined> = [];
    for (const event of (await readNdjson(TRACE)).events)
      if (event.type === 'turn_started' || event.type === 'call_started') parents.push(event.traceparent);
    expect(parents.length).toBeGreaterThan(5);
    expect(new Set(parents)).toEqual(new Set([TRACEPARENT]));
  });

  it.each([
    ['parallel nodes that start together', /^seats +\^.*/m],
    ['a dependent node that starts when what it needs has settled', /^itinerary {5,}\^●/m],
    ['a call that times out and is retried', /^flights +\^─+◷┄+\^─*●.*succeeded, 2 attempts/m],
    ['a call that fails twice and then succeeds', /^seats +\^─*✗┄+\^─*✗┄+\^─+●.*succeeded, 3 attempts/m],
    ['a permanent failure that is not retried', /^policy +\^─*✗ +┊ +failed/m],
    ['a dependent that uses its default', /^budget +◇─*● +┊ +defaulted/m],
    ['an optional node skipped', /^approval +∅ +┊ +skipped/m],
    ['an alternative tool', /^hotels +\^─*✗┄+\^─*✗»─+●.*by hotel_search_backup/m],
    ['a node that the deadline cuts off', /^activities +\^─+! +timed out/m],
    ['the deadline', /┊ deadline$/m],
  ])('and shows %s', (_, line) => {
    expect(demo.stdout).toMatch(line);
  });

  it('and tells what happens on stderr, a line an event', () => {
    expect(demo.stderr).toMatch(
      /^ +\d+\.\d{3}s {2}flights: attempt 1 failed after 1\.\d\d s: timeout: Tool timeout after 1s \(transient\)$/m,
    );
    expect(demo.stderr).toMatch(
      /^ +\d+\.\d{3}s {2}hotels: Used alternative tool: hotel_search_backup for hotel_search$/m,
    );
    expect(demo.stderr).toMatch(/^ +\d+\.\d{3}s {2}budget: Used default value for budget$/m);
  });
});

describe('CLI', { timeout: LONG_MS }, () => {
  it('--json prints events as NDJSON and the settled turn last; --trace keeps all of them; a seed repeats the delays', async () => {
    using files = folder();
    const trace = join(files.path, 'trace.ndjson');
    const plan = files.write(
      'plan.yaml',
      `${marked('spillway-json')}tools:
  - { id: flaky, server: everything, tool: echo, retry_policy: { strategy: exponential_backoff, initial_delay_ms: 20 }, faults: { fail_first: 3 } }
turn:
  nodes:
    - { id: a, tool: everything.get-structured-content, input: { location: Chicago } }
    - { id: b, tool: flaky, needs: [a], input: { message: "\${a.temperature} and \${a}" } }
    - { id: c, tool: everything.get-sum, needs: [a], input: { a: "\${a.temperature}", b: 1 } }
`,
    );
    const delaysOf = (text: string): unknown[] =>
      eventsOf(text).flatMap((event) => (event.source === 'call' && event.type === 'decision' ? [event.delayMs] : []));
    const first = await spillway('run', plan, '--json', '--seed', '7', '--trace', trace);
    const again = await spillway('run', plan, '--json', '--seed', '7');
    expect(first).toMatchObject({ code: 0, signal: null });
    const result = resultOf(first.stdout);
    expect(result.status).toBe('completed');
    expect(result.values).toMatchObject({
      b: 'Echo: 36 and {"temperature":36,"conditions":"Light rain / drizzle","humidity":82}',
      c: 'The sum of 36 and 1 is 37.',
    });
    expect(delaysOf(first.stdout)).toHaveLength(3);
    expect(delaysOf(again.stdout)).toEqual(delaysOf(first.stdout));
    const { events: traced, leftOutCount, lastSeq, changed } = await readNdjson(trace);
    // It says where it ends and what it came to: else no replay takes it.
    expect([lastSeq, changed]).toEqual([traced.at(-1)?.seq, false]);
    expect([leftOutCount, JSON.parse(readFileSync(trace, 'utf8').split('\n')[0] ?? '')]).toMatchObject([
      0,
      { format: 1, type: 'file_started' },
    ]);
    expect(traced.map(({ seq }) => seq)).toEqual(traced.map((_, index) => index));
    expect(traced.length).toBeGreaterThanOrEqual(eventsOf(first.stdout).length);
  });

  it('exits 1 when something required is missing, 0 when the turn is partial, 3 with --strict', async () => {
    using files = folder();
    const broken = (optional: boolean): string =>
      `${marked('spillway-exit')}turn:\n  nodes:\n    - { id: a, tool: everything.echo, input: { message: x } }\n    - { id: b, tool: everything.get-sum, input: { a: one, b: 2 }, optional: ${optional} }\n`;
    const [escalated, partial, strict] = await Promise.all([
      spillway('run', files.write('required.yaml', broken(false))),
      spillway('run', files.write('optional.yaml', broken(true))),
      spillway('run', files.write('strict.yaml', broken(true)), '--strict'),
    ]);
    expect([escalated.code, partial.code, strict.code]).toEqual([1, 0, 3]);
    expect(escalated.stdout).toMatch(/^escalated: /m);
  });

  it('fails a node whose reference has no value at run time, and says where', async () => {
    using files = folder();
    const plan = files.write(
      'plan.yaml',
      `${marked('spillway-missing')}turn:\n  nodes:\n    - { id: a, tool: everything.get-structured-content, input: { location: Chicago } }\n    - { id: b, tool: everything.echo, needs: [a], input: { message: "\${a.wind.speed}" } }\n`,
    );
    const { code, stdout } = await spillway('run', plan, '--json');
    expect(code).toBe(1);
    expect(resultOf(stdout).nodes[1]).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('${a.wind.speed} has no value: a is a mapping without a key wind') as unknown,
    });
  });

  it.each([
    [
      'is not found',
      '{ command: no-such-command-here }',
      /servers\.bad: the server bad could not be started with "no-such-command-here": .*not found/,
    ],
    [
      'exits at once',
      `{ command: ${JSON.stringify(process.execPath)}, args: [-e, "console.error('no token'); process.exit(3)"] }`,
      /servers\.bad: .*exited with code 3; it said: no token/,
    ],
    [
      'never answers',
      `{ command: ${JSON.stringify(process.execPath)}, args: [-e, "setInterval(() => {}, 1000)"], start_timeout_ms: 700 }`,
      /servers\.bad: .*No answer to initialize after 700ms/,
    ],
    ['has no such folder', '{ command: x, cwd: nowhere }', /servers\.bad\.cwd: .*nowhere is no folder/],
  ])('exits 2 when a server %s, and stops the others', async (what, bad, says) => {
    using files = folder();
    const mark = `spillway-bad-${what.replaceAll(' ', '-')}`;
    const plan = files.write(
      'plan.yaml',
      `${marked(mark)}  bad: ${bad}\nturn: { nodes: [{ id: a, tool: bad.x }, { id: b, tool: everything.echo, input: { message: x } }] }\n`,
    );
    const { code, stdout, stderr } = await spillway('run', plan);
    expect(stderr).toMatch(says);
    expect(stderr).not.toMatch(STACK_TRACE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    await gone(mark);
  });

  it('exits 2 when a server has no such tool, and names the nearest', async () => {
    using files = folder();
    const plan = files.write(
      'plan.yaml',
      `${marked('spillway-tool')}turn: { nodes: [{ id: a, tool: everything.get_sum }] }\n`,
    );
    const { code, stderr } = await spillway('run', plan);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /:3:\d+: turn\.nodes\[0\]\.tool: the server everything has no tool get_sum; did you mean get-sum\?/,
    );
  });

  it('exits 2 rather than overwrite its plan with its trace, or trace into a folder that is not there', async () => {
    using files = folder();
    const text = `${marked('spillway-trace')}turn: { nodes: [{ id: a, tool: everything.echo }] }\n`;
    const plan = files.write('plan.yaml', text);
    expect(await spillway('run', plan, '--trace', plan)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('would overwrite') as unknown,
    });
    expect(readFileSync(plan, 'utf8')).toBe(text);
    expect(await spillway('run', plan, '--trace', join(files.path, 'none', 'trace'))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('ENOENT') as unknown,
    });
    expect(existsSync(join(files.path, 'none'))).toBe(false);
  });

  it('prints help and version, and exits 2 without a command', async () => {
    const [help, version, nothing] = await Promise.all([spillway('--help'), spillway('--version'), spillway()]);
    expect(help).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('spillway run PLAN.yaml') as unknown,
    });
    expect(version).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/) as unknown,
    });
    expect(nothing).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('a command is missing') as unknown,
    });
  });

  it('colours where it is told to, and not with --no-color', async () => {
    using files = folder();
    const plan = files.write(
      'plan.yaml',
      `${marked('spillway-color')}turn: { nodes: [{ id: a, tool: everything.echo, input: { message: x } }] }\n`,
    );
    const [forced, plain] = await Promise.all([
      start(['run', plan], { FORCE_COLOR: '1' }).ended,
      start(['run', plan, '--no-color', '--ascii'], { FORCE_COLOR: '1' }).ended,
    ]);
    expect(forced.stdout).toContain('\u001b[32msucceeded');
    expect(plain.stdout).toMatch(/^[ -~\n]+$/);
  });
});
