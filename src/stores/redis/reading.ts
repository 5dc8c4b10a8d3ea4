import type { DedupeReading } from '../../contract/store.ts';
import { isToolExecutionError } from '../../contract/tool-error.ts';
import { mayClaim } from '../record-life.ts';
import type { ClaimRequest } from './claims.ts';
import type { RedisLink } from './link.ts';
import { listOf, recordOf, timeOf, type Claimed } from './record.ts';
import { GET } from './scripts.ts';

/** What stands under a key, by Redis' own clock. */
export const readRecord = async (link: RedisLink, key: string, name: string): Promise<DedupeReading | undefined> => {
  const [now, value] = listOf(await link.run('The record could not be read', GET, [name], []));
  const atMs = timeOf(now);
  return value === undefined || value === null ? undefined : { record: recordOf(value, key, name), atMs };
};

/** Redis takes no writes; what it holds it tells all the same. */
const UNWRITABLE: ReadonlySet<string | undefined> = new Set(['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS']);

/**
 * What stands in the way of a claim that Redis did not write: a call that runs is waited for, and what is recorded is
 * not done again. The refusal itself where nothing does, and where that may be this very claim, which was sent twice.
 */
export const standingInstead = async (
  link: RedisLink,
  { claim, name, over }: ClaimRequest,
  refusal: unknown,
): Promise<Claimed> => {
  if (!isToolExecutionError(refusal) || !UNWRITABLE.has(refusal.code)) throw refusal;
  const reading = await readRecord(link, claim.key, name).catch(() => undefined);
  const isOwn = reading?.record.state === 'inflight' && reading.record.request.requestId === claim.request.requestId;
  if (reading === undefined || isOwn || mayClaim(reading.record, over, reading.atMs)) throw refusal;
  return { ...reading, created: false };
};
