import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type TraceEvent } from 'spillway';
import { runShow } from '../../src/cli/trace/show.ts';
import { FileError, UsageError } from '../../src/cli/arguments/usage.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { ndjsonHeader, ndjsonLine, ndjsonSink } from '../../src/sinks/ndjson.ts';
import { virtualRuntime } from '../../src/testing/virtual-runtime.ts';
import { DEMO, STACK_TRACE, folder, spillway } from './support.ts';

const files = folder();
afterAll(() => files[Symbol.dispose]());

const show = async (
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runShow(args, {
    stdout,
    stderr,
    env: {},
    runtime: liveRuntime,
    signal: new AbortController().signal,
  });
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
};
const parsed = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

/** A real layer's trace: a turn that goes well, one that does not, and two calls outside of turns. */
const record = async (): Promise<TraceEvent[]> => {
  const runtime = virtualRuntime();
  const down = (): never => {
    throw Object.assign(new Error('the service is down'), { status: 503 });
  };
  const tools = [
    tool({ name: 'search', policy: { effects: 'read' }, execute: () => 'found' }),
    tool({
      name: 'down',
      policy: { effects: 'read', retry: { maxAttempts: 2, initialDelayMs: 100, jitterPercent: 0 } },
      execute: down,
    }),
    tool({
      name: 'evil\u001b[2J',
      policy: { effects: 'read', retry: { maxAttempts: 1 } },
      execute: () => {
        throw new Error('\u001b]0;forged\u0007\nfine: nothing is wrong');
      },
    }),
  ];
  const layer = createSpillway({ tools, runtime });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  const turn = async (built: ReturnType<typeof plan.from>): Promise<void> => {
    layer.turn(built).subscribe();
    await runtime.advance(1_000);
  };
  await turn(
    plan.from([
      { id: 'a', tool: 'search' },
      { id: 'b', tool: 'search', needs: ['a'] },
    ]),
  );
  await turn(
    plan.from([
      { id: 'good', tool: 'search' },
      { id: 'bad', tool: 'down' },
      { id: 'after', tool: 'search', needs: ['bad'], optional: true },
    ]),
  );
  for (const toolName of ['search', 'evil\u001b[2J']) {
    void layer.execute({ toolName, input: 1 });
    await runtime.advance(1_000);
  }
  await layer.close();
  return events;
};

let events: TraceEvent[];
let whole: string;
const fileOf = (name: string, list: readonly TraceEvent[], head = ndjsonHeader(liveRuntime)): string =>
  files.write(name, head + list.map(ndjsonLine).join(''));
const idOf = (place: number): string => [...new Set(events.flatMap(({ turnId }) => turnId ?? []))][place] ?? '';
const ofTurn = (place: number): TraceEvent[] => events.filter(({ turnId }) => turnId === idOf(place));

beforeAll(async () => {
  events = await record();
  whole = fileOf('whole.ndjson', events);
});

