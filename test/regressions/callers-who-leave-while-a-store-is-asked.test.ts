// Was: a claim that a store granted to a caller who left while it was asked stayed, and blocked its key. Now: it is
// given back.
import { createSpillway, dedupe, tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { NEVER, Subject, takeUntil } from 'rxjs';
import { describe, expect, it } from 'vitest';

/** A store during whose claims something happens, as when it logs them, and which answers at once or later. */
const storeWith = (
  runtime: VirtualRuntime,
  later: boolean,
  meanwhile: () => void,
): { readonly store: DedupeStore; readonly memory: DedupeStore } => {
  const memory = memoryStore({ runtime });
  const setIfNotExists: DedupeStore['setIfNotExists'] = (claim, over) => {
    const answer = memory.setIfNotExists(claim, over);
    meanwhile();
    return later ? Promise.resolve(answer) : answer;
  };
  return { memory, store: { ...memory, setIfNotExists } };
};

describe.each([
  ['at once', false],
  ['later', true],
])('a store that answers %s', (_when, later) => {
  it('R-9.6 gets the key back of a call that was canceled meanwhile', async () => {
    const runtime = virtualRuntime();
    const caller = new AbortController();
    const { store, memory } = storeWith(runtime, later, () => caller.abort());
    let runs = 0;
    const spillway = createSpillway({
      runtime,
      store,
      tools: [tool({ name: 'pay', policy: { effects: 'mutating' }, execute: () => ++runs })],
    });
    const result = await spillway.execute({ toolName: 'pay', idempotencyKey: 'k' }, { signal: caller.signal });
    await runtime.advance(0);
    expect(result.error).toMatchObject({ code: 'canceled' });
    expect(runs).toBe(0);
    for await (const record of memory.byTool('pay')) expect.unreachable(`the key is still ${record.state}`);
    expect(runtime.pending).toBe(0);
  });

  it('R-9.6 gets the key back of a stream whose subscriber left meanwhile', async () => {
    const runtime = virtualRuntime();
    const left$ = new Subject<void>();
    const { store, memory } = storeWith(runtime, later, () => left$.next());
    NEVER.pipe(dedupe(store, 'k', {}, runtime), takeUntil(left$)).subscribe();
    await runtime.advance(0);
    expect(await memory.get('k')).toBeUndefined();
    expect(runtime.pending).toBe(0);
  });
});
