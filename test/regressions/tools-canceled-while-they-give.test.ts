// Was: a tool whose stream gives values without a pause was not stopped when its call was canceled meanwhile. Now: it
// hears of it at once.
import { createSpillway, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { Observable } from 'rxjs';
import { expect, it } from 'vitest';

it('R-4.2 a tool whose call is canceled while its stream gives values in one go gives no more of them', async () => {
  const caller = new AbortController();
  let given = 0;
  const counting = new Observable<number>((subscriber) => {
    while (!subscriber.closed && given < 1_000) {
      subscriber.next(++given);
      if (given === 3) caller.abort();
    }
    subscriber.complete();
  });
  const spillway = createSpillway({
    runtime: virtualRuntime(),
    tools: [tool({ name: 'counting', policy: { effects: 'read' }, execute: () => counting })],
  });
  const result = await spillway.execute({ toolName: 'counting' }, { signal: caller.signal });
  expect(result.error).toMatchObject({ code: 'canceled' });
  expect(given).toBe(3);
});
