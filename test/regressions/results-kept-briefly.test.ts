// Was: a result that is kept for less than a second had gone before whoever waited for it in another process looked
// again, and that one ran, too; nothing said so. Now: who waits looks at least twice while a result is kept.
import { createSpillway, tool, type Spillway } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';

describe('R-9.4 a result that is kept for a short time', () => {
  it.each([60, 200, 400, 1_000])(
    'R-9.4 of %i ms reaches those who wait for it in other processes, and nothing runs again',
    async (doneTtlMs) => {
      const runtime = virtualRuntime();
      const memory = memoryStore({ runtime });
      let paid = 0;
      /** As another process has it, whose store tells of no changes. */
      const layerOf = (): Spillway => {
        const { changes: _, ...store } = memory;
        const execute = async (): Promise<number> => {
          await new Promise<void>((resolve) => void runtime.after(10_300).subscribe(() => resolve()));
          return ++paid;
        };
        const policy = { effects: 'mutating', timeoutMs: 60_000, dedupe: { doneTtlMs } } as const;
        return createSpillway({
          store,
          tools: [tool({ name: 't', policy, execute })],
          runtime: { ...runtime, random: () => 0.999 },
        });
      };
      const calls = Array.from({ length: 4 }, () => layerOf().execute(asked()));
      await runtime.run();
      const results = await Promise.all(calls);
      expect(results.filter(({ fromCache }) => !fromCache)).toHaveLength(1);
      expect(paid).toBe(1);
    },
  );
});
