// Was: nobody told the shadow of a call that was cut short, so it renewed its lease for ever and kept its permit. Now:
// no timer, permit or claim is left.
import { NEVER } from 'rxjs';
import { expect, it } from 'vitest';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, watched } from '../spec/tr-02-stores.ts';
import { counting } from '../support.ts';

it.each(['unsubscribe', 'abort', 'close'] as const)(
  'RSC-1 R-11.2 in shadow mode, after %s nothing is held: no timer, no permit, no claim',
  async (how) => {
    const virtual = virtualRuntime();
    const runtime = counting(virtual);
    const store = memoryStore({ runtime: virtual, sweepMs: Infinity });
    const { layer, events } = watched(store, () => NEVER, { dedupe: { leaseMs: 900 } }, { mode: 'shadow', runtime });
    const abort = new AbortController();
    const subscription = layer.call(asked(), { signal: abort.signal }).subscribe();
    await virtual.advance(10);
    if (how === 'unsubscribe') subscription.unsubscribe();
    else if (how === 'abort') abort.abort();
    else await layer.close();
    expect(runtime.timers).toBe(0);
    expect(events.filter(({ type }) => type === 'settled' || type === 'abandoned')).toHaveLength(1);
    let states = '';
    for await (const { state } of store.byTool('t')) states += state;
    expect(states).toBe('cancelled');
  },
);
