import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { redisThrown } from '../../errors/redis.ts';
import type { RedisLink } from './link.ts';
import { claimedOf, freshVersionOf, headOf, listOf, timeOf, type Claimed, type Wish } from './record.ts';
import { CLAIM } from './scripts.ts';

/** One script serves so many: it keeps all others waiting for well under a millisecond. */
const CLAIMS_MAX = 64;
const DOING = 'The call could not be claimed';
/** What fails before it is sent, and what the server refuses: nothing was claimed. */
const REFUSALS: ReadonlySet<string> = new Set(
  (
    'OOM READONLY LOADING MASTERDOWN BUSY MISCONF NOREPLICAS MOVED ASK TRYAGAIN CLUSTERDOWN CROSSSLOT NOAUTH ' +
    'WRONGPASS NOPERM NOPROTO ClientClosedError ClientOfflineError ECONNREFUSED ENOTFOUND'
  ).split(' '),
);

export interface ClaimRequest extends Wish {
  readonly over: number | undefined;
  /** Tells a claim that a client sends twice from two claims. */
  readonly operation: string;
}

interface Waiting {
  readonly request: ClaimRequest;
  readonly resolve: (claimed: Claimed) => void;
  readonly reject: (error: ToolExecutionError) => void;
}

export interface RedisClaimsOptions {
  readonly link: RedisLink;
  readonly cluster: boolean;
  readonly fenceOf: (name: string) => string;
  /** Called before claims are sent. */
  readonly before: () => void;
  /** A claim that was granted after it had failed: nobody will act on it. */
  readonly orphaned: (request: ClaimRequest, version: number) => void;
  /**
   * A claim that failed without a word of the server: whether it was granted is not known, and nobody will act on it.
   */
  readonly unanswered: (request: ClaimRequest) => void;
}

/**
 * Claims of one lease and time to live that are made in one turn of the event loop share a script; on a cluster, where
 * they are in different slots, each has its own.
 */
export function redisClaims({
  link,
  cluster,
  fenceOf,
  before,
  orphaned,
  unanswered,
}: RedisClaimsOptions): (request: ClaimRequest) => Promise<Claimed> {
  let waiting: Waiting[] = [];

  /** Of claims that have their lease and their time to live in common. */
  const send = async (group: readonly Waiting[]): Promise<void> => {
    const [first] = group;
    if (first === undefined) return;
    const keys = [fenceOf(first.request.name)];
    const args = [String(first.request.leaseMs), String(first.request.ttlMs)];
    for (const { request } of group) {
      keys.push(request.name);
      args.push(
        request.over === undefined ? '' : String(request.over),
        `${request.operation}\n${headOf(request.claim)}`,
      );
    }
    const late = (answers: unknown): void => {
      for (const [place, { request }] of group.entries()) {
        const version = freshVersionOf(listOf(answers)[place + 1]);
        if (version !== undefined) orphaned(request, version);
      }
    };
    const answers = listOf(await link.run(DOING, CLAIM, keys, args, late));
    const atMs = timeOf(answers[0]);
    for (const [place, { request, resolve, reject }] of group.entries()) {
      const answer = answers[place + 1];
      try {
        if (typeof answer === 'string' && answer.startsWith('!'))
          throw redisThrown({ message: answer.slice(1) }, DOING);
        resolve(claimedOf(answer, atMs, request));
      } catch (error) {
        reject(error as ToolExecutionError);
      }
    }
  };

  const flush = (): void => {
    const all = waiting;
    waiting = [];
    before();
    const size = cluster ? 1 : CLAIMS_MAX;
    for (const alike of Map.groupBy(all, ({ request: { leaseMs, ttlMs } }) => `${leaseMs} ${ttlMs}`).values()) {
      for (let at = 0; at < alike.length; at += size) {
        const group = alike.slice(at, at + size);
        send(group).catch((error: unknown) => {
          const failed = error as ToolExecutionError;
          const refused = REFUSALS.has(failed.code ?? '');
          for (const { request, reject } of group) {
            reject(failed);
            if (!refused) unanswered(request);
          }
        });
      }
    }
  };

  return (request) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) queueMicrotask(flush);
      waiting.push({ request, resolve, reject });
    });
}
