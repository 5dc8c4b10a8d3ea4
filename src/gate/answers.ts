import { firstValueFrom } from 'rxjs';
import type { ApprovalAnswer, ApprovalRequest } from '../contract/gate/approval.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeStore } from '../contract/store.ts';
import { readAnswer, requestOf } from '../policy/gate/approval.ts';
import { STORE_TIMEOUT_MS } from '../policy/profile.ts';
import { liveRuntime } from '../runtime.ts';
import { checkedStore } from '../operators/dedupe/checked-store.ts';
import { listed } from '../layer/listing.ts';
import type { GateSite } from '../layer/gate-port.ts';
import { APPROVAL_TOOL, answered, placeOf, questionIn } from './questions.ts';

/** What came of an answer. */
export interface AnswerReport {
  /** Whether it counts. */
  readonly counts: boolean;
  /** How the question stands now. `unknown`: there is no such question, or its time is over. */
  readonly state: 'approved' | 'denied' | 'closed' | 'unknown';
  /** What was asked; absent where it is unknown. */
  readonly request?: ApprovalRequest;
}

/** The questions of a store, without a layer: for whoever answers elsewhere. */
export interface ApprovalsInStore {
  /** The questions that nobody has answered, oldest first. Rejects with `store_unavailable`. */
  pending(): Promise<readonly ApprovalRequest[]>;
  /** As `answer` of `Approvals`. Rejects with a `RangeError` for what is no answer, and with `store_unavailable`. */
  answer(id: string, answer: ApprovalAnswer): Promise<AnswerReport>;
}

type Site = Pick<GateSite, 'runtime'> & { readonly dedupe: Pick<GateSite['dedupe'], 'store' | 'storeTimeoutMs'> };

export const answersIn = ({ dedupe, runtime }: Site): ApprovalsInStore => {
  const records = () => listed((store) => store.byTool(APPROVAL_TOOL), dedupe, runtime);
  return {
    pending: async () => {
      const found: ApprovalRequest[] = [];
      for await (const record of records()) {
        const question = questionIn(record);
        if (question?.state === 'pending') found.push(requestOf(question));
      }
      return found.toSorted((a, b) => a.askedAtMs - b.askedAtMs);
    },
    answer: async (id, answer) => {
      const read = readAnswer(answer);
      if (read === undefined)
        throw new RangeError(
          'an answer must be true, false, or { approved, by?, reason? }: by up to 256 characters, reason up to 1,000',
        );
      for await (const record of records()) {
        const question = questionIn(record);
        if (question?.id !== id) continue;
        const terms = { store: () => dedupe.store(), storeTimeoutMs: dedupe.storeTimeoutMs, runtime };
        const place = placeOf(record.key, record.ttlMs);
        const { record: now, counts } = await firstValueFrom(answered(terms, place, id, read));
        if (now === undefined || now.id !== id || now.state === 'pending') return { counts: false, state: 'unknown' };
        return { counts, state: now.state, request: requestOf(now) };
      }
      return { counts: false, state: 'unknown' };
    },
  };
};

/**
 * The questions of a store, to be answered by a program that has no layer: what `spillway approve` does.
 *
 * @param store the store of the layers that ask
 * @param runtime where time comes from. Default: the machine's
 * @throws RangeError for a store that lacks a method
 *
 * @example
 * const questions = approvalsIn(store);
 * for (const { id, toolName } of await questions.pending()) console.log(id, toolName);
 */
export function approvalsIn(store: DedupeStore, runtime: Runtime = liveRuntime): ApprovalsInStore {
  const checked = checkedStore(store);
  return answersIn({ runtime, dedupe: { store: () => checked, storeTimeoutMs: STORE_TIMEOUT_MS } });
}
