import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../simulation/dice.ts';
import type { RedisServer } from '../stores/redis/server.ts';
import type { Span } from './checker.ts';
import type { Proxy } from './proxy.ts';
import type { Workers } from './workers.ts';

export interface FaultsOptions {
  readonly seed: number;
  readonly server: RedisServer;
  readonly proxy: Proxy;
  readonly workers: Workers;
  readonly leaseMs: number;
}

export interface Faults {
  readonly outages: readonly Span[];
  readonly counts: Readonly<Record<'kills' | 'pauses' | 'restarts', number>>;
  /** No further faults; resolves when the last one is over. */
  end(): Promise<void>;
}

const WEATHERS = ['calm', 'calm', 'slow', 'sliced', 'black_hole', 'cut'] as const;

/** Three troubles beside each other, each at its own pace: processes, the network, Redis. */
export function startFaults({ seed, server, proxy, workers, leaseMs }: FaultsOptions): Faults {
  const outages: Span[] = [];
  const counts = { kills: 0, pauses: 0, restarts: 0 };
  const over = new AbortController();
  const rest = async (ms: number): Promise<void> => {
    await sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  };
  const going = (): boolean => !over.signal.aborted;

  const processes = async (): Promise<void> => {
    const dice = new Dice(seed, 1);
    while (going()) {
      await rest(dice.int(300, 1_500));
      if (!going()) return;
      const place = dice.int(0, workers.count - 1);
      if (dice.chance(0.4)) {
        if (workers.kill(place)) counts.kills++;
        continue;
      }
      if (!workers.freeze(place)) continue;
      counts.pauses++;
      await rest(dice.int(leaseMs * 1.2, leaseMs * 3));
      workers.thaw(place);
    }
  };
  const network = async (): Promise<void> => {
    const dice = new Dice(seed, 2);
    while (going()) {
      proxy.become(dice.pick(WEATHERS));
      await rest(dice.int(200, 1_500));
    }
    proxy.become('calm');
  };
  const redis = async (): Promise<void> => {
    const dice = new Dice(seed, 3);
    while (going()) {
      await rest(dice.int(5_000, 9_000));
      if (!going()) return;
      counts.restarts++;
      const fromMs = Date.now();
      await server.kill('SIGKILL');
      await sleep(dice.int(50, 800));
      await server.start();
      outages.push({ fromMs, toMs: Date.now() });
    }
  };
  const all = Promise.all([processes(), network(), redis()]);
  return {
    outages,
    counts,
    end: async () => {
      over.abort();
      await all;
      for (let place = 0; place < workers.count; place++) workers.thaw(place);
    },
  };
}
