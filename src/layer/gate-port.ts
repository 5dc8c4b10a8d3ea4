import type { Observable } from 'rxjs';
import type { NeedsApproval } from '../contract/gate/approval.ts';
import type { Usage } from '../contract/gate/budget.ts';
import type { ApprovalEvent } from '../contract/event/gate.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { VerifyFinding } from '../contract/settle/verify.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import type { DedupeLayer } from './idempotency.ts';
import type { GuardedTool } from './registry.ts';
import type { Trace } from './trace.ts';

/** What a gate is given of the layer that it stands in. */
export interface GateSite {
  readonly dedupe: Pick<DedupeLayer, 'store' | 'storeTimeoutMs' | 'writing'>;
  readonly runtime: Runtime;
  readonly trace: Pick<Trace, 'redactor' | 'observed' | 'publish'>;
}

/** A call as its gates know it. */
export interface GatedCall {
  /** It may have taken effect already. */
  readonly uncertain: boolean;
  readonly isOver: boolean;
  readonly attempts: number;
  /** The claim of its key, while it holds one. */
  readonly lease: { readonly tookOver: boolean } | undefined;
  /** What was found of its last attempt in doubt. */
  readonly verified: VerifyFinding | undefined;
  readonly call: {
    readonly callId: string;
    readonly input: unknown;
    readonly toolNamespace?: string;
    readonly nodeId?: string;
    readonly session?: string;
    readonly actor?: string;
    readonly tenant?: string;
    readonly needsApproval?: NeedsApproval;
    readonly unlimited?: true;
  };
  readonly site: { readonly runtime: Runtime; readonly turnId?: string; readonly time?: HeldTime | undefined };
  readonly layer: { readonly closed: boolean };
  /** Its turn goes on elsewhere. */
  readonly isHandedOver: boolean;
  emit(event: ApprovalEvent): void;
}

/** What wants to pass: a call, the tool that it is about to run, and with which input. */
export interface GateSubject {
  readonly context: GatedCall;
  readonly guarded: GuardedTool;
  readonly input: unknown;
}

/** A turn's time, which can stand still. */
export interface HeldTime {
  /** When it is over, as far as is known now. */
  readonly endMs: number;
  /** Emits when it is over. */
  readonly due$: Observable<0>;
  /** Somebody is waited for: it stands still, for all of the turn. Gives what is to be called once they are not. */
  hold(): () => void;
}

/** What an attempt has reserved. */
export interface Reservation {
  /** What the attempt has said so far; `undefined` before it has said anything. */
  readonly told: Usage | undefined;
  /** Adds what the attempt says that it has used. */
  report(usage: Usage): void;
  /**
   * The attempt has ended; the first time counts.
   * @param how whether it ran, and so may have used what it has not told
   */
  ended(how: 'did_not_run' | 'failed' | 'succeeded'): void;
}

/** All attempts at one tool, as their gates know them. */
export interface GatedAttempt extends GateSubject {
  /** Budgets have counted a call of this tool: a retry is no further one. */
  isCounted: boolean;
  /** From then on their time counts; a person's does not. */
  startedAtMs: number;
  /** What the present one has reserved. */
  reservation: Reservation | undefined;
  /** Why a gate let the present one not pass. */
  refusal: ToolExecutionError | undefined;
  takePermit(): { ignore(): void } | undefined;
}

/** What one attempt that has to pass gates is made of. */
export interface GatedSteps<T> {
  /** Asks the breaker and the hooks. */
  permitted(): Observable<unknown>;
  /** The attempt itself. */
  run(): Observable<T>;
  /** Begins the attempt anew: another has used the approval up meanwhile. */
  again(): Observable<T>;
}

/** The gates of a layer: it lets through what a person has approved, and what a budget has something left for. */
export interface Gates {
  /** Whether people can be asked. */
  readonly hasApprovals: boolean;
  /** Whether every call has to pass. */
  readonly hasBudget: boolean;
  /** The time of a turn that ends at `endMs`; `undefined` where it does not stand still for anybody. */
  turnTime(endMs: number): HeldTime | undefined;
  /**
   * Completes once a person has approved a call that has not begun. A key that the store knows is not asked about: the
   * call may get what is remembered, and run nothing.
   * @throws ToolExecutionError (as the stream's error) for a no, none in time, and a store that does not answer
   */
  first(subject: GateSubject, key: string | undefined): Observable<void>;
  /** One attempt: a person, its breaker and hooks, its budgets; what a person approved is used up last. */
  attempt<T>(attempt: GatedAttempt, steps: GatedSteps<T>): Observable<T>;
}

/** A part of what makes the gates of a layer: who approves, or a budget. */
export interface GateKeeper {
  /**
   * Called by `createSpillway`, once: the layer's store is where it keeps what it knows.
   * @param all the keepers of the layer, this one included
   */
  join(site: GateSite, all: readonly GateKeeper[]): Gates;
}
