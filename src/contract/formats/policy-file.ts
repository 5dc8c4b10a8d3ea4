import * as z from 'zod';
import type { Effects } from '../policy.ts';
import {
  COUNT_MAX,
  breakerField,
  count,
  positiveMs,
  retryEntrySchema,
  type BreakerPolicyEntry,
  type RetryEntry,
} from './policy-entry.ts';

/** What a policy file says of one tool, or of all. */
export interface ToolPolicyEntry {
  /**
   * Hard limit on one attempt, in milliseconds. Left out, as elsewhere here: what it was, or the default of a layer.
   */
  timeout_ms?: number;
  /** Limit on an attempt that makes no progress, in milliseconds. */
  idle_timeout_ms?: number;
  /** How failed attempts are repeated. */
  retry_policy?: RetryEntry;
  /** When the tool is given a rest; `false`: never. */
  circuit_breaker?: BreakerPolicyEntry | false;
  /** Tools to try when it fails for good, in order. */
  alternatives?: string[];
  /** What the tool does to the world. */
  effects?: Effects;
  /** Its resource refuses a repeated effect by the key of the call. */
  enforces_key?: boolean;
  /** An uncertain failure is never retried. */
  safety_critical?: boolean;
}

/** How a file spells a retry budget. */
export interface RetryBudgetEntry {
  /** Retries for each call started in the window. Default 0.2. */
  ratio?: number;
  /** Retries beside those, a second. Default 10. */
  min_per_second?: number;
  /** How far back is counted, in milliseconds. Default 10,000. */
  window_ms?: number;
}

/** A policy file: what `--policy` of `spillway replay` and `spillway simulate` reads. */
export interface PolicyFile {
  /** A text for people: what the policy is called in tables. */
  name?: string;
  /** The retries that all calls share; `off`: no limit. */
  retry_budget?: RetryBudgetEntry | 'off';
  /** For every tool that does not say otherwise. */
  defaults?: ToolPolicyEntry;
  /** By the names of the tools. */
  tools?: Record<string, ToolPolicyEntry>;
}

const toolName = z.string().min(1).max(256);

const toolPolicyEntry: z.ZodType<ToolPolicyEntry> = z.strictObject({
  timeout_ms: positiveMs.exactOptional().describe('Hard limit on one attempt.'),
  idle_timeout_ms: positiveMs.exactOptional().describe('Limit on an attempt that makes no progress.'),
  retry_policy: retryEntrySchema.exactOptional(),
  circuit_breaker: breakerField,
  alternatives: z.array(toolName).max(100).exactOptional().describe('Tools to try when it fails for good, in order.'),
  effects: z.enum(['read', 'mutating']).exactOptional().describe('What the tool does to the world.'),
  enforces_key: z.boolean().exactOptional().describe('Its resource refuses a repeated effect by the call’s key.'),
  safety_critical: z.boolean().exactOptional().describe('An uncertain failure is never retried.'),
});

/** Checks a policy file; the package's `schemas/policy.schema.json` is made from it. */
export const policyFileSchema: z.ZodType<PolicyFile> = z
  .strictObject({
    name: z.string().min(1).max(60).exactOptional().describe('What the policy is called in tables.'),
    retry_budget: z
      .union([
        z.strictObject({
          ratio: z.number().min(0).max(1000).exactOptional().describe('Retries for each call started. Default 0.2.'),
          min_per_second: z.number().min(0).max(COUNT_MAX).exactOptional().describe('Beside those. Default 10.'),
          window_ms: count(1, 3_600_000).exactOptional().describe('How far back is counted. Default 10000.'),
        }),
        z.literal('off'),
      ])
      .exactOptional()
      .describe('The retries that all calls share. off: no limit.'),
    defaults: toolPolicyEntry.exactOptional().describe('For every tool that does not say otherwise.'),
    tools: z.record(toolName, toolPolicyEntry).exactOptional().describe('By the tools’ names.'),
  })
  .meta({ title: 'spillway policy', description: 'How tools are guarded, for `spillway replay` and `simulate`.' });
