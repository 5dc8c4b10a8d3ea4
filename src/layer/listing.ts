import { firstValueFrom } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeRecord, DedupeStore } from '../contract/store.ts';
import { ask } from '../operators/dedupe/ask.ts';
import type { DedupeLayer } from './idempotency.ts';

/**
 * Records that a store lists, each waited for as long as any other answer of it.
 * @throws ToolExecutionError `store_unavailable`
 */
export async function* listed(
  list: (store: DedupeStore) => AsyncIterable<DedupeRecord>,
  dedupe: Pick<DedupeLayer, 'store' | 'storeTimeoutMs'>,
  runtime: Runtime,
): AsyncGenerator<DedupeRecord> {
  let records: AsyncIterator<DedupeRecord> | undefined;
  let ended = false;
  try {
    for (;;) {
      const step = await firstValueFrom(
        ask(() => (records ??= list(dedupe.store())[Symbol.asyncIterator]()).next(), dedupe.storeTimeoutMs, runtime),
      );
      ended = step.done === true;
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    // Not waited for: a store that is lost would not answer this either.
    if (!ended) void Promise.resolve(records?.return?.()).catch(() => undefined);
  }
}
