// Was: a model that emitted null or undefined made a subscriber throw where nobody could catch it, and the process
// ended. Now: the run fails with `model_error`.
import { of } from 'rxjs';
import { createSpillway } from 'spillway';
import { describe, expect, it } from 'vitest';
import type { AgentModel } from '../../src/agent/index.ts';
import { asked, lived, resultOf } from '../agent/kit.ts';

describe('a model of one’s own', () => {
  // RxJS rethrows what a subscriber throws where nobody can catch it, and vitest reports that.
  it.each([null, undefined, 7])('R-8.2 that says %s fails, and ends nothing else', async (event) => {
    const model = (() => of(event, { type: 'stop', reason: 'end' })) as unknown as AgentModel;
    const result = resultOf(
      await lived({ model, spillway: createSpillway({ tools: [] }), messages: asked, modelRetry: false }),
    );
    if (event === 7) expect(result.status).toBe('completed');
    else expect(result).toMatchObject({ status: 'failed', reason: 'model_error' });
    expect(result.messages.slice(0, 1)).toEqual(asked);
  });
});
