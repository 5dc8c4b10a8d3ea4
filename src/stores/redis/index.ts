import type { RedisLink } from './link.ts';
import { INDEX } from './scripts.ts';

/** Sets are made anew so often, and die as a whole: an entry is never looked for to be removed. */
export const SPAN_MS: number = 12 * 3_600_000;
/**
 * From the end of its span a set is kept for longer than a result is by default, so that an outcome seldom has
 * to lengthen it.
 */
const KEEP_MS = SPAN_MS + 25 * 3_600_000;
const DEFAULT_TTL_MAX_MS = 24 * 3_600_000;
/** A list looks back so far; records that are kept longer leave it then. */
export const LOOK_BACK_MS: number = 31 * 24 * 3_600_000;
/** So many members go in one command: a script keeps all others waiting. */
const MEMBERS_MAX = 1_000;

/**
 * Sets of records by tool and by session. They live in other slots than the records, so no script can keep both.
 * Instead an entry is written before its record, on the same connection: a set may name records that are not there,
 * which its reader sees, but lacks none that is.
 */
export interface RedisIndex {
  add(set: string, member: string): void;
  /** Sends what was added. */
  flush(): void;
  /** Keeps an entry as long as its record. */
  keep(sets: readonly string[], member: string, ttlMs: number): Promise<void>;
  /** Commands that failed. */
  readonly lost: number;
}

type Batch = Map<string, string[]>;

/** Cut so that none is too long; on a cluster, one set each. */
function* commandsOf(batch: Batch, cluster: boolean): Generator<Batch> {
  let part: Batch = new Map();
  let size = 0;
  for (const [set, members] of batch) {
    for (let at = 0; at < members.length; at += MEMBERS_MAX) {
      const some = members.slice(at, at + MEMBERS_MAX);
      if (size > 0 && (cluster || part.has(set) || size + some.length > MEMBERS_MAX)) {
        yield part;
        part = new Map();
        size = 0;
      }
      part.set(set, some);
      size += some.length;
    }
  }
  if (size > 0) yield part;
}

export function redisIndex(link: RedisLink, cluster: boolean): RedisIndex {
  let batch: Batch = new Map();
  let lost = 0;

  const write = async (part: Batch, keepMs: number): Promise<void> => {
    const args = [...part.values()].flatMap((members) => [String(members.length), ...members]);
    try {
      await link.run(
        'The lists by tool and session could not be written',
        INDEX,
        [...part.keys()],
        [String(keepMs), ...args],
      );
    } catch {
      // A list is for looking, no call depends on it. The report tells.
      lost++;
    }
  };

  return {
    add: (set, member) => {
      const members = batch.get(set);
      if (members === undefined) batch.set(set, [member]);
      else members.push(member);
    },
    flush: () => {
      for (const part of commandsOf(batch, cluster)) void write(part, KEEP_MS);
      batch = new Map();
    },
    keep: async (sets, member, ttlMs) => {
      if (ttlMs <= DEFAULT_TTL_MAX_MS) return;
      const long = new Map(sets.map((set) => [set, [member]]));
      await Promise.all(
        Array.from(commandsOf(long, cluster), (part) => write(part, Math.min(ttlMs, LOOK_BACK_MS) + SPAN_MS)),
      );
    },
    get lost() {
      return lost;
    },
  };
}
