import { redisStore } from '../../../src/stores/redis.ts';
import { LONG_MS, claimOf } from '../../../src/testing/store-conformance/check.ts';
import { CLIENTS } from './clients.ts';

/** A process of its own that claims; what it is told stands on its command line, what it got it prints as JSON. */
export interface RacerTask {
  readonly path: string;
  readonly library: number;
  readonly keys: readonly string[];
  /** This process' clock is ahead by so much. */
  readonly aheadMs: number;
  /** Takes over what stands in its way, if the store lets it. */
  readonly greedy: boolean;
}

const task = JSON.parse(process.argv[2] ?? '{}') as RacerTask;
if (task.aheadMs > 0) {
  const RealDate = Date;
  const ahead = (): number => RealDate.now() + task.aheadMs;
  globalThis.Date = new Proxy(RealDate, {
    get: (target, name, receiver) => (name === 'now' ? ahead : (Reflect.get(target, name, receiver) as unknown)),
    construct: (target, args) => new target(...((args.length === 0 ? [ahead()] : args) as [number])),
  });
}
const [, connect] = CLIENTS[task.library % CLIENTS.length] ?? [];
if (connect === undefined) throw new Error('there is no client library');
const { client, close } = await connect({ path: task.path });
const store = redisStore(client);
const owned: Array<readonly [string, number]> = [];
const claim = async (key: string): Promise<void> => {
  const wish = claimOf(key, { requestId: String(process.pid), leaseMs: LONG_MS });
  let answer = await store.setIfNotExists(wish);
  if (!answer.created && task.greedy) answer = await store.setIfNotExists(wish, answer.record.version);
  if (answer.created) owned.push([key, answer.record.version]);
};
const AT_ONCE = 100;
for (let i = 0; i < task.keys.length; i += AT_ONCE) await Promise.all(task.keys.slice(i, i + AT_ONCE).map(claim));
process.stdout.write(JSON.stringify(owned));
await close();
