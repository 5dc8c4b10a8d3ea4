import { Writable } from 'node:stream';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { plan, type TraceEvent } from 'spillway';
import { pinoSink } from 'spillway/sinks/pino';
import { layerOf, notFound, onceMore, reset, stepped, type Layer } from './kit.ts';

type Line = Readonly<Record<string, unknown>>;

/** A real pino logger, and its lines. */
const logger = (): { readonly log: ReturnType<typeof pino>; lines(): Line[]; raw(): string } => {
  let text = '';
  const sink = new Writable({
    write: (chunk: Buffer, _, done) => {
      text += chunk.toString('utf8');
      done();
    },
  });
  return {
    log: pino({ base: null, timestamp: false }, sink),
    raw: () => text,
    lines: () =>
      text
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line),
  };
};
const LEVELS: Readonly<Record<number, string>> = { 30: 'info', 40: 'warn', 50: 'error' };
const short = (line: Line): unknown[] => [
  LEVELS[Number(line['level'])],
  line['event'],
  line['state'],
  line['attempt'],
  line['errorCode'],
];
const watched = (
  tools: Parameters<typeof layerOf>[0],
  options: Parameters<typeof layerOf>[1] = {},
): Layer & ReturnType<typeof logger> => {
  const layer = layerOf(tools, options);
  const logged = logger();
  layer.spillway.trace$.subscribe(pinoSink(logged.log));
  return { ...layer, ...logged };
};

