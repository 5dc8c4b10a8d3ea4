import type { ApprovalEvent, BudgetEvent } from '../../contract/event.ts';
import type { Line } from './fields.ts';

/** What became of a question to a person. A no is no fault of anybody's. */
export const approvalLine = ({ step, approvalId, by, message }: ApprovalEvent): Line => {
  const who = by === undefined ? '' : ` by ${by}`;
  const why = message === undefined ? '' : `: ${message}`;
  return {
    level: step === 'expired' ? 'warn' : 'info',
    event: 'tool_call_approval',
    fields: { state: step, reason: `${approvalId} ${step}${who}${why}` },
  };
};

/** A budget that comes to its end. */
export const budgetLine = ({ step, per, unit, left, limit }: BudgetEvent): Line => ({
  level: 'warn',
  event: 'tool_call_budget',
  fields: { state: step, reason: `${step}: ${left} of ${limit} ${unit} left of the budget of a ${per}` },
});
