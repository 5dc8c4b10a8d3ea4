// Was: `dedupe` linked a source to its subscriber only once the source had returned, which an endless synchronous one
// never does. Now: the source hears that its subscriber left.
import { Observable, firstValueFrom, take, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { dedupe } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';

it('R-9.6 an endless synchronous source hears that its subscriber left, and what came until then is kept', async () => {
  const store = memoryStore();
  let pulled = 0;
  const endless$ = new Observable<number>((subscriber) => {
    while (!subscriber.closed && pulled < 1_000) subscriber.next(pulled++);
  });
  const once$ = endless$.pipe(dedupe(store, 'k'));
  expect(await firstValueFrom(once$.pipe(take(3), toArray()))).toEqual([0, 1, 2]);
  expect(pulled).toBe(3);
  expect(await firstValueFrom(once$.pipe(toArray()))).toEqual([0, 1, 2]);
});
