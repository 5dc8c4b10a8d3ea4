import type { DedupeRecord } from '../../contract/store.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import type { RedisLink } from './link.ts';
import type { RedisNames } from './names.ts';
import { DAMAGED, listOf, recordOf, textOf } from './record.ts';
import { GET } from './scripts.ts';

const DOING = 'The records could not be listed';
const PAGE = 500;

/**
 * The records that sets of an index name, as they are when they are come to. A set may name what is gone and what moved
 * to another, so each is read. One that is damaged is left out: whoever asks for it hears of it, and it does not hide
 * the others.
 */
export async function* listed(
  link: RedisLink,
  sets: readonly string[],
  names: RedisNames,
): AsyncGenerator<DedupeRecord> {
  const read = async (member: string): Promise<DedupeRecord | undefined> => {
    const name = names.record(member);
    try {
      const value = listOf(await link.run(DOING, GET, [name], []))[1];
      if (value === undefined || value === null) return undefined;
      const record = recordOf(value, undefined, name);
      return names.of(record.key) === name ? record : undefined;
    } catch (error) {
      if (isToolExecutionError(error) && error.code === DAMAGED) return undefined;
      throw error;
    }
  };
  const scan = (set: string, cursor: string): Promise<unknown> =>
    link.command(DOING, ['SSCAN', set, cursor, 'COUNT', String(PAGE)], set);
  // A record may be in several sets, and a scan may show a member twice.
  const seen = new Set<string>();
  // Most of the sets are not there: the first pages are asked for all at once.
  const firsts = await Promise.all(sets.map((set) => scan(set, '0')));
  for (const [place, set] of sets.entries()) {
    for (let page = listOf(firsts[place]); ;) {
      const fresh = listOf(page[1])
        .map((member) => textOf(member) ?? '')
        .filter((member) => !seen.has(member));
      for (const member of fresh) seen.add(member);
      for (const record of await Promise.all([...new Set(fresh)].map(read))) if (record !== undefined) yield record;
      const cursor = textOf(page[0]) ?? '0';
      if (cursor === '0') break;
      page = listOf(await scan(set, cursor));
    }
  }
}
