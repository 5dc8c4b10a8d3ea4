import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BoundBytes,
  WebBytes,
  holding,
  webStream,
  wholeOf,
  type ByteSource,
  type ByteTaker,
} from '../../../src/gateway/wire/bytes.ts';
import { SseEvent, SseSplitter } from '../../../src/gateway/wire/sse.ts';

const utf8 = new TextEncoder();
const text = (pieces: readonly Uint8Array[]): string => Buffer.concat(pieces).toString();

/** A taker that writes down what it hears. */
const noting = (): ByteTaker & { readonly pieces: Uint8Array[]; readonly ends: unknown[] } => {
  const pieces: Uint8Array[] = [];
  const ends: unknown[] = [];
  return {
    pieces,
    ends,
    take: (piece) => void pieces.push(piece),
    end: () => void ends.push('end'),
    fail: (error) => void ends.push(error),
  };
};

/** A web stream that is fed by hand. */
const fed = (): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly give: (piece: string) => void;
  readonly end: () => void;
  readonly fail: (error: unknown) => void;
  readonly canceled: () => boolean;
} => {
  let canceled = false;
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    cancel: () => void (canceled = true),
  });
  return {
    stream,
    give: (piece) => controller?.enqueue(utf8.encode(piece)),
    end: () => controller?.close(),
    fail: (error) => controller?.error(error),
    canceled: () => canceled,
  };
};

const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

describe('R-13.1 bytes by callbacks', () => {
  it('R-13.1 what goes through all of them comes out as it was', async () => {
    const { stream, give, end } = fed();
    const source = new BoundBytes(
      new WebBytes(webStream(holding(new WebBytes(stream), () => undefined))),
      new AbortController().signal,
    );
    const whole = wholeOf(source);
    give('a');
    await turn();
    give('bc');
    end();
    expect(text([await whole])).toBe('abc');
  });

  const endings: ReadonlyArray<
    readonly [
      string,
      (fed: { end(): void; fail(error: unknown): void }, source: ByteSource, client: AbortController) => void,
      unknown,
    ]
  > = [
    ['its end', ({ end }) => end(), 'end'],
    ['its failure', ({ fail }) => fail('broken'), 'broken'],
    ['being canceled', (_, source) => source.cancel(), expect.any(Error)],
    ['its signal', (_, _source, client) => client.abort('gone'), 'gone'],
  ];
  it.each(endings)('R-13.1 a source ends once: by %s', async (_, finish, heard) => {
    const one = fed();
    const client = new AbortController();
    let released = 0;
    const source = holding(new BoundBytes(new WebBytes(one.stream), client.signal), () => released++);
    const taker = noting();
    source.start(taker);
    one.give('a');
    await turn();
    finish(one, source, client);
    await turn();
    source.cancel();
    client.abort();
    await turn();
    expect([text(taker.pieces), taker.ends, released]).toStrictEqual(['a', [heard], 1]);
  });

  it('R-13.1 with a signal that is aborted already, nothing is heard before start has returned', async () => {
    const { stream, canceled } = fed();
    const taker = noting();
    new BoundBytes(new WebBytes(stream), AbortSignal.abort('gone')).start(taker);
    expect(taker.ends).toStrictEqual([]);
    await turn();
    expect([taker.ends, canceled()]).toStrictEqual([['gone'], true]);
  });

  it('R-13.1 a taker that throws ends its source, and hears why', async () => {
    const { stream, give, canceled } = fed();
    const taker = noting();
    const thrown = new Error('full');
    new BoundBytes(new WebBytes(stream), new AbortController().signal).start({
      ...taker,
      take: () => {
        throw thrown;
      },
    });
    give('a');
    await turn();
    expect([taker.ends, canceled()]).toStrictEqual([[thrown], true]);
  });

  it('R-13.1 paused, it reads no further; resumed, it goes on', async () => {
    let pulled = 0;
    const stream = new ReadableStream<Uint8Array>(
      { pull: (controller) => controller.enqueue(utf8.encode(String(++pulled))) },
      { highWaterMark: 0 },
    );
    const source = new WebBytes(stream);
    const taker = noting();
    source.start({ ...taker, take: (piece) => (taker.take(piece), source.pause()) });
    for (let n = 0; n < 3; n++) await turn();
    expect(text(taker.pieces)).toBe('1');
    source.resume();
    for (let n = 0; n < 3; n++) await turn();
    expect(text(taker.pieces)).toBe('12');
    source.cancel();
  });

  it('R-13.1 a web stream that nobody reads asks for no more', async () => {
    let pulled = 0;
    const source = new WebBytes(
      new ReadableStream<Uint8Array>(
        { pull: (controller) => controller.enqueue(utf8.encode(String(++pulled))) },
        { highWaterMark: 0 },
      ),
    );
    const reader = webStream(source).getReader();
    for (let n = 0; n < 5; n++) await turn();
    expect(pulled).toBeLessThanOrEqual(1);
    expect(
      text([(await reader.read()).value ?? new Uint8Array(0), (await reader.read()).value ?? new Uint8Array(0)]),
    ).toBe('12');
    expect(pulled).toBeLessThanOrEqual(3);
    await reader.cancel();
  });
});

describe('R-13.1 events that are not read', () => {
  const stray = [
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":,',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":-1,"a":1}',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":1}',
    'event: content_block_delta\r\ndata: {"type":"content_block_delta","index":1,"a":1}',
  ];
  const spaced = 'event: content_block_delta\ndata: {"type": "content_block_delta","index":1,"a":1}';

  it('R-13.1 the index of a usual delta is found, and put in its place', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.nat(1_000_000),
        fc.dictionary(fc.string(), fc.jsonValue()),
        (index, place, delta) => {
          const of = (at: number): string =>
            `event: content_block_delta\ndata: {"type":"content_block_delta","index":${at},"delta":${JSON.stringify(delta)}}\n\n`;
          const event = new SseEvent(utf8.encode(of(index)), true);
          expect(event.deltaIndex).toBe(index);
          expect(text([event.withDeltaIndex(place)])).toBe(of(place));
        },
      ),
    );
  });

  it.each([...stray, spaced, ': hi', ''])('R-13.1 anything else is read: %j', (given) => {
    expect(new SseEvent(utf8.encode(`${given}\n\n`), true).deltaIndex).toBeUndefined();
  });

  it('R-13.1 bytes that only pass are cut at ends of events, and none is lost', () => {
    const piece = fc.constantFrom(
      'event: ping\n',
      'data: {"type":"ping"}\n',
      '\n',
      '\r\n',
      '\r',
      ': hi\n',
      'data:x',
      'ä',
      '\n\n',
      '\r\n\r\n',
      '\r\r',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 10 }), (pieces, cuts) => {
        const bytes = utf8.encode(pieces.join(''));
        const splitter = new SseSplitter();
        const passed: Uint8Array[] = [];
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length];
        for (const [at, to] of places.slice(1).entries()) {
          passed.push(splitter.pass(bytes.subarray(places[at], to)));
          // What has passed ends with a whole event, or is none of one yet.
          const half = new SseSplitter();
          half.push(utf8.encode(text(passed)));
          const rest = half.rest();
          expect(rest === undefined || rest.whole || !/[^\r\n]/.test(text([rest.raw]))).toBe(true);
        }
        const rest = splitter.rest();
        expect(text(rest === undefined ? passed : [...passed, rest.raw])).toBe(text([bytes]));
      }),
      { numRuns: 500 },
    );
  });
});
