import type { BudgetEntry } from '../../contract/formats/gate-entry.ts';
import type { ApprovalWhen } from '../../contract/gate/approval.ts';
import type { DedupeStore } from '../../contract/store.ts';
import { createApprovals, type Approvals } from '../../gate/approvals.ts';
import { createBudget, type Budget } from '../../gate/budget.ts';
import { camelKeys } from '../../policy/entry.ts';
import type { Spillway } from '../../spillway.ts';
import { UsageError } from '../arguments/usage.ts';
import { openStore } from './open.ts';

/** What a file and the command line say of who lets calls pass. */
export interface GatesAsked {
  /** Some call of the file may need approval. */
  readonly needsApproval: boolean;
  readonly budget: readonly BudgetEntry[] | undefined;
  /** `--store`; without it `SPILLWAY_STORE`, where there are gates. */
  readonly storeUrl: string | undefined;
  /** Questions can be answered at the admin endpoint. */
  readonly hasAdmin: boolean;
}

/** Whether anything of a file asks for approval. */
export const anyNeedsApproval = (
  entries: ReadonlyArray<{ readonly needs_approval?: boolean | ApprovalWhen }>,
): boolean => entries.some(({ needs_approval = false }) => needs_approval !== false);

/** What a layer is given of it. */
export interface OpenGates {
  readonly options: { readonly store?: DedupeStore; readonly approvals?: Approvals; readonly budget?: Budget };
  readonly close: () => Promise<void>;
}

/**
 * Makes what lets the calls of a command pass: the store where people answer, and its budgets.
 * @throws UsageError where nobody could answer, and for a store that cannot be opened
 */
export async function openGates({ needsApproval, budget, storeUrl, hasAdmin }: GatesAsked): Promise<OpenGates> {
  if (needsApproval && storeUrl === undefined && !hasAdmin)
    throw new UsageError(
      'calls of this file need approval, and nobody could give it; ' +
        'name a store with --store, where spillway approve answers, or give --admin',
    );
  const opened = storeUrl === undefined ? undefined : await openStore(storeUrl, true);
  return {
    options: {
      ...(opened === undefined ? {} : { store: opened.store }),
      // Clients and people at a shell give up sooner than those who are asked answer.
      ...(needsApproval ? { approvals: createApprovals({ onLeave: 'keep' }) } : {}),
      ...(budget === undefined ? {} : { budget: createBudget(budget.map((entry) => camelKeys(entry))) }),
    },
    close: async () => opened?.close(),
  };
}

/** The store that is meant: `SPILLWAY_STORE` is for what needs one. */
export const storeOf = (
  { storeUrl }: { readonly storeUrl?: string },
  { needsApproval, budget }: Pick<GatesAsked, 'needsApproval' | 'budget'>,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const { SPILLWAY_STORE: common = '' } = env;
  return storeUrl ?? (common !== '' && (needsApproval || budget !== undefined) ? common : undefined);
};

/** Tells whoever looks which calls wait for a person, and how to answer. */
export const tellAsked = (layer: Pick<Spillway, 'trace$'>, hasStore: boolean, note: (text: string) => void): void => {
  const where = hasStore ? 'with spillway approve, at the same --store' : 'at the admin endpoint';
  layer.trace$.subscribe((event) => {
    if (event.type === 'approval' && event.step === 'asked')
      note(`${event.toolName} waits for approval ${event.approvalId}: answer it ${where}`);
  });
};
