// Was: whoever opened a breaker took the store's clock for that of its answer's arrival, so that over a store whose
// answers take 190 ms another process asked 190 ms before a `Retry-After` was over.
// Now: the answer's way is no part of the time that the others wait.
import { describe, expect, it } from 'vitest';
import { firstValueFrom } from 'rxjs';
import type { DedupeStore } from 'spillway';
import { world } from './shared-world.ts';

const WAY_MS = 190;

describe('R-3.10 a store whose answers take their time', () => {
  it('R-2.4 R-3.10 lets no process ask before the Retry-After of another is over', async () => {
    let late = false;
    const { layers, dependency, runtime, call } = world({}, (memory, { after }) => {
      const slowly =
        <A extends unknown[], T>(method: (...input: A) => T) =>
        async (...input: A): Promise<Awaited<T>> => {
          const answer = await method(...input);
          if (late) await firstValueFrom(after(WAY_MS));
          return answer;
        };
      return {
        setIfNotExists: slowly(memory.setIfNotExists),
        compareAndSet: slowly(memory.compareAndSet),
      } satisfies Partial<DedupeStore>;
    });
    const [one, other] = layers;
    late = true;
    dependency.retryAfterMs = 5_000;
    await call(one);
    await call(one);
    const openedAtMs = runtime.now();
    await runtime.advance(2 * WAY_MS);
    late = false;
    dependency.up = true;
    expect(await call(other)).toBe('circuit_open');
    await runtime.advance(openedAtMs + 4_999 - runtime.now());
    expect(await call(other)).toBe('circuit_open');
    await runtime.advance(1 + WAY_MS);
    expect(await call(other)).toBe('success');
  });
});
