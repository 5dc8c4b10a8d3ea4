import type { RetryPolicy } from '../../contract/policy.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import { checkKeys, checkNumber, given, integer, integerOrInfinity, positiveDuration } from '../../policy/check.ts';

const COUNT_MAX = 1_000_000;
const CHARS_MAX = 1_000_000_000;
const TOKENS_MAX = 1_000_000_000_000;

/** How often one call may come to the same result before something is done about it. */
export interface LoopLimits {
  /**
   * From this time on the result says that it is a repetition: an integer from 2, or `Infinity` for never. Default 3.
   */
  readonly warnAt: number;
  /** From this time on the call is refused as `blocked`: an integer from 2, or `Infinity` for never. Default 5. */
  readonly blockAt: number;
}

/** How much a run may do and show; each limit is checked, and a `RangeError` names one that is out of its range. */
export interface AgentLimits {
  /**
   * Calls that run in one turn; further ones are answered with `limit_exceeded`. 1 to 1,000,000, default 10 (AGENT).
   */
  readonly toolCallsPerTurn: number;
  /** How many times the model is asked. 1 to 1,000,000, default 25. */
  readonly turns: number;
  /**
   * Characters of one result that the model is shown; it reads the rest with the tool `tool_output`. `Infinity` shows
   * all. Default 20,000.
   */
  readonly outputChars: number;
  /**
   * Characters of cut outputs that are kept for `tool_output`, all together; the output used longest ago makes room.
   * Default 10,000,000.
   */
  readonly keptChars: number;
  /**
   * When a call that repeats itself, with the same tool, input and result, is remarked on and refused. `false`: never.
   * Default: `warnAt` 3, `blockAt` 5.
   */
  readonly loop: LoopLimits | false;
  /**
   * How long the whole run may take, in milliseconds; at its end running tools settle and the run ends with the reason
   * `time`. Default `Infinity`.
   */
  readonly timeMs: number;
  /**
   * How long one answer of the model may take from asking to its end, in milliseconds. Default 600,000, as Anthropic's
   * SDK has it.
   */
  readonly modelTimeoutMs: number;
  /**
   * Tokens of the whole run, those sent and those written, as the model reports them, answers that broke off included.
   * Once they are used the model is not asked again, and the run ends with the reason `budget`. A model that reports no
   * usage uses none. Default `Infinity`.
   */
  readonly tokens: number;
  /**
   * What the whole run may cost, in US dollars, by the option `price`, without which it is refused. It ends the run as
   * `tokens` does. The answer that crosses the line is paid for: nobody knows its length before. Default `Infinity`.
   */
  readonly usd: number;
}

/** Limits as a caller gives them: what is left out has its default. */
export type AgentLimitOptions = Partial<Omit<AgentLimits, 'loop'>> & {
  /** When a call that repeats itself is remarked on and refused; `false`: never. Default: `warnAt` 3, `blockAt` 5. */
  readonly loop?: Partial<LoopLimits> | false;
};

/** Characters of one result that a model is shown by default. */
export const OUTPUT_CHARS = 20_000;

const DEFAULTS: AgentLimits = {
  toolCallsPerTurn: 10,
  turns: 25,
  outputChars: OUTPUT_CHARS,
  keptChars: 10_000_000,
  loop: { warnAt: 3, blockAt: 5 },
  timeMs: Infinity,
  modelTimeoutMs: 600_000,
  tokens: Infinity,
  usd: Infinity,
};

/**
 * As Anthropic's SDK retries: 3 attempts, 0.5 s doubling to 8 s. The total leaves room for answers that take minutes to
 * fail.
 */
export const MODEL_RETRY: RetryPolicy = {
  strategy: 'exponential',
  initialDelayMs: 500,
  maxDelayMs: 8_000,
  multiplier: 2,
  jitterPercent: 25,
  maxAttempts: 3,
  maxTotalTimeMs: 1_800_000,
};

/** @throws RangeError for a limit out of its range */
export function agentLimits(options: AgentLimitOptions = {}): AgentLimits {
  checkKeys('limits', options, Object.keys(DEFAULTS));
  const chosen = given(options);
  if (typeof chosen.loop === 'object') checkKeys('limits.loop', chosen.loop, ['warnAt', 'blockAt']);
  const loop = chosen.loop === false ? (false as const) : { ...(DEFAULTS.loop as LoopLimits), ...given(chosen.loop) };
  const limits = { ...DEFAULTS, ...chosen, loop };
  checkNumber('limits.toolCallsPerTurn', limits.toolCallsPerTurn, integer(1, COUNT_MAX));
  checkNumber('limits.turns', limits.turns, integer(1, COUNT_MAX));
  checkNumber('limits.outputChars', limits.outputChars, integerOrInfinity(1, CHARS_MAX));
  checkNumber('limits.keptChars', limits.keptChars, integer(0, CHARS_MAX));
  if (limits.timeMs !== Infinity) checkNumber('limits.timeMs', limits.timeMs, positiveDuration);
  checkNumber('limits.modelTimeoutMs', limits.modelTimeoutMs, positiveDuration);
  checkNumber('limits.tokens', limits.tokens, integerOrInfinity(1, TOKENS_MAX));
  checkNumber('limits.usd', limits.usd, { holds: (usd) => usd > 0, rule: 'a number above 0, or Infinity' });
  if (loop !== false) {
    checkNumber('limits.loop.warnAt', loop.warnAt, integerOrInfinity(2, COUNT_MAX));
    checkNumber('limits.loop.blockAt', loop.blockAt, integerOrInfinity(2, COUNT_MAX));
  }
  return limits;
}

/** @throws RangeError for an option out of its range */
export const modelRetryPolicy = (options: Partial<RetryPolicy> | false = {}): RetryPolicy =>
  options === false ? { ...MODEL_RETRY, maxAttempts: 1 } : retryPolicy(options, MODEL_RETRY);
