// Was: a loser of a hedge whose teardown threw kept the winner's stream from its end. Now: what it throws is its own
// affair.
import { hedge } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { Observable, defer, of } from 'rxjs';
import { expect, it } from 'vitest';

it('a hedge ends with its winner, also when the teardown of the loser throws', async () => {
  const runtime = virtualRuntime();
  const loser$ = new Observable<string>(() => () => {
    throw new Error('torn down');
  });
  const attempts = [loser$, of('answer')];
  const heard: string[] = [];
  defer(() => attempts.shift() ?? of('a third'))
    .pipe(hedge({ delayMs: 5 }, runtime))
    .subscribe({
      next: (value) => heard.push(value),
      error: (error: unknown) => heard.push(String(error)),
      complete: () => heard.push('end'),
    });
  await runtime.advance(5);
  expect(heard).toEqual(['answer', 'end']);
  expect(runtime.pending).toBe(0);
});
