/** Values that are pushed and iterated over, once. */
export interface ValueQueue {
  push(value: unknown): void;
  /** After the values pushed so far, the iteration ends, or throws what `error` holds. */
  end(error?: { readonly thrown: unknown }): void;
  readonly values: AsyncIterable<unknown>;
}

/** @param left called when the iteration is over, whoever ended it */
export function createValueQueue(left: () => void): ValueQueue {
  let waiting: unknown[] = [];
  let ended = false;
  let error: { readonly thrown: unknown } | undefined;
  let wake: (() => void) | undefined;
  const wakeUp = (): void => {
    wake?.();
    wake = undefined;
  };
  const iterate = async function* (): AsyncGenerator<unknown> {
    try {
      for (;;) {
        const batch = waiting;
        waiting = [];
        yield* batch;
        if (waiting.length > 0) continue;
        if (error !== undefined) throw error.thrown;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      left();
    }
  };
  return {
    push: (value) => {
      waiting.push(value);
      wakeUp();
    },
    end: (thrown) => {
      ended = true;
      error = thrown;
      wakeUp();
    },
    values: { [Symbol.asyncIterator]: iterate },
  };
}
