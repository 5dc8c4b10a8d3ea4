// Was: a transient refusal before any attempt was decided as `retry`, nothing was retried, and nobody was asked. Now:
// the decision says what happens, and a person is asked.
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore, type SpillwayOptions, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { asked } from '../spec/tr-02-stores.ts';

const lost: DedupeStore = {
  ...memoryStore(),
  setIfNotExists: () => {
    throw new Error('connect ECONNREFUSED');
  },
};

const refused = async (
  options: SpillwayOptions = {},
): Promise<{ readonly told: string[]; readonly status: string }> => {
  const layer = createSpillway({ tools: [tool({ name: 't', execute: () => 1 })], store: lost, ...options });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  const { status } = await layer.execute(asked());
  const told = events.flatMap((event) =>
    event.type === 'decision'
      ? [`${event.strategy} ${event.code} ${event.attempt}`]
      : event.type === 'escalated'
        ? ['escalated']
        : [],
  );
  return { told, status };
};

describe('R-6.1 a transient refusal before any attempt', () => {
  it('R-6.1 is decided as what becomes of it: no retry, a person is asked', async () => {
    expect(await refused()).toEqual({
      told: ['escalate attempts_exhausted 0', 'escalated'],
      status: 'retriable_error',
    });
  });

  it('R-6.1 an error handler that wants a retry is overruled, and the trace says what happened', async () => {
    expect(
      (await refused({ errorHandler: () => ({ strategy: 'retry', code: 'transient', reason: 'why not', delayMs: 0 }) }))
        .told[0],
    ).toBe('escalate attempts_exhausted 0');
  });
});
