/** Takes bytes as they come. After `end` or `fail` no method is called any more. */
export interface ByteTaker {
  take(piece: Uint8Array): void;
  end(): void;
  fail(error: unknown): void;
}

/**
 * Bytes as they come, by callbacks: promises and web streams cost more for each piece than all that the gateway does
 * with it.
 *
 * Exactly one of `end` and `fail` is called on what a source is started with, also after `cancel`, and never before
 * `start` has returned.
 */
export interface ByteSource {
  /** Once. */
  start(taker: ByteTaker): void;
  /** A few pieces that are on their way may still come. */
  pause(): void;
  resume(): void;
  /** Nobody wants the rest. */
  cancel(): void;
}

/** Bytes in one piece. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  return only !== undefined && pieces.length === 1 ? only : copied(pieces);
}

const copied = (pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
};

/** All bytes of a source. `most`: beyond so many it is canceled, and the promise rejects with `tooMany()`. */
export const wholeOf = (
  source: ByteSource,
  most: number = Infinity,
  tooMany?: () => unknown,
): Promise<Uint8Array<ArrayBuffer>> =>
  new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    let length = 0;
    source.start({
      take: (piece) => {
        length += piece.length;
        if (length <= most) return void pieces.push(piece);
        // What was read is let go at once.
        pieces.length = 0;
        reject(tooMany?.());
        source.cancel();
      },
      end: () => resolve(copied(pieces)),
      fail: reject,
    });
  });

/** Ends a source that nobody has started. */
export const drop = (source: ByteSource): void => {
  source.start({ take: () => undefined, end: () => undefined, fail: () => undefined });
  source.cancel();
};

/** What comes out of a web stream. */
export class WebBytes implements ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #taker: ByteTaker | undefined;
  #paused = false;
  #reading = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  start(taker: ByteTaker): void {
    this.#taker = taker;
    this.#read();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#read();
  }

  cancel(): void {
    this.#paused = false;
    // A read that waits ends with it; one that does not is in the stream's own hands.
    this.#reader.cancel().catch(() => undefined);
    this.#read();
  }

  #read(): void {
    if (this.#paused || this.#reading || this.#taker === undefined) return;
    this.#reading = true;
    this.#reader.read().then(this.#got, this.#failed);
  }

  readonly #got = ({ done, value }: ReadableStreamReadResult<Uint8Array>): void => {
    this.#reading = false;
    if (!done) {
      this.#taker?.take(value);
      return this.#read();
    }
    const taker = this.#taker;
    this.#taker = undefined;
    taker?.end();
  };

  readonly #failed = (error: unknown): void => {
    const taker = this.#taker;
    this.#taker = undefined;
    taker?.fail(error);
  };
}

/**
 * A source as a web stream. It begins at once, and gives no more than is asked for; canceled, it waits for the source's
 * end.
 */
export const webStream = (source: ByteSource): ReadableStream<Uint8Array<ArrayBuffer>> => {
  let open = true;
  const end = Promise.withResolvers<void>();
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start: (controller) => {
        const close = (how: () => void): void => {
          if (open) how();
          open = false;
          end.resolve();
        };
        source.start({
          take: (piece) => {
            if (!open) return;
            controller.enqueue(piece as Uint8Array<ArrayBuffer>);
            if ((controller.desiredSize ?? 0) <= 0) source.pause();
          },
          end: () => close(() => controller.close()),
          fail: (error) => close(() => controller.error(error)),
        });
        source.pause();
      },
      pull: () => source.resume(),
      cancel: () => {
        open = false;
        source.cancel();
        return end.promise;
      },
    },
    { highWaterMark: 0 },
  );
};

/** Bytes that end with a signal, whatever their source makes of it; and that fail where the taker cannot take them. */
export class BoundBytes implements ByteSource, ByteTaker {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  #taker: ByteTaker | undefined;

  constructor(source: ByteSource, signal: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
  }

  start(taker: ByteTaker): void {
    this.#taker = taker;
    this.#source.start(this);
    if (this.#signal.aborted) queueMicrotask(this.#abort);
    else this.#signal.addEventListener('abort', this.#abort, { once: true });
  }

  pause(): void {
    this.#source.pause();
  }

  resume(): void {
    this.#source.resume();
  }

  cancel(): void {
    this.#leave()?.fail(new Error('canceled'));
    this.#source.cancel();
  }

  take(piece: Uint8Array): void {
    try {
      this.#taker?.take(piece);
    } catch (error) {
      this.#leave()?.fail(error);
      this.#source.cancel();
    }
  }

  end(): void {
    this.#leave()?.end();
  }

  fail(error: unknown): void {
    this.#leave()?.fail(error);
  }

  readonly #abort = (): void => {
    this.#leave()?.fail(this.#signal.reason);
    this.#source.cancel();
  };

  #leave(): ByteTaker | undefined {
    const taker = this.#taker;
    this.#taker = undefined;
    this.#signal.removeEventListener('abort', this.#abort);
    return taker;
  }
}

/** Bytes that hold something until they have ended, in whatever way. */
export const holding = (source: ByteSource, release: () => void): ByteSource => ({
  start: (taker) =>
    source.start({
      take: (piece) => taker.take(piece),
      end: () => {
        release();
        taker.end();
      },
      fail: (error) => {
        release();
        taker.fail(error);
      },
    }),
  pause: () => source.pause(),
  resume: () => source.resume(),
  cancel: () => source.cancel(),
});
