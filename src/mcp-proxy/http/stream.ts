import { Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';

/** Bytes that may wait for a client that does not read, before it is told about. */
const UNREAD_BYTES = 1024 * 1024;
/** How long a client may leave so much unread. It can come back for the rest. */
const UNREAD_MS = 30_000;

export interface StreamWatch {
  readonly runtime: Runtime;
  /** Told when more waits for the client than should, and when it does no more. */
  readonly full?: (isFull: boolean) => void;
  /** Bytes that may wait at all; at more the stream is cut at once. */
  readonly maxBytes?: number;
  /** Told the end of the body, however it ends. */
  readonly ended: () => void;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** A body that is read as it is written, so that what waits in between is what its client has not read. */
class WatchedBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #watch: StreamWatch;
  #cutting = Subscription.EMPTY;
  #isFull = false;
  #isOver = false;

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>, watch: StreamWatch) {
    this.#reader = reader;
    this.#watch = watch;
  }

  start(controller: Controller): void {
    this.#pump(controller).catch((error: unknown) => {
      if (this.#end()) controller.error(error);
    });
  }

  pull(controller: Controller): void {
    this.#fill(controller, false);
  }

  async cancel(reason: unknown): Promise<void> {
    this.#end();
    await this.#reader.cancel(reason);
  }

  async #pump(controller: Controller): Promise<void> {
    const { maxBytes = Infinity } = this.#watch;
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (this.#isOver) return;
      if (done) break;
      controller.enqueue(value);
      const unread = UNREAD_BYTES - (controller.desiredSize ?? 0);
      this.#fill(controller, unread >= UNREAD_BYTES);
      // One answer alone may be as large as it is.
      if (unread > Math.max(maxBytes, value.length)) return this.#cut(controller);
    }
    this.#end();
    controller.close();
  }

  #fill(controller: Controller, isFull: boolean): void {
    if (this.#isOver || this.#isFull === isFull) return;
    const { runtime, full } = this.#watch;
    this.#isFull = isFull;
    this.#cutting.unsubscribe();
    if (isFull) this.#cutting = runtime.after(UNREAD_MS).subscribe(() => this.#cut(controller));
    full?.(isFull);
  }

  #cut(controller: Controller): void {
    if (!this.#end()) return;
    controller.error(new Error('the client does not read'));
    this.#reader.cancel().catch(() => undefined);
  }

  /** Whether it was not over before. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#cutting.unsubscribe();
    if (this.#isFull) this.#watch.full?.(false);
    this.#watch.ended();
    return true;
  }
}

/** The same answer, of which is told when its client leaves too much unread, and when it ends. */
export function watchedStream(response: Response, watch: StreamWatch): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  const body = new ReadableStream(
    new WatchedBody(reader, watch),
    new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES }),
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
