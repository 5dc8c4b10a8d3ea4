import { Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable } from '../../contract/store.ts';
import { ToolExecutionError, isToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import { expireAfter, type Expiry } from '../timing/expiry.ts';
import { isPromiseLike } from '../work/output.ts';

const unavailable = (why: string, cause?: unknown): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    `The store ${why}; nothing was run on its word. Ask again under the same key`,
    { cause },
  );

const failed = (thrown: unknown): ToolExecutionError =>
  isToolExecutionError(thrown) && thrown.kind === 'store_unavailable'
    ? thrown
    : unavailable(`failed: ${toToolExecutionError(thrown).message}`, thrown);

/**
 * Asks a store: emits its answer once, or errors with `store_unavailable`. A question is never called off once it is
 * asked: an answer that comes after the time is over, or after nobody waits any more, goes to `late`.
 */
export function ask<T>(
  question: () => Awaitable<T>,
  timeoutMs: number,
  runtime: Runtime,
  late?: (answer: T) => void,
): Observable<T> {
  return new Observable((subscriber) => {
    let waiting = true;
    let limit: Expiry | undefined;
    const end = (): boolean => {
      const first = waiting;
      waiting = false;
      limit?.unsubscribe();
      return first;
    };
    const answered = (answer: T): void => {
      if (!end()) return late?.(answer);
      subscriber.next(answer);
      subscriber.complete();
    };
    const refused = (thrown: unknown): void => {
      if (end()) subscriber.error(failed(thrown));
    };
    // Added first: whoever waits may leave while the store is asked.
    subscriber.add(end);
    try {
      const answer = question();
      if (isPromiseLike(answer)) {
        if (waiting) {
          limit = expireAfter(timeoutMs, runtime, () => {
            if (end()) subscriber.error(unavailable(`gave no answer within ${timeoutMs} ms`));
          });
        }
        answer.then(answered, refused);
      } else answered(answer);
    } catch (error) {
      refused(error);
    }
  });
}
