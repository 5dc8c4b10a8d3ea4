import * as z from 'zod';
import type { Classification } from '../error-kind.ts';

/** How a file spells a retry policy: the seeds' words. */
export interface RetryEntry {
  strategy?: 'exponential' | 'exponential_backoff' | 'full_jitter' | 'decorrelated' | 'constant';
  initial_delay_ms?: number;
  max_delay_ms?: number;
  multiplier?: number;
  jitter_percent?: number;
  max_attempts?: number;
  max_total_time_ms?: number;
}

/** How a file spells a breaker. */
export interface BreakerPolicyEntry {
  failure_threshold?: number | 'off';
  failure_rate?: number | 'off';
  window_size?: number;
  window_ms?: number;
  minimum_calls?: number;
  timeout_ms?: number;
  cooldown_multiplier?: number;
  cooldown_max_ms?: number;
  probes?: number;
  success_threshold?: number;
  half_open_timeout_ms?: number;
  ramp_ms?: number;
  slow_call_ms?: number;
  initial_state?: 'closed' | 'forced_open' | 'disabled';
}

/** The most that anything in a file is counted to. */
export const COUNT_MAX = 1_000_000;
export const count = (min: number, max: number): z.ZodNumber => z.number().int().min(min).max(max);
export const durationMs: z.ZodNumber = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER);
export const positiveMs: z.ZodNumber = z.number().positive().max(Number.MAX_SAFE_INTEGER);

export const retryEntrySchema: z.ZodType<RetryEntry> = z
  .strictObject({
    strategy: z
      .enum(['exponential', 'exponential_backoff', 'full_jitter', 'decorrelated', 'constant'])
      .exactOptional()
      .describe('How delays grow. exponential_backoff is another spelling of exponential.'),
    initial_delay_ms: durationMs.exactOptional().describe('The delay before the first retry. Default 100.'),
    max_delay_ms: durationMs.exactOptional().describe('The cap on a delay, before jitter. Default 800.'),
    multiplier: z.number().min(1).max(1000).exactOptional().describe('What a delay grows by. Default 2.'),
    jitter_percent: z
      .number()
      .min(0)
      .max(100)
      .exactOptional()
      .describe('Spread around a delay: 10 means 90 % to 110 %. Default 10.'),
    max_attempts: count(1, COUNT_MAX).exactOptional().describe('Attempts in all, the first one included. Default 5.'),
    max_total_time_ms: durationMs
      .exactOptional()
      .describe(
        'No attempt starts this long after the first did, or later. Default 2000: below timeout_ms, a ' +
          'timeout is never retried.',
      ),
  })
  .describe('How often, and how patiently, a failed call is repeated.');

const orOff = (rule: z.ZodNumber, words: string): z.ZodType<number | 'off'> =>
  z.union([rule, z.literal('off')], { error: `must be ${words}, or off` });

export const breakerEntrySchema: z.ZodType<BreakerPolicyEntry> = z.strictObject({
  failure_threshold: orOff(count(1, COUNT_MAX), `an integer from 1 to ${COUNT_MAX}`)
    .exactOptional()
    .describe('Consecutive failures that open it. Default 5.'),
  failure_rate: orOff(z.number().positive().max(1), 'a number above 0 and up to 1')
    .exactOptional()
    .describe('Share of failures among the last outcomes that opens it. Default 0.5.'),
  window_size: count(1, COUNT_MAX)
    .exactOptional()
    .describe('How many of the last outcomes the rate looks at. Default 20.'),
  window_ms: positiveMs.exactOptional().describe('Older outcomes count for neither rule. Default 120000.'),
  minimum_calls: count(1, COUNT_MAX)
    .exactOptional()
    .describe('Outcomes the rate needs. Default 10, or window_size if that is less.'),
  timeout_ms: durationMs.exactOptional().describe('How long it stays open. Default 30000.'),
  cooldown_multiplier: z
    .number()
    .min(1)
    .max(1000)
    .exactOptional()
    .describe('timeout_ms grows by this each time a probe fails. Default 1.'),
  cooldown_max_ms: durationMs.exactOptional().describe('The cap on that growth. Default 300000.'),
  probes: count(1, COUNT_MAX).exactOptional().describe('Calls admitted at a time while half-open. Default 1.'),
  success_threshold: count(1, COUNT_MAX).exactOptional().describe('Consecutive good probes that close it. Default 2.'),
  half_open_timeout_ms: positiveMs
    .exactOptional()
    .describe('How long it waits for its probes. Default the greater of timeout_ms and 60000.'),
  ramp_ms: durationMs.exactOptional().describe('After closing, admit a growing share over this time. Default 0.'),
  slow_call_ms: durationMs.exactOptional().describe('Slower successes count as failures for the rate. Default: none.'),
  initial_state: z.enum(['closed', 'forced_open', 'disabled']).exactOptional().describe('Default closed.'),
});

/** The field of a tool's breaker. It does without one where it says `false`. */
export const breakerField: z.ZodExactOptional<z.ZodType<BreakerPolicyEntry | false>> = z
  .union([breakerEntrySchema, z.literal(false)], { error: 'must be a mapping, or false' })
  .exactOptional()
  .describe('When the tool is given a rest. false: never.');

/** The field of a tool's own classes of failures. */
export const classificationField: z.ZodExactOptional<z.ZodType<Record<string, Classification>>> = z
  .record(z.string().min(1).max(128), z.enum(['transient', 'permanent']))
  .exactOptional()
  .describe('A status, code or error kind and its class here: { "503": permanent }.');
