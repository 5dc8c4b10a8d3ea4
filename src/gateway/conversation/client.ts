import { firstValueFrom, map } from 'rxjs';
import type { BreakerOptions, RetryPolicy } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { createBreaker } from '../../operators/breaker/breaker.ts';
import { guard } from '../../operators/guard.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import { checkKeys, checkNumber, positiveDuration } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import type { ConversationRecord, ConversationState } from './conversation.ts';

/** How one kind of operation is guarded; the fields are those of a tool's policy. */
export interface StatePolicy {
  /** How long one attempt may take, in milliseconds. Default 2,000. */
  readonly timeoutMs?: number;
  /** What differs from the operation's own default. */
  readonly retry?: Partial<RetryPolicy>;
}

/** How operations on a conversation state are guarded. */
export interface ConversationClientOptions {
  /** How retrieving is guarded. Default: 2 retries after 50 and 100 ms, +-10 % (PROXY: short backoff). */
  readonly retrieve?: StatePolicy;
  /** How storing is guarded. Default: 2 retries after 100 and 400 ms, +-10 % (PROXY: exponential). */
  readonly store?: StatePolicy;
  /**
   * A breaker, shared by both operations, that refuses at once while the state keeps failing. Default `false`: each
   * request asks the state.
   */
  readonly breaker?: BreakerOptions | false;
  /** Clock, timers and randomness of the retries. Default: the machine's. */
  readonly runtime?: Runtime;
}

const TIMEOUT_MS = 2_000;
const COMMON = { strategy: 'exponential', jitterPercent: 10, maxAttempts: 3, maxTotalTimeMs: 10_000 } as const;
const RETRIEVE: RetryPolicy = { ...COMMON, initialDelayMs: 50, maxDelayMs: 200, multiplier: 2 };
const STORE: RetryPolicy = { ...COMMON, initialDelayMs: 100, maxDelayMs: 1_000, multiplier: 4 };

/** A conversation state whose operations are retried. */
export interface ConversationClient {
  /** Keeps a record under a key. Rejects with the last attempt's error. */
  store(key: string, record: ConversationRecord): Promise<void>;
  /** The records of those keys that have one. Rejects with the last attempt's error. */
  retrieve(keys: readonly string[]): Promise<ReadonlyMap<string, ConversationRecord>>;
}

/**
 * Guards a conversation state with what guards any work: a timeout for each attempt, a retry with backoff, on request a
 * breaker.
 *
 * @param state the state
 * @param options policies
 * @returns the state; each promise rejects with the last attempt's error
 * @throws RangeError for an option out of its range
 *
 * @example
 * const client = conversationClient(memoryConversationState(), { retrieve: { timeoutMs: 500 } });
 */
export function conversationClient(
  state: ConversationState,
  options: ConversationClientOptions = {},
): ConversationClient {
  checkKeys('conversationClient', options, ['retrieve', 'store', 'breaker', 'runtime']);
  const { runtime = liveRuntime, breaker = false } = options;
  const shared = breaker === false ? undefined : { breaker: createBreaker(breaker, runtime) };
  const guarded = (
    name: string,
    { timeoutMs = TIMEOUT_MS, retry = {}, ...rest }: StatePolicy,
    base: RetryPolicy,
  ): (<T>(start: () => T | PromiseLike<T>) => Promise<T>) => {
    checkKeys(name, rest, ['timeoutMs', 'retry']);
    checkNumber(`${name}.timeoutMs`, timeoutMs, positiveDuration);
    const attempts = guard({ timeoutMs, ...shared, retry: retryPolicy(retry, base) }, runtime);
    // In a box: an answer that is a list would be taken for a stream.
    return <T>(start: () => T | PromiseLike<T>): Promise<T> =>
      firstValueFrom(attempts.from(async () => ({ answer: await start() })).pipe(map(({ answer }) => answer)));
  };
  const retrieve = guarded('retrieve', options.retrieve ?? {}, RETRIEVE);
  const store = guarded('store', options.store ?? {}, STORE);
  return {
    store: (key, record) => store(() => state.store(key, record)),
    retrieve: (keys) => retrieve(() => state.retrieve(keys)),
  };
}
