import { describe, expect, it } from 'vitest';
import { ToolExecutionError, createExperience } from 'spillway';
import { loadExperience, saveExperience } from 'spillway/operate';
import { memoryStore } from 'spillway/stores/memory';

describe('R-6.4 experience outlives its process', () => {
  it('R-6.4 what is saved is what the next one begins with', async () => {
    const store = memoryStore();
    const learned = createExperience({ enough: 2 });
    const error = new ToolExecutionError('timeout', 'too slow');
    for (let n = 0; n < 2; n++)
      learned.record({ toolName: 't', error, tried: { strategy: 'retry' }, recovered: false }, 1_000 + n);
    expect(await saveExperience(store, learned)).toBe(true);
    // Again, over what is there.
    expect(await saveExperience(store, learned)).toBe(true);
    const loaded = await loadExperience(store, { enough: 2 });
    expect(loaded.toJSON()).toEqual(learned.toJSON());
    expect((await loadExperience(store, {}, 'another')).toJSON().entries).toEqual([]);
  });

  it('R-6.4 a record that is none is told, not loaded', async () => {
    const store = memoryStore();
    await saveExperience(store, createExperience());
    const reading = await store.get('experience:default');
    await store.compareAndSet('experience:default', reading?.record.version ?? 0, {
      state: 'done',
      ttlMs: 1_000,
      payload: '{"version":2}',
    });
    await expect(loadExperience(store)).rejects.toMatchObject({ kind: 'store_unavailable' });
  });
});
