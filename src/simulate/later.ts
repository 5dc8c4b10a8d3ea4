import { AsyncSubject } from 'rxjs';
import type { Awaitable } from '../contract/store.ts';

/** What makes an answer one that can be waited for. */
// oxlint-disable-next-line unicorn/no-thenable
const THEN = 'then';

type Given = (value: unknown) => unknown;

/** Has work done at an instant, in its turn among what is done then. */
export type Schedule = (work: () => void) => void;

/**
 * An answer that comes when its work is done, in simulated time. No promise: that would tell it in a microtask, for
 * which nobody waits there. It is asked for once, and what is made of it can be asked for once more.
 */
export const later = <T>(schedule: Schedule, answer: () => Awaitable<T>): Awaitable<T> => {
  const then = (given: Given, failed?: Given): unknown => {
    const told$ = new AsyncSubject<unknown>();
    schedule(() => {
      try {
        told$.next(given(answer()));
        told$.complete();
      } catch (error) {
        if (failed === undefined) told$.error(error);
        else failed(error);
      }
    });
    return { [THEN]: (next: Given, error?: Given) => void told$.subscribe({ next, ...(error && { error }) }) };
  };
  return { [THEN]: then } as unknown as PromiseLike<T>;
};
