/** A body made of pieces as they come. Canceled, it cancels what makes them. */
export const bodyOf = (pieces: AsyncGenerator<Uint8Array, void, undefined>, cancel: () => void, end: () => void): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await pieces.next();
          if (done !== true) return controller.enqueue(value);
          end();
          controller.close();
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      cancel: async () => {
        cancel();
        try {
          await pieces.return();
        } finally {
          end();
        }
      },
    },
    { highWaterMark: 0 },
  );

export const isEventStream = ({ headers }: Response): boolean => /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');

/** A body's bytes as they come. @throws what the body throws */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader();
  let open = true;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield value;
    }
    open = false;
  } finally {
    if (open) void reader.cancel().catch(() => undefined);
  }
}
