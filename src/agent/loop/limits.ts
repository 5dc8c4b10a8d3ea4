import type { RetryPolicy } from '../../contract/policy.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import { checkKeys, checkNumber, given, integer, integerOrInfinity, positiveDuration } from '../../policy/check.ts';

const COUNT_MAX = 1_000_000;
const CHARS_MAX = 1_000_000_000;

/** How often one call may come to the same result before something is done about it. */
export interface LoopLimits {
  /** From this time on the result says that it is a repetition. Default 3. */
  readonly warnAt: number;
  /** This time the call is not made any more. Default 5. */
  readonly blockAt: number;
}

export interface AgentLimits {
  /** Calls that run in one turn; those beyond are answered `limit_exceeded`. Default 10 (AGENT). */
  readonly toolCallsPerTurn: number;
  /** Steps of the model. Default 25. */
  readonly turns: number;
  /** Characters of one result that the model is shown; it reads the rest with the tool `tool_output`. `Infinity`: all. Default 20,000. */
  readonly outputChars: number;
  /** Characters of cut outputs kept for `tool_output`, in all; the output used longest ago makes room. Default 10,000,000. */
  readonly keptChars: number;
  /** The same tool with the same input and the same result. `false`: not looked for. */
  readonly loop: LoopLimits | false;
  /** The whole run. Default: no limit. */
  readonly timeMs: number;
  /** One answer of the model, from asking to its end. Default 600,000, as Anthropic's SDK has it. */
  readonly modelTimeoutMs: number;
}

/** Limits as they are given. */
export type AgentLimitOptions = Partial<Omit<AgentLimits, 'loop'>> & { readonly loop?: Partial<LoopLimits> | false };

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
};

/** As Anthropic's SDK retries: 3 attempts, 0.5 s doubling to 8 s. The total leaves room for answers that take minutes to fail. */
const MODEL_RETRY: RetryPolicy = { strategy: 'exponential', initialDelayMs: 500, maxDelayMs: 8_000, multiplier: 2, jitterPercent: 25, maxAttempts: 3, maxTotalTimeMs: 1_800_000 };

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
  if (loop !== false) {
    checkNumber('limits.loop.warnAt', loop.warnAt, integerOrInfinity(2, COUNT_MAX));
    checkNumber('limits.loop.blockAt', loop.blockAt, integerOrInfinity(2, COUNT_MAX));
  }
  return limits;
}

/** @throws RangeError for an option out of its range */
export const modelRetryPolicy = (options: Partial<RetryPolicy> | false = {}): RetryPolicy => (options === false ? { ...MODEL_RETRY, maxAttempts: 1 } : retryPolicy(options, MODEL_RETRY));
