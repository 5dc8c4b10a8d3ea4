/**
 * A text that is made as it is read, as the body of an answer. Its first piece is made before it resolves: what fails
 * there is answered as a failure, and not as a body that breaks off. Who goes away ends the making.
 */
export async function streamOf(chunks: AsyncIterable<string>): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder();
  const iterator = chunks[Symbol.asyncIterator]();
  let ahead: IteratorResult<string, unknown> | undefined = await iterator.next();
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const result = ahead ?? (await iterator.next());
      ahead = undefined;
      if (result.done === true) controller.close();
      else controller.enqueue(encoder.encode(result.value));
    },
    cancel: async () => {
      await iterator.return?.();
    },
  });
}
