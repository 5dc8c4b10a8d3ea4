import type { StoreReport } from '../../contract/store.ts';
import type { RedisLink } from './link.ts';
import { listOf, textOf } from './record.ts';

export interface ReportFacts {
  readonly cluster: boolean;
  /** How many replicas are waited for; 0 for none. */
  readonly replicas: number;
  /** Index entries that could not be written. */
  readonly indexLost: number;
}

const DOING = 'Redis could not be asked for its settings';

/** Lines `name:value` of `INFO`. */
const linesOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split('\n').flatMap((line) => {
      const colon = line.indexOf(':');
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()] as const];
    }),
  );

const attempt = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    return await work;
  } catch {
    return undefined;
  }
};

/** `INFO` and, where it is allowed, `CONFIG GET`; a managed Redis mostly forbids the second. */
async function settings(
  link: RedisLink,
): Promise<{ info: ReadonlyMap<string, string> | undefined; config: ReadonlyMap<string, string> | undefined }> {
  const names = ['appendfsync', 'save'];
  const [info, ...values] = await Promise.all([
    link.command(DOING, ['INFO']),
    ...names.map((name) => attempt(link.command(DOING, ['CONFIG', 'GET', name]))),
  ]);
  const text = textOf(info);
  // A list of name and value in RESP 2, a map in RESP 3; a forbidden one gives nothing.
  const config = names.map((name, place) => {
    const answer = values[place];
    const value = Array.isArray(answer)
      ? listOf(answer)[1]
      : answer instanceof Map
        ? (answer.get(name) as unknown)
        : (answer as Record<string, unknown> | undefined)?.[name];
    return [name, textOf(value)] as const;
  });
  const known = config.every(([, value]) => value !== undefined);
  return {
    info: text === undefined ? undefined : linesOf(text),
    config: known ? new Map(config.map(([name, value]) => [name, value ?? ''])) : undefined,
  };
}

/** How durable what Redis acknowledges is, from what it says itself. */
export async function redisReport(
  link: RedisLink,
  { cluster, replicas, indexLost }: ReportFacts,
): Promise<StoreReport> {
  const { info, config } = await settings(link);
  const warnings: string[] = [];
  const told = (name: string): string => info?.get(name) ?? '';
  const log = told('aof_enabled') === '1';

  if (told('role') === 'slave')
    warnings.push('This Redis is a replica: it refuses every claim. Connect to the primary.');
  const evicts =
    told('maxmemory') !== '0' && told('maxmemory_policy') !== '' && told('maxmemory_policy') !== 'noeviction';
  if (evicts) {
    warnings.push(
      `Redis may evict records (maxmemory-policy ${told('maxmemory_policy')}): a call whose record is evicted runs twice. Set maxmemory-policy noeviction.`,
    );
  }
  if (info !== undefined && !log) {
    const snapshots = config !== undefined && config.get('save') !== '';
    const lost = snapshots ? 'since the last snapshot' : 'there was';
    warnings.push(
      `Redis keeps no append-only file, as is its default: a kill or a crash loses every claim and result ${lost}, and calls whose claim is lost run again. Set appendonly yes.`,
    );
  }
  if (log && config?.get('appendfsync') === 'everysec')
    warnings.push(
      'Redis writes to the disk once a second (appendfsync everysec): a power loss, or a kill while the disk is slow, loses up to two seconds. Set appendfsync always for more.',
    );
  if (log && config?.get('appendfsync') === 'no')
    warnings.push(
      'Redis leaves writing to the disk to the system (appendfsync no): a power loss loses up to half a minute. Set appendfsync always for more.',
    );
  if (config === undefined)
    warnings.push(
      'Redis does not tell its settings (CONFIG is forbidden, as at most managed services): how durable it is is not known. Look at what the service promises for a failover.',
    );
  const connected = Number(told('connected_slaves') || 0);
  if (connected < replicas)
    warnings.push(
      `Redis has ${connected} replicas and ${replicas} are waited for: every claim is refused until they are there.`,
    );
  if (replicas === 0 && connected > 0)
    warnings.push(
      "Replicas follow on their own time: a failover forgets the last claims. Set durability to 'replicated' to wait for them.",
    );
  if (cluster) warnings.push('One node of the cluster was asked; the others may be set up differently.');
  if (indexLost > 0)
    warnings.push(`${indexLost} writes to the lists by tool and session failed: these lists may lack records.`);

  const kept =
    replicas > 0 && connected >= replicas ? 'replicated' : config === undefined ? 'unknown' : log ? 'disk' : 'memory';
  const weak = evicts || connected < replicas || told('role') === 'slave' || ['unknown', 'memory'].includes(kept);
  return { kind: cluster ? 'redis cluster' : 'redis', durability: kept, shared: true, weak, warnings };
}
