import type { ApprovalAnswer, ApprovalRecord, ApprovalRequest } from '../../contract/gate/approval.ts';
import { given } from '../check.ts';
import { approvalRecordSchema } from '../../contract/gate/approval-schema.ts';

const BY_MAX = 256;
const REASON_MAX = 1_000;

/** What a person said, once it is known to be an answer. */
export interface ReadAnswer {
  readonly approved: boolean;
  readonly by?: string;
  readonly reason?: string;
}

const isText = (value: unknown, max: number): boolean =>
  value === undefined || (typeof value === 'string' && value !== '' && value.length <= max);

/** An answer as it can be relied on; `undefined` for whatever is none: nothing is approved by a misunderstanding. */
export const readAnswer = (answer: unknown): ReadAnswer | undefined => {
  if (typeof answer === 'boolean') return { approved: answer };
  if (typeof answer !== 'object' || answer === null) return undefined;
  try {
    const { approved, by, reason, ...rest } = answer as Exclude<ApprovalAnswer, boolean>;
    if (typeof approved !== 'boolean' || Object.keys(rest).length > 0) return undefined;
    if (!isText(by, BY_MAX) || !isText(reason, REASON_MAX)) return undefined;
    return { approved, ...given({ by, reason }) };
  } catch {
    return undefined;
  }
};

/** The question in a record's text; `undefined` in one that cannot be read. */
export const approvalIn = (payload: string): ApprovalRecord | undefined => {
  try {
    return approvalRecordSchema.parse(JSON.parse(payload));
  } catch {
    return undefined;
  }
};

/** How a call that needs an approval stands. */
export type ApprovalStanding =
  /** Nobody was asked, or what was asked is over: ask. */
  | { readonly act: 'ask' }
  /** What it waited for was used by another call, or withdrawn: look whether there is something to ask yet. */
  | { readonly act: 'gone' }
  | { readonly act: 'wait'; readonly record: ApprovalRecord }
  | { readonly act: 'pass'; readonly record: ApprovalRecord }
  | { readonly act: 'refuse'; readonly because: 'denied' | 'expired'; readonly record: ApprovalRecord };

/**
 * How a call stands by the record of its question.
 *
 * @param record as it was read; `undefined` where there is none, or it has expired
 * @param own the question that this call has waited for so far
 */
export const standingOf = (
  record: ApprovalRecord | undefined,
  atMs: number,
  own: ApprovalRecord | undefined,
): ApprovalStanding => {
  // The store forgets a question when its time is over.
  if (record === undefined || record.expiresAtMs <= atMs)
    return own === undefined ? { act: 'ask' } : { act: 'refuse', because: 'expired', record: own };
  switch (record.state) {
    case 'pending':
      return { act: 'wait', record };
    case 'approved':
      return { act: 'pass', record };
    case 'denied':
      return { act: 'refuse', because: 'denied', record };
    case 'closed':
      // Two calls that shared the question share the no.
      if (own === undefined) return { act: 'ask' };
      return record.became === 'denied' && record.id === own.id
        ? { act: 'refuse', because: 'denied', record }
        : { act: 'gone' };
  }
};

const ID_CHARS = 16;

/**
 * The name of a question: of its place, and of this asking alone.
 * @param version of the record before it, which only grows
 */
export const approvalIdOf = (key: string, version: number): string => `${key.slice(-ID_CHARS)}-${version.toString(36)}`;

/** A question as it is kept when it is asked. */
export const askedRecord = (
  request: Omit<ApprovalRequest, 'id' | 'askedAtMs' | 'expiresAtMs'>,
  id: string,
  atMs: number,
  ttlMs: number,
): ApprovalRecord => ({
  ...request,
  version: 1,
  id,
  askedAtMs: atMs,
  expiresAtMs: Math.min(atMs + ttlMs, Number.MAX_SAFE_INTEGER),
  state: 'pending',
});

/** What of a question a person is told. */
export const requestOf = ({
  version: _,
  state: __,
  became: ___,
  by: ____,
  reason: _____,
  ...request
}: ApprovalRecord): ApprovalRequest => request;

/** Whether an answer still counts: the first one does, but a no can be taken back until the call has heard it. */
export const mayAnswer = (
  record: ApprovalRecord | undefined,
  id: string,
  atMs: number,
  { approved }: ReadAnswer,
): record is ApprovalRecord =>
  record?.id === id &&
  record.expiresAtMs > atMs &&
  (record.state === 'pending' || (approved && record.state === 'denied') || (!approved && record.state === 'approved'));
