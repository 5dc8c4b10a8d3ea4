import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TraceEvent } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { bufferedSink } from 'spillway/sinks/buffered';
import { RecentMap, oneLine } from '../../src/sinks/sink.ts';
import { layerOf, onceMore, reset, stepped } from './kit.ts';

const event = (seq: number): TraceEvent => ({
  source: 'layer',
  type: 'breaker_evicted',
  seq,
  atMs: 0,
  toolName: 't',
  scope: '',
});

describe('R-11.4 a line of text', () => {
  it.each([
    ['plain text', 'plain text'],
    ['one\r\ntwo\u2028three\u0085four', 'one two three four'],
    ['\u001b[31mred\u001b[0m\u001b[2J', 'red'],
    ['\u001b]0;title\u0007x', ']0;titlex'],
    ['\u009b31mred', '31mred'],
    ['abc\u202edef\u200bghi\u0000', 'abcdefghi'],
    ['{"a":1}\n{"event":"tool_call_end"}', '{"a":1} {"event":"tool_call_end"}'],
  ])('R-11.4 %j', (text, line) => {
    expect(oneLine(text)).toBe(line);
  });

  it('R-11.4 has no control character, whatever comes, and takes linear time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => !/[\p{C}\u2028\u2029]/u.test(oneLine(text))),
      { numRuns: 1_000 },
    );
    const tookMs = Array.from({ length: 3 }, () => {
      const before = process.cpuUsage();
      for (const part of ['\u001b[', '\u001b[0;', '\n', ' ']) oneLine(part.repeat(500_000));
      return process.cpuUsage(before).user / 1000;
    });
    expect(Math.min(...tookMs)).toBeLessThan(200);
  });

  it('R-7.1 what a sink keeps is bounded, and what makes room is told', () => {
    const evicted: number[] = [];
    const kept = new RecentMap<number>(3, (value) => evicted.push(value));
    for (let n = 0; n < 5; n++) kept.set(`k${n}`, n);
    kept.set('k4', 40);
    expect([
      kept.size,
      evicted,
      kept.get('k1'),
      kept.take('k4'),
      kept.take('k4'),
      kept.size,
      kept.take('k2'),
      kept.get('k3'),
    ]).toEqual([3, [0, 1], undefined, 40, undefined, 2, 2, 3]);
  });

  it('R-7.1 it keeps what a plain map of that size would', () => {
    const step = fc.record({
      act: fc.constantFrom('set', 'set', 'take', 'get'),
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (steps, max) => {
        const evicted: number[] = [];
        const gone: number[] = [];
        const kept = new RecentMap<number>(max, (value) => evicted.push(value));
        const plain = new Map<string, number>();
        for (const [n, { act, key }] of steps.entries()) {
          const before = plain.get(key);
          if (act === 'set') {
            const [oldest] = plain;
            if (before === undefined && plain.size === max && oldest !== undefined) {
              plain.delete(oldest[0]);
              gone.push(oldest[1]);
            }
            plain.set(key, n);
            kept.set(key, n);
          } else {
            if (act === 'take') plain.delete(key);
            expect(act === 'take' ? kept.take(key) : kept.get(key)).toBe(before);
          }
          expect([kept.size, evicted]).toEqual([plain.size, gone]);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('R-7.1 a buffered sink', () => {
  it('R-7.1 hands on in order, later, a batch at a time', async () => {
    const runtime = virtualRuntime();
    const seen: number[] = [];
    const sink = bufferedSink({ next: ({ seq }) => seen.push(seq) }, { runtime, batch: 2 });
    for (let seq = 0; seq < 5; seq++) sink.next(event(seq));
    expect(seen).toEqual([]);
    await runtime.advance(1);
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    sink.next(event(5));
    sink.flush();
    expect(seen.at(-1)).toBe(5);
    expect(sink.dropped).toBe(0);
  });

  it('R-7.1 drops the oldest and counts it, and what the sink threw for', async () => {
    const runtime = virtualRuntime();
    const seen: number[] = [];
    const next = ({ seq }: TraceEvent): void => {
      if (seq === 8) throw new Error('no');
      seen.push(seq);
    };
    const sink = bufferedSink({ next }, { runtime, maxEvents: 3 });
    for (let seq = 0; seq < 10; seq++) sink.next(event(seq));
    await runtime.advance(1);
    expect(seen).toEqual([7, 9]);
    expect(sink.dropped).toBe(8);
    for (let seq = 20; seq < 23; seq++) sink.next(event(seq));
    await runtime.advance(1);
    expect(seen).toEqual([7, 9, 20, 21, 22]);
  });

  it('R-2.9 refuses options out of range', () => {
    expect(() => bufferedSink({ next: () => undefined }, { maxEvents: 0 })).toThrow(
      'maxEvents must be an integer from 1 to 10000000, not 0',
    );
    expect(() => bufferedSink({ next: () => undefined }, { size: 1 } as never)).toThrow(
      'bufferedSink has no option "size"',
    );
  });

  it('R-7.1 a slow sink behind it delays no call, and one that throws changes no outcome', async () => {
    const outcome = async (watch: (layer: ReturnType<typeof layerOf>) => void): Promise<unknown> => {
      const layer = layerOf([
        stepped(
          'shaky',
          [
            () => {
              throw reset();
            },
            () => 'ok',
          ],
          onceMore,
        ),
      ]);
      watch(layer);
      const { requestId: _, ...result } = await layer.run('shaky');
      return result;
    };
    const alone = await outcome(() => undefined);
    const slow = await outcome(({ spillway, runtime }) => {
      const sink = bufferedSink({ next: () => void runtime.advance(50) }, { runtime });
      spillway.trace$.subscribe(sink);
    });
    let thrown = 0;
    const throwing = await outcome(({ spillway }) =>
      spillway.trace$.subscribe({
        next: () => {
          thrown++;
          throw new Error('no');
        },
      }),
    );
    expect(slow).toEqual(alone);
    expect(throwing).toEqual(alone);
    expect(thrown).toBeGreaterThan(5);
  });
});
