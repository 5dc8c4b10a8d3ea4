// Was: a caller that left as it heard that another holds its key had the store asked for that one's outcome. Now:
// nothing is asked for who has left.
import { createSpillway, tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { expect, it } from 'vitest';

it('R-10.3 a caller that leaves as it hears that it was superseded asks the store for nothing more', async () => {
  const asked: string[] = [];
  const written = Promise.withResolvers<undefined>();
  const store: DedupeStore = {
    ...memoryStore(),
    get: () => void asked.push('get'),
    compareAndSet: () => (asked.push('compareAndSet'), written.promise),
  };
  const pay = tool({ name: 'pay', policy: { effects: 'mutating' }, execute: () => 'paid' });
  const events$ = createSpillway({ store, tools: [pay] }).call({ toolName: 'pay', idempotencyKey: 'k' });
  const left = Promise.withResolvers<void>();
  const caller = events$.subscribe((event) => {
    if (event.type !== 'dedupe' || event.step !== 'superseded') return;
    asked.push('left');
    caller.unsubscribe();
    left.resolve();
  });
  written.resolve(undefined);
  await left.promise;
  expect(asked).toEqual(['compareAndSet', 'left']);
});
