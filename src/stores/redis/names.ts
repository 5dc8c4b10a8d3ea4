import { sha256 } from '../../policy/key/sha256.ts';

/** 128 bits of a digest: enough that no two keys meet, and a record carries its own key all the same. */
const DIGEST_LENGTH = 32;
/**
 * On a cluster, so many of a digest's first characters choose the slot: 4,096 groups of records, each with a fence of
 * its own.
 */
const GROUP_LENGTH = 3;
/** Sessions whose digests are at hand: a session mostly makes many calls. */
const SESSIONS_MAX = 1_000;

/** A text's place in names. Of its JSON, so that texts with lone surrogates, which UTF-8 does not know, stay apart. */
export const digestOf = (text: string): string => sha256(JSON.stringify(text)).slice(0, DIGEST_LENGTH);

/** What the keys of a store are called in Redis. */
export interface RedisNames {
  /** @param digest of the idempotency key */
  record(digest: string): string;
  of(key: string): string;
  /**
   * Where the last number is kept that was given to a record, which is never removed. Numbers only have to grow for
   * each key: one counter for many takes no memory for keys that are gone, and a script that claims many reads it once.
   * On a cluster a script stays in one slot.
   */
  fence(recordName: string): string;
  tool(tool: string, span: number): string;
  session(sessionKey: string, span: number): string;
}

export function redisNames(prefix: string, cluster: boolean): RedisNames {
  const sessions = new Map<string, string>();
  const sessionDigest = (sessionKey: string): string => {
    let digest = sessions.get(sessionKey);
    if (digest !== undefined) return digest;
    digest = digestOf(sessionKey);
    if (sessions.size === SESSIONS_MAX) sessions.clear();
    sessions.set(sessionKey, digest);
    return digest;
  };
  const record = (digest: string): string => `${prefix}{${digest.slice(0, GROUP_LENGTH)}}:${digest}`;
  return {
    record,
    of: (key) => record(digestOf(key)),
    fence: (recordName) => (cluster ? `${recordName.slice(0, -DIGEST_LENGTH)}fence` : `${prefix}fence`),
    tool: (tool, span) => `${prefix}tool:${span}:${tool}`,
    session: (sessionKey, span) => `${prefix}session:${span}:${sessionDigest(sessionKey)}`,
  };
}
