import type { Observable } from 'rxjs';
import type { ApprovalRecord, ApprovalRequest } from '../contract/gate/approval.ts';
import type { DedupeRecord } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { changed, type RegisterChange, type RegisterPlace, type RegisterTerms } from '../operators/dedupe/register.ts';
import {
  approvalIdOf,
  approvalIn,
  askedRecord,
  mayAnswer,
  standingOf,
  type ReadAnswer,
  type ApprovalStanding,
} from '../policy/gate/approval.ts';

/** By which name the store lists questions. No tool can have it. */
export const APPROVAL_TOOL = 'spillway/approval';

/** How a call stands by its question, and for how long yet. */
export interface Stood {
  readonly standing: Exclude<ApprovalStanding, { readonly act: 'ask' }>;
  readonly leftMs: number;
}

/** What is asked, where nobody has been asked yet. */
export interface Question {
  readonly place: RegisterPlace;
  readonly request: Omit<ApprovalRequest, 'id' | 'askedAtMs' | 'expiresAtMs'>;
  readonly ttlMs: number;
}

const unreadable = (): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    'What the store holds of an approval cannot be read, and approves nothing; delete its record to ask anew',
    { classification: 'permanent' },
  );

const recordIn = (payload: string | undefined): ApprovalRecord | undefined => {
  if (payload === undefined) return undefined;
  const record = approvalIn(payload);
  if (record === undefined) throw unreadable();
  return record;
};

const leftMs = ({ expiresAtMs }: ApprovalRecord, atMs: number): number => Math.max(1, expiresAtMs - atMs);

const writing = (record: ApprovalRecord, atMs: number): NonNullable<RegisterChange<unknown>['write']> => ({
  payload: JSON.stringify(record),
  ttlMs: leftMs(record, atMs),
});

/** How a call stands; where nobody was asked, the question is written. A no that is heard is over. */
export const stood = (
  terms: RegisterTerms,
  { place, request, ttlMs }: Question,
  own: ApprovalRecord | undefined,
): Observable<Stood> =>
  changed<Stood>(terms, place, ({ payload, version = 0, atMs = 0 }) => {
    const standing = standingOf(recordIn(payload), atMs, own);
    if (standing.act === 'ask') {
      const asked = askedRecord(request, approvalIdOf(place.key, version), atMs, ttlMs);
      return { result: { standing: { act: 'wait', record: asked }, leftMs: ttlMs }, write: writing(asked, atMs) };
    }
    if (standing.act === 'gone') return { result: { standing, leftMs: 0 } };
    const { record } = standing;
    const result = { standing, leftMs: leftMs(record, atMs) };
    if (standing.act !== 'refuse' || record.state !== 'denied') return { result };
    return { result, write: writing({ ...record, state: 'closed', became: 'denied' }, atMs) };
  });

/** Ends a question, if it still stands as it did; emits how long it had yet, and `undefined` where it did not. */
export const closed = (
  terms: RegisterTerms,
  place: RegisterPlace,
  { id, state }: ApprovalRecord,
  became: NonNullable<ApprovalRecord['became']>,
): Observable<number | undefined> =>
  changed<number | undefined>(terms, place, ({ payload, atMs = 0 }) => {
    const record = recordIn(payload);
    if (record === undefined || record.id !== id || record.state !== state || record.expiresAtMs <= atMs)
      return { result: undefined };
    return { result: leftMs(record, atMs), write: writing({ ...record, state: 'closed', became }, atMs) };
  });

/** Puts an answer to a question; emits how the question stands then, `undefined` where it is not there any more. */
export const answered = (
  terms: RegisterTerms,
  place: RegisterPlace,
  id: string,
  answer: ReadAnswer,
): Observable<{ readonly record: ApprovalRecord | undefined; readonly counts: boolean }> =>
  changed<{ readonly record: ApprovalRecord | undefined; readonly counts: boolean }>(
    terms,
    place,
    ({ payload, atMs = 0 }) => {
      const record = recordIn(payload);
      if (!mayAnswer(record, id, atMs, answer)) return { result: { record, counts: false } };
      const { approved, ...words } = answer;
      const { by: _, reason: __, ...asked } = record;
      const after: ApprovalRecord = { ...asked, ...words, state: approved ? 'approved' : 'denied' };
      return { result: { record: after, counts: true }, write: writing(after, atMs) };
    },
  );

/** The question in a listed record; `undefined` where there is none. */
export const questionIn = ({ payload }: DedupeRecord): ApprovalRecord | undefined =>
  payload === undefined ? undefined : approvalIn(payload);

export const placeOf = (key: string, ttlMs: number): RegisterPlace => ({ key, tool: APPROVAL_TOOL, ttlMs });
