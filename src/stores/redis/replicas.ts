import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { RedisLink } from './link.ts';
import { numberOf, textOf } from './record.ts';
import { CONFIRM } from './scripts.ts';

/** Waits until replicas have a write. */
export interface RedisReplicas {
  /**
   * @param name the record's
   * @throws `store_unavailable` unless enough replicas have this version of it
   */
  confirm(name: string, version: number): Promise<void>;
}

interface ReplicaOptions {
  readonly replicas: number;
  readonly replicaTimeoutMs: number;
}

interface Waiter {
  readonly name: string;
  readonly version: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const DOING = 'The replicas could not be asked';

const refused = (message: string): ToolExecutionError =>
  new ToolExecutionError('store_unavailable', message, { code: 'not_replicated' });

const tooFew = ({ replicas, replicaTimeoutMs }: ReplicaOptions): string =>
  `Fewer than ${replicas} replicas had the record within ${replicaTimeoutMs} ms, so it could be lost with the ` +
  "primary: look at the replicas, or set durability to 'default'";

/**
 * `WAIT` keeps its whole connection waiting, so one serves all that came meanwhile. It asks about the writes of its own
 * connection only: after a reconnection it says yes to everything. So each record is touched first, on the same
 * connection (`CLIENT ID` before and after tells), which also shows that the server that answers now has the record.
 */
export function redisReplicas(link: RedisLink, { replicas, replicaTimeoutMs }: ReplicaOptions): RedisReplicas {
  let waiting: Waiter[] = [];
  let busy = false;

  const ask = async (group: readonly Waiter[]): Promise<void> => {
    const clientId = (): Promise<unknown> => link.command(DOING, ['CLIENT', 'ID']);
    const before = clientId();
    const touched = Promise.all(group.map(({ name, version }) => link.run(DOING, CONFIRM, [name], [String(version)])));
    const acknowledged = link.command(DOING, ['WAIT', String(replicas), String(replicaTimeoutMs)]);
    const [first, kept, count, last] = await Promise.all([before, touched, acknowledged, clientId()]);
    const enough = numberOf(count) >= replicas && textOf(first) === textOf(last);
    group.forEach(({ resolve, reject }, place) => {
      if (numberOf(kept[place]) !== 1)
        reject(refused('Redis lost the record before a replica had it: after a failover it has to be claimed again'));
      else if (enough) resolve();
      else reject(refused(tooFew({ replicas, replicaTimeoutMs })));
    });
  };

  const next = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        await ask(group);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    busy = false;
  };

  return {
    confirm: (name, version) =>
      new Promise((resolve, reject) => {
        waiting.push({ name, version, resolve, reject });
        if (!busy) void next();
      }),
  };
}
