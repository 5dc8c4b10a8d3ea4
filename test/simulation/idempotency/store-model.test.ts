import { describe, expect, it } from 'vitest';
import { storeConformance } from 'spillway/testing';
import { virtualRuntime } from '../../../src/testing/virtual-runtime.ts';
import { StoreHistory } from './history.ts';
import { Process } from './process.ts';
import { storeLink } from './store-link.ts';
import { StoreServer } from './store-server.ts';

// The model that the simulation holds stores against must itself be one.
const cases = storeConformance(() => {
  const runtime = virtualRuntime();
  const server = new StoreServer(runtime, false, { answered: () => {}, forgot: () => {} });
  const link = (index: number): ReturnType<typeof storeLink> =>
    storeLink(new Process({ index, rate: 1, wallAheadMs: 0 }, runtime.scheduler, 1), {
      seed: 1,
      faults: {},
      scheduler: runtime.scheduler,
      server,
      history: new StoreHistory(),
      direct: true,
      notifies: true,
      down: () => undefined,
      calm: () => true,
      asked: () => {},
      heard: () => {},
      lost: () => {},
    });
  return {
    store: link(0),
    open: () => link(1),
    pass: (ms) => runtime.advance(ms),
    forgetsAlone: true,
    close: () => {},
  };
});

describe('the model of a store', () => {
  it.each(cases)('$name', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
