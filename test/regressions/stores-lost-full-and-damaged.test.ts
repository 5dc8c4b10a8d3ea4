// Was: the trace told a store that was full, damaged or bypassed as lost, or as back again. Now: `store_changed` tells
// lost, full and back only when they are so.
import { describe, expect, it } from 'vitest';
import { NEVER } from 'rxjs';
import { ToolExecutionError, createSpillway, tool, type DedupeStore, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { asked } from '../spec/tr-02-stores.ts';

const told = (store: DedupeStore, execute: () => unknown = () => 1) => {
  const layer = createSpillway({ tools: [tool({ name: 't', execute })], store });
  const changes: string[] = [];
  layer.trace$.subscribe((event: TraceEvent) => {
    if (event.type === 'store_changed') changes.push(event.state);
  });
  return { layer, changes };
};

describe('R-10.3 what is told of a store', () => {
  it('R-10.3 it is lost for a call that runs all the same, and does not come back by that', async () => {
    const lost = (): never => {
      throw new Error('connect ECONNREFUSED');
    };
    for (const modes of [
      ['bestEffort', 'bestEffort'],
      ['enforced', 'bestEffort', 'enforced', 'bestEffort'],
    ] as const) {
      const { layer, changes } = told({ ...memoryStore(), setIfNotExists: lost });
      for (const mode of modes) await layer.execute(asked({ mode }));
      expect(changes).toEqual(['lost']);
    }
  });

  it('R-10.2 full is another thing than lost', async () => {
    const { layer, changes } = told(memoryStore({ maxKeys: 1 }), () => NEVER);
    const running = layer.call(asked({ key: 'a' })).subscribe();
    for (let n = 0; n < 3; n++) await layer.execute(asked({ key: 'b' }));
    running.unsubscribe();
    layer
      .call(asked({ key: 'b' }))
      .subscribe()
      .unsubscribe();
    expect(changes).toEqual(['full', 'back']);
  });

  it('R-10.3 a damaged record is no lost store', async () => {
    const damaged = (): never => {
      throw new ToolExecutionError('store_unavailable', 'The record is damaged', {
        code: 'damaged_record',
        classification: 'permanent',
      });
    };
    const { layer, changes } = told({ ...memoryStore(), setIfNotExists: damaged });
    expect((await layer.execute(asked())).error).toMatchObject({ code: 'store_unavailable', terminal: true });
    expect(changes).toEqual([]);
  });

  it('R-10.3 a result that cannot be read stays so: asking again the same way does not help', async () => {
    const memory = memoryStore();
    const { layer } = told({
      ...memory,
      setIfNotExists: async (claim, over) => {
        const answer = await memory.setIfNotExists(claim, over);
        return answer.created ? answer : { ...answer, record: { ...answer.record, payload: '{"cut' } };
      },
    });
    await layer.execute(asked());
    expect(await layer.execute(asked())).toMatchObject({
      status: 'error',
      fromCache: false,
      error: { code: 'store_unavailable', terminal: true },
    });
  });
});
