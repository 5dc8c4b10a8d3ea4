// Was: where the environment may not be read (Deno without --allow-env) the first call rejected. Now: a denied switch
// is one that nobody has thrown.
import { createSpillway, tool } from 'spillway';
import { afterEach, describe, expect, it, vi } from 'vitest';

const denied = (): never => {
  throw Object.assign(new Error('Requires env access, run again with the --allow-env flag'), { name: 'NotCapable' });
};

describe('R-11.2 an environment that may not be read', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each<[string, object]>([
    ['at each look', { env: new Proxy({}, { get: denied, has: denied, ownKeys: denied }) }],
    [
      'at all',
      {
        get env(): never {
          return denied();
        },
      },
    ],
  ])('R-11.2 %s reads as unset', async (_, parts) => {
    const { process } = globalThis;
    const layer = createSpillway({ tools: [tool({ name: 'echo', execute: (input: unknown) => input })] });
    vi.stubGlobal('process', Object.create(process, Object.getOwnPropertyDescriptors(parts)));
    expect(await layer.execute({ toolName: 'echo', input: 1 })).toMatchObject({
      status: 'success',
      output: { content: 1 },
    });
    expect(await layer.execute({ toolName: 'echo', input: 1, session: 's', idempotencyKey: 'k' })).toMatchObject({
      status: 'success',
    });
  });
});
