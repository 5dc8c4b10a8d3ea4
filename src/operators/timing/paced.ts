import { Observable, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';

/**
 * Hands values on one after the other, each once what the one before it caused has returned: what a value leads to
 * joins the queue and not the stack. After each `burst` values the event loop has its turn, however they came, and with
 * it deadlines and the answers of those that are quick.
 *
 * ```
 * source              (abc)---|
 * paced(2, runtime)   (ab)(c)-|    a and b in one go, c once the event loop has come round
 * ```
 */
export const paced =
  (burst: number, runtime: Runtime) =>
  <T>(source: Observable<T>): Observable<T> =>
    new Observable((subscriber) => {
      let queue: T[] = [];
      let head = 0;
      let busy = true;
      let ended = false;
      let left = burst;
      let pause: Subscription | undefined;
      const go = (): void => {
        if (busy || pause !== undefined) return;
        busy = true;
        for (; left > 0 && head < queue.length && !subscriber.closed; left--) subscriber.next(queue[head++] as T);
        busy = false;
        if (head < queue.length && !subscriber.closed) {
          pause = runtime.after(0).subscribe(() => {
            pause = undefined;
            left = burst;
            go();
          });
          return;
        }
        [queue, head] = [[], 0];
        if (ended) subscriber.complete();
      };
      subscriber.add(() => pause?.unsubscribe());
      subscriber.add(
        source.subscribe({
          next: (value) => {
            queue.push(value);
            go();
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            ended = true;
            go();
          },
        }),
      );
      busy = false;
      go();
    });
