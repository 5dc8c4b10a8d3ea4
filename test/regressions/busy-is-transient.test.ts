// Was: `duplicate_in_flight` bore the status 409, which a server means for good, so "ask again" was terminal. Now: it
// is a retriable error, for calls and for streams.
import { expect, it } from 'vitest';
import { classify, dedupe } from 'spillway';
import { NEVER } from 'rxjs';
import { memoryStore } from 'spillway/stores/memory';
import { gate, watched } from '../spec/tr-02-stores.ts';

it('R-1.1 R-2.8 in flight elsewhere: a retriable error, for calls and for streams', async () => {
  const store = memoryStore();
  const running = gate();
  const { call } = watched(store, () => running.opened);
  const first = call();
  expect(await call({ mode: 'bestEffort' })).toMatchObject({
    status: 'retriable_error',
    attempts: 0,
    error: { code: 'duplicate_in_flight', retriable: true, terminal: false },
  });
  running.open();
  await first;
  let seen: unknown;
  NEVER.pipe(dedupe(store, 'x', { mode: 'bestEffort' })).subscribe();
  NEVER.pipe(dedupe(store, 'x', { mode: 'bestEffort' })).subscribe({ error: (error: unknown) => (seen = error) });
  expect(classify(seen)).toMatchObject({ classification: 'transient', rule: 'kind' });
});
