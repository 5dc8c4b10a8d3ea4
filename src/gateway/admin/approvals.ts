import * as z from 'zod';
import type { ApprovalRequest } from '../../contract/gate/approval.ts';
import type { AnswerReport, ApprovalsInStore } from '../../gate/answers.ts';
import { readOrderBody } from './order.ts';
import { AdminRefused } from './refusal.ts';

/** What a `GET` of the approvals answers. */
export interface PendingApprovals {
  /** The questions that nobody has answered, oldest first; their inputs without secrets. */
  readonly pending: readonly ApprovalRequest[];
}

interface AnswerBody {
  readonly id: string;
  readonly approved: boolean;
  readonly by?: string;
  readonly reason?: string;
}

const bodySchema: z.ZodType<AnswerBody> = z.strictObject({
  id: z.string().min(1).max(512),
  approved: z.boolean(),
  by: z.string().min(1).max(256).exactOptional(),
  reason: z.string().min(1).max(1_000).exactOptional(),
});

/**
 * Answers the question that a request names.
 * @throws AdminRefused for what is no answer, for a question that is not there, and for one that is answered
 */
export async function answerApproval(
  approvals: ApprovalsInStore,
  request: Request,
  maxBytes: number,
): Promise<AnswerReport> {
  const { data } = bodySchema.safeParse(await readOrderBody(request, maxBytes));
  if (data === undefined)
    throw new AdminRefused('malformed', 'an answer is { id, approved: true | false, by?, reason? }, and nothing else');
  const { id, ...answer } = data;
  const report = await approvals.answer(id, answer);
  if (report.state === 'unknown')
    throw new AdminRefused(
      'unknown_approval',
      'there is no such question, or its time is over; GET lists those there are',
    );
  if (!report.counts) throw new AdminRefused('answered', `it is ${report.state} already`);
  return report;
}
