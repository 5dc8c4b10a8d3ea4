import * as z from 'zod';
import type { ApprovalWhen } from '../gate/approval.ts';
import { approvalWhenSchema } from '../gate/approval-schema.ts';
import type { BudgetPer } from '../gate/budget.ts';
import { COUNT_MAX, count, positiveMs } from './policy-entry.ts';

/** How a file spells a budget. */
export interface BudgetEntry {
  calls?: number;
  usd?: number;
  tokens?: number;
  per: BudgetPer;
  window_ms?: number;
  lease_ms?: number;
  name?: string;
}

const BUDGETS_MAX = 16;
const amount = z.number().nonnegative();

/** The field of what a person has to approve. */
export const needsApprovalField: z.ZodExactOptional<z.ZodType<boolean | ApprovalWhen>> = z
  .union([z.boolean(), approvalWhenSchema], {
    error: 'must be true, false, or a path with one of above, below, equals and unless: { path: usd, above: 100 }',
  })
  .exactOptional()
  .describe(
    'true: a person has to approve each call. { path: usd, above: 100 }: each of which that is so, or is not known.',
  );

/** The field of what one call costs. */
export const costField: z.ZodExactOptional<z.ZodNumber> = z
  .number()
  .nonnegative()
  .exactOptional()
  .describe('What one call costs in US dollars, for budget. Default 0.');

const budget: z.ZodType<BudgetEntry> = z
  .strictObject({
    calls: count(0, COUNT_MAX).exactOptional().describe('So many calls. Default: no limit.'),
    usd: amount.exactOptional().describe('So many US dollars, by the cost of the tools. Default: no limit.'),
    tokens: amount.exactOptional().describe('So many tokens, as tools tell them. Default: no limit.'),
    per: z.enum(['turn', 'session', 'tenant']).describe('Who has such a budget.'),
    window_ms: positiveMs.exactOptional().describe('For so long from the first use on. Default 86400000, a day.'),
    lease_ms: positiveMs
      .exactOptional()
      .describe('How long an attempt that tells nothing of its end is taken to run. Default 120000.'),
    name: z.string().max(256).exactOptional().describe('Tells budgets apart that share a store. Default: none.'),
  })
  .refine(({ calls, usd, tokens }) => (calls ?? usd ?? tokens) !== undefined, {
    error: 'must limit calls, usd or tokens; give one of them',
  });

/** The field of what all calls may use. */
export const budgetField: z.ZodExactOptional<z.ZodType<BudgetEntry[]>> = z
  .array(budget)
  .min(1)
  .max(BUDGETS_MAX)
  .exactOptional()
  .describe('What all calls may use: [{ usd: 0.5, per: turn }]. Of several all have to have something left.');
