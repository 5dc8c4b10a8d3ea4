/**
 * What has to let a call pass before it runs, beside breaker and hooks: a person, and a budget. `spillway/gates`. Both
 * are given to `createSpillway`, and keep what they know in its store, so that it holds over processes and restarts.
 */
export { createApprovals, type Approvals, type ApprovalsOptions } from './gate/approvals.ts';
export { approvalsIn, type AnswerReport, type ApprovalsInStore } from './gate/answers.ts';
export { createBudget, type Budget, type BudgetLeft, type BudgetLimits, type BudgetScope } from './gate/budget.ts';
export type {
  ApprovalAnswer,
  ApprovalCause,
  ApprovalRequest,
  ApprovalWhen,
  NeedsApproval,
  NeedsApprovalContext,
} from './contract/gate/approval.ts';
export type { BudgetPer, BudgetUnit, Usage } from './contract/gate/budget.ts';