describe('R-7.1 spillway show', () => {
  it('R-7.1 lists turns and other calls, each with how it ended', async () => {
    const { code, stdout, stderr } = await show(whole);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]).toBe('2 turns, 1 of which did not succeed');
    expect(lines[1]).toMatch(/^# +turn +status +nodes +time +summary$/);
    expect(lines[2]).toMatch(new RegExp(`^1 +${idOf(0)} +completed +2 +0 ms`));
    expect(lines[3]).toMatch(new RegExp(`^2 +${idOf(1)} +partial +3 +\\d+ ms`));
    expect(stdout).toMatch(
      /\n2 other calls, 1 of which did not succeed\ncall +tool +status +tries +time +error\n\S+ +search +success +1 /,
    );
    expect(stdout).toMatch(/\n--turn shows one of them in full\n$/);
  });

  it('R-7.1 shows a turn in full: table, diagram, sentence', async () => {
    for (const wanted of ['2', idOf(1)]) {
      const { stdout } = await show(whole, '--turn', wanted, '--ascii');
      expect(stdout).toMatch(
        /^node +tool +state +tries +time +result\ngood +search +succeeded +1 +0 ms\nbad +down +failed +2 +100 ms +the service is down\nafter +search +skipped/,
      );
      expect(stdout).toMatch(/\nbad +\^?x\.+\^?x +failed, 2 attempts\n/);
      expect(stdout).toMatch(/\npartial: Completed good, but bad failed and after was skipped\.\n$/);
    }
    expect((await show(fileOf('one.ndjson', ofTurn(1)))).stdout).toMatch(/^node +tool +state/);
  });

  it('R-7.1 reads a file without a header as one with it', async () => {
    expect((await show(fileOf('bare.ndjson', events, ''))).stdout).toBe((await show(whole)).stdout);
  });

  it('R-7.1 --failed shows what did not succeed, and what happened to it', async () => {
    const { stdout } = await show(whole, '--failed');
    expect(stdout).toMatch(new RegExp(`^turn 2: ${idOf(1)}\n`));
    expect(stdout).not.toMatch(/^good /m);
    expect(stdout).toMatch(
      /^ +0\.000s {2}bad: attempt 1 failed after 0 ms: \S+ 503: the service is down \(transient\)\n +0\.000s {2}bad: retry in 100 ms$/m,
    );
    expect(stdout).toMatch(/^ +0\.100s {2}bad: attempt 2 failed/m);
    expect(stdout).toMatch(/^evil \S+\n +0\.000s {2}attempt 1/m);
    expect((await show(whole, '--failed', '--turn', '1')).stdout).toMatch(/^every node succeeded\n\ncompleted: /);
    const well = [
      ...ofTurn(0),
      ...events.filter((event) => event.source === 'call' && event.turnId === undefined && event.toolName === 'search'),
    ];
    expect((await show(fileOf('well.ndjson', well), '--failed')).stdout).toBe('nothing failed: 1 turn, 1 other call\n');
  });

  it('R-7.1 --json gives an object for each turn and call', async () => {
    const all = parsed((await show(whole, '--json')).stdout);
    expect(all).toMatchObject([
      {
        kind: 'turn',
        number: 1,
        turnId: idOf(0),
        status: 'completed',
        nodes: [{ id: 'a', state: 'succeeded', attempts: 1 }, { id: 'b' }],
      },
      {
        kind: 'turn',
        number: 2,
        status: 'partial',
        nodes: [
          { id: 'good' },
          { id: 'bad', state: 'failed', attempts: 2, error: { message: 'the service is down' } },
          { id: 'after', state: 'skipped', attempts: 0 },
        ],
      },
      { kind: 'call', toolName: 'search', status: 'success', attempts: 1 },
      {
        kind: 'call',
        status: expect.not.stringMatching('success') as unknown,
        error: { code: expect.any(String) as unknown },
      },
    ]);
    expect(parsed((await show(whole, '--json', '--failed')).stdout)).toEqual([all[1], all[3]]);
    expect(parsed((await show(whole, '--json', '--turn', '1')).stdout)).toEqual([all[0]]);
  });

  it('R-7.1 shows a turn whose end, or whose beginning, is not in the file', async () => {
    const turn = ofTurn(1);
    const begun = await show(fileOf('begun.ndjson', turn.slice(0, 6)), '--ascii');
    expect(begun.stdout).toMatch(/^node +tool +state +tries +result\ngood +search +(?:running|succeeded)/);
    expect(begun.stdout).toMatch(/\nunfinished: The trace ends before the turn does\.\n$/);
    const rest = await show(fileOf('rest.ndjson', turn.slice(4)), '--ascii');
    expect(rest.stdout).toMatch(/^node +tool +state +tries +time +result\ngood +search/);
    expect(rest.stdout).toMatch(/\npartial: Completed good/);
  });

  it('R-7.1 says what a file has lost', async () => {
    const torn = files.write(
      'torn.ndjson',
      `${ofTurn(0).map(ndjsonLine).join('')}nonsense\n{"source":"sink","type":"dropped","count":7}\n{"source":"ca`,
    );
    const { code, stderr } = await show(torn);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `note: 2 lines are left out, the first is line ${ofTurn(0).length + 1} (not json)\nnote: the file says that 7 events were lost\n`,
    });
  });

  it('R-7.1 says that a file is not what was written', async () => {
    const written = join(files.path, 'written.ndjson');
    const sink = await ndjsonSink(written);
    for (const event of ofTurn(0)) sink.next(event);
    await sink.close();
    expect(await show(written)).toMatchObject({ code: 0, stderr: '' });
    const lines = readFileSync(written, 'utf8');
    const settled = lines.split('\n').find((line) => line.includes('"type":"attempt_succeeded"')) ?? '';
    const without = files.write('without.ndjson', lines.replace(`${settled}\n`, ''));
    expect(await show(without)).toMatchObject({
      code: 0,
      stderr: 'note: its lines are not those that were written: one was changed, moved, taken out or put in\n',
    });
  });

  it('R-7.1 says in the singular that it has lost one', async () => {
    const one = files.write(
      'one.ndjson',
      `${ofTurn(0).map(ndjsonLine).join('')}{"source":"sink","type":"dropped","count":1}\n`,
    );
    expect((await show(one)).stderr).toBe('note: the file says that 1 event was lost\n');
  });

  it('R-15.2 nothing in a file drives the terminal, nor forges a line', async () => {
    for (const args of [[], ['--failed'], ['--json'], ['--turn', '2']])
      expect((await show(whole, ...args)).stdout).not.toMatch(/[^\n -~\u00a0-\uffff]/);
    const { stdout } = await show(whole, '--failed');
    expect(stdout).not.toMatch(/^fine: nothing is wrong/m);
    const forged = ofTurn(0).map((event) =>
      event.source === 'turn' && event.type === 'turn_started'
        ? {
            ...event,
            nodes: event.nodes.map((node) => ({ ...node, id: `${node.id}\u001b[31m\nforged`, toolName: '\u202eevil' })),
          }
        : event,
    );
    expect((await show(fileOf('forged.ndjson', forged))).stdout).not.toMatch(
      /[^\n -~\u00a0-\u202d\u202f-\uffff]|^forged/m,
    );
  });

  it('R-2.9 refuses what is no trace, and turns that are not there', async () => {
    mkdirSync(join(files.path, 'folder'));
    await expect(show(join(files.path, 'gone'))).rejects.toThrow(/gone: there is no such file/);
    await expect(show(join(files.path, 'folder'))).rejects.toThrow('is a folder');
    await expect(show(files.write('empty', ''))).rejects.toThrow(FileError);
    await expect(show(files.write('other', '{"a":1}\nhello\n'))).rejects.toThrow('holds no events of spillway');
    await expect(show(whole, '--turn', '9')).rejects.toThrow('there is no turn "9"; there are 2');
    await expect(show(whole, '--turn', idOf(0).slice(0, 4))).rejects.toThrow('is how 2 turns begin');
    await expect(show(whole, '--turn', '')).rejects.toThrow(UsageError);
    await expect(show()).rejects.toThrow('the trace file is missing; write spillway show TRACE.ndjson');
  });

  it('R-2.9 refuses events that are not as they are written, wherever they are not', async () => {
    const VALUES = [null, 0, '', 'x', [null], {}];
    const pathsOf = (value: unknown, path: readonly string[] = []): Array<readonly string[]> =>
      typeof value === 'object' && value !== null
        ? Object.entries(value).flatMap(([key, inner]) => [[...path, key], ...pathsOf(inner, [...path, key])])
        : [];
    const told = ofTurn(1);
    const edited = told.flatMap((event, place) =>
      pathsOf(event)
        .filter(([key = '']) => !['source', 'type', 'seq', 'atMs'].includes(key))
        .flatMap((path) =>
          VALUES.map((value) => {
            const copy: unknown = structuredClone(event);
            const parent = path.slice(0, -1).reduce((at, key) => Reflect.get(at as object, key) as unknown, copy);
            Reflect.set(parent as object, path.at(-1) ?? '', value);
            return told.with(place, copy as TraceEvent);
          }),
        ),
    );
    let refused = 0;
    // Each place is met with every value, by one in five of the files.
    for (const list of edited.filter((_, index) => index % 5 === 0)) {
      const file = fileOf('edited.ndjson', list);
      const error: unknown = await show(file).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error === undefined) continue;
      refused++;
      expect(error).toBeInstanceOf(FileError);
      expect((error as Error).message).toContain('an event in it is not as spillway writes it');
    }
    expect(refused).toBeGreaterThan(10);
  });

  it('R-7.1 as a process shows what run has traced, as run has shown it', async () => {
    const trace = join(files.path, 'run.ndjson');
    const ran = await spillway('run', DEMO, '--seed', '1', '--trace', trace);
    const shown = await spillway('show', trace);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    const diagram = (text: string): string => text.slice(text.indexOf('\n\n'));
    expect(diagram(shown.stdout)).toBe(diagram(ran.stdout));
    const [{ turnId }] = parsed((await spillway('show', trace, '--json')).stdout) as [{ readonly turnId: string }];
    expect((await spillway('show', trace, '--turn', turnId.slice(0, 8))).stdout).toBe(shown.stdout);
    const gone = await spillway('show', join(files.path, 'gone'));
    expect([gone.code, gone.stderr]).toEqual([2, `spillway: ${join(files.path, 'gone')}: there is no such file\n`]);
    expect(gone.stderr).not.toMatch(STACK_TRACE);
  });
});
