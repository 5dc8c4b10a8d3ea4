import { expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { expectOnce, trip } from '../../../src/testing/fleet-conformance/check.ts';
import { harness } from '../kit.ts';
import { startCluster } from './cluster.ts';

const NODES = [0, 1, 2] as const;
const EVERY_MS = 150;

it('R-17 each of three nodes of Restate is killed and back: no error for anybody, and nothing is lost', async () => {
  const cluster = await startCluster();
  const fleet = await harness(cluster);
  try {
    await expect.poll(() => cluster.members()).toStrictEqual([1, 2, 3]);
    await Promise.all(['one', 'two'].map((name) => fleet.start(name)));
    const ending = new AbortController();
    const turnIds: string[] = [];
    const submitting: Array<Promise<unknown>> = [];
    const flowing = (async () => {
      while (!ending.signal.aborted) {
        const turnId = `turn-${turnIds.length}`;
        turnIds.push(turnId);
        submitting.push(fleet.engine.submit(turnId, trip(300)));
        await sleep(EVERY_MS);
      }
    })();
    for (const node of NODES) await cluster.restartNode(node);
    ending.abort();
    await flowing;
    await Promise.all(submitting);
    // A node was away for two seconds at least, and each of them once.
    expect(turnIds.length).toBeGreaterThan((NODES.length * 2_000) / EVERY_MS / 2);
    await expectOnce(fleet, turnIds);
  } finally {
    await fleet.close();
  }
});