describe('R-7.4 logs', () => {
  it('R-7.4 a call that a retry saved, in CLAW’s events and fields', async () => {
    const { run, lines } = watched([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    await run({ toolName: 'shaky', session: 's', idempotencyKey: 'the key' });
    const logged = lines();
    const [start] = logged;
    expect(logged.map(short)).toEqual([
      ['info', 'tool_call_start', 'inflight', undefined, undefined],
      ['warn', 'tool_call_retry', 'inflight', 1, 'transport_error'],
      ['info', 'tool_call_end', 'done', 2, undefined],
    ]);
    expect(start).toMatchObject({ toolName: 'shaky', sessionKey: 's', elapsedMs: 0 });
    expect(logged[1]).toMatchObject({
      delayMs: 100,
      retriable: true,
      breakerState: 'closed',
      reason: 'connection reset',
      idempotencyKeyHash: expect.stringMatching(/^\w{8,}$/) as unknown,
    });
    expect(logged[2]).toMatchObject({
      requestId: start?.['requestId'],
      sessionKey: 's',
      elapsedMs: 100,
      fromCache: false,
      status: 'success',
      msg: 'tool_call_end shaky',
    });
    expect(JSON.stringify(logged)).not.toContain('the key');
  });

  it('R-7.4 what failed, was refused, replayed or canceled, each with a level by what it means', async () => {
    const { run, lines, spillway, runtime } = watched([
      stepped('gone', [
        () => {
          throw notFound();
        },
      ]),
      stepped('slow', [() => new Promise(() => undefined)]),
      stepped('fine', [() => 1]),
    ]);
    await run('gone');
    await run('nope');
    await run({ toolName: 'fine', idempotencyKey: 'k' });
    await run({ toolName: 'fine', idempotencyKey: 'k' });
    await run({ toolName: 'fine', idempotencyKey: 'k', input: 'other' });
    const stop = new AbortController();
    const canceled = spillway.execute({ toolName: 'slow' }, { signal: stop.signal });
    stop.abort();
    await canceled;
    spillway.call({ toolName: 'slow' }).subscribe().unsubscribe();
    await runtime.advance(10);
    expect(
      lines()
        .filter(({ event }) => event !== 'tool_call_start')
        .map(short),
    ).toEqual([
      ['warn', 'tool_call_end', 'failed', 1, 'execution_error'],
      ['warn', 'tool_call_blocked', undefined, undefined, 'unknown_tool'],
      ['warn', 'tool_call_end', 'failed', 0, 'unknown_tool'],
      ['info', 'tool_call_end', 'done', 1, undefined],
      ['info', 'tool_call_end', 'done', 0, undefined],
      ['error', 'tool_call_dedupe', 'conflict', undefined, undefined],
      ['warn', 'tool_call_blocked', undefined, undefined, 'conflict'],
      ['error', 'tool_call_end', 'failed', 0, 'conflict'],
      ['info', 'tool_call_end', 'cancelled', 1, 'canceled'],
      ['info', 'tool_call_end', 'cancelled', undefined, undefined],
    ]);
    expect(lines().filter(({ fromCache }) => fromCache === true)).toHaveLength(1);
  });

  it('R-7.4 each change of a breaker, and hooks that fail after the fact', async () => {
    const down = stepped(
      'down',
      [
        () => {
          throw reset();
        },
        () => 1,
      ],
      { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } },
    );
    const { run, lines, runtime, spillway } = watched([down], {
      hooks: {
        afterToolCall: () => {
          throw new Error('no');
        },
      },
    });
    await run('down', 0);
    await run('down', 0);
    await runtime.advance(30_000);
    await run('down', 0);
    spillway.breakers.get('down').reset();
    await runtime.advance(1);
    const circuit = lines().filter(({ event }) => event === 'tool_call_circuit_state');
    expect(
      circuit.map((line) => [LEVELS[Number(line['level'])], line['state'], line['toolName'], line['msg']]),
    ).toEqual([
      ['warn', 'open', 'down', 'tool_call_circuit_state down Circuit breaker opened for down'],
      ['info', 'half_open', 'down', 'tool_call_circuit_state down Circuit breaker half-open for down'],
      ['info', 'closed', 'down', 'tool_call_circuit_state down Circuit breaker closed for down'],
    ]);
    expect(lines()).toContainEqual(
      expect.objectContaining({ event: 'tool_call_blocked', state: 'failed', reason: 'afterToolCall threw: no' }),
    );
    expect(lines()).toContainEqual(expect.objectContaining({ event: 'tool_call_blocked', errorCode: 'circuit_open' }));
  });

  it('R-7.4 the nodes of a turn, with turn and node', async () => {
    const { lines, spillway, runtime } = watched([stepped('fine', [() => 1])]);
    spillway.turn(plan().call('a', stepped('fine', [() => 1]), undefined)).subscribe();
    await runtime.advance(10);
    expect(lines().map(({ event, nodeId, turnId }) => [event, nodeId, typeof turnId])).toEqual([
      ['tool_call_start', 'a', 'string'],
      ['tool_call_end', 'a', 'string'],
    ]);
  });

  it('R-11.4 a message cannot forge a line, nor reach a terminal', async () => {
    const forged = 'boom\n{"level":30,"event":"tool_call_end","state":"done"}\u001b[2J\u009b31m\u202e';
    const { run, lines, raw } = watched([
      stepped(
        'evil',
        [
          () => {
            throw new Error(forged);
          },
        ],
        onceMore,
      ),
    ]);
    await run({ toolName: 'evil', session: 'a\nb' });
    expect(lines().map(({ event }) => event)).toEqual(['tool_call_start', 'tool_call_retry', 'tool_call_end']);
    expect(raw().replaceAll('\n', '')).not.toMatch(/\p{C}|\\u00[019]|\\n/u);
    expect(lines().at(-1)).toMatchObject({
      sessionKey: 'a b',
      reason: 'boom {"level":30,"event":"tool_call_end","state":"done"}',
    });
  });

  it('R-7.4 no line is made for a level that the logger does not write, and what follows knows its call', async () => {
    const quiet = logger();
    quiet.log.level = 'warn';
    const { run, spillway } = layerOf([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    spillway.trace$.subscribe(pinoSink(quiet.log));
    const made: object[] = [];
    const write = (fields: object): void => void made.push(fields);
    spillway.trace$.subscribe(
      pinoSink({ info: write, warn: write, error: write, isLevelEnabled: (level) => level !== 'info' }),
    );
    await run({ toolName: 'shaky', session: 's' });
    expect(quiet.lines()).toMatchObject([{ event: 'tool_call_retry', sessionKey: 's', elapsedMs: 0 }]);
    expect(made).toMatchObject([{ event: 'tool_call_retry', sessionKey: 's' }]);
  });

  it('R-7.1 a logger that throws changes no outcome, and its state stays right', async () => {
    const layer = layerOf([
      stepped('shaky', [
        () => {
          throw reset();
        },
        () => 'ok',
      ]),
    ]);
    let asked = 0;
    const broken = (): never => {
      asked++;
      throw new Error('disk full');
    };
    layer.spillway.trace$.subscribe(pinoSink({ info: broken, warn: broken, error: broken }));
    expect(await layer.run('shaky')).toMatchObject({ status: 'success', attempts: 2 });
    expect(asked).toBe(3);
    expect(layer.spillway.droppedEvents).toBe(3);
  });

  it('R-7.4 knows nothing of a call that it saw no start of, and forgets those that never end', () => {
    const seen: Line[] = [];
    const write = (fields: object): void => void seen.push(fields as Line);
    const sink = pinoSink({ info: write, warn: write, error: write });
    const header = { source: 'call', seq: 1, atMs: 50, toolName: 't' } as const;
    const end = (callId: string): TraceEvent => ({ ...header, callId, type: 'abandoned' });
    for (let n = 0; n < 10_001; n++) sink.next({ ...header, callId: `c${n}`, type: 'call_started', session: 's' });
    for (const callId of ['other', 'c0', 'c1', 'c1']) sink.next(end(callId));
    expect(seen.slice(-4).map(({ sessionKey, elapsedMs }) => [sessionKey, elapsedMs])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      ['s', 0],
      [undefined, undefined],
    ]);
  });
});
