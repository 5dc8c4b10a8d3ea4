import { defer, map, of, switchMap, tap, type Observable } from 'rxjs';
import type { ApprovalAnswer, ApprovalCause, ApprovalRecord, ApprovalRequest } from '../contract/gate/approval.ts';
import type { ToolOutput } from '../contract/output.ts';
import { checkKeys, checkNumber, checkOneOf, given, positiveDuration } from '../policy/check.ts';
import { answersIn, type AnswerReport } from './answers.ts';
import { canBeNeeded, isNeeded } from './need.ts';
import { approvalKey, printOf } from './input-key.ts';
import { gatesOf, type ApprovalGate, type Keeper } from './passing.ts';
import type { GateKeeper, GateSite, GateSubject, GatedCall, HeldTime } from '../layer/gate-port.ts';
import { placeOf, type Question } from './questions.ts';
import { changing, unwritten } from './refusals.ts';
import { TurnTime } from './turn-time.ts';
import { approvedFor, usedUp, type Wait } from './waiting.ts';

/** How people are asked. Times are milliseconds. */
export interface ApprovalsOptions {
  /**
   * Asks a person: gives the answer, a Promise or an Observable of it; the first value counts. One that ends without a
   * value leaves the answer to the store: `answer()`, the admin endpoint, `spillway approve`. One that throws, and an
   * answer that is none, refuse the call. Called again, with the same id, by each call and process that waits. Default:
   * nobody is asked here.
   */
  readonly ask?: (request: ApprovalRequest) => ToolOutput<ApprovalAnswer>;
  /** How long a question and its answer count, from when it was asked. Default 900,000: 15 minutes. */
  readonly ttlMs?: number;
  /**
   * `true`: a turn's `timeoutMs` runs on while a person is waited for. By default it stands still, for all of the
   * turn, unless the turn is a fleet's, whose end is a moment of the wall clock.
   */
  readonly countsAgainstTurn?: boolean;
  /**
   * What becomes of a question whose call is canceled: `withdraw` (default), or `keep` for callers that give up sooner
   * than people answer: an answer then lets the next call of the same kind pass, within `ttlMs`.
   */
  readonly onLeave?: 'withdraw' | 'keep';
  /** How often the store is asked for an answer where it does not tell of one by itself. Default 1,000. */
  readonly pollMs?: number;
}

/** What people are asked about the calls of a layer, and where they answer. Make it with `createApprovals`. */
export interface Approvals extends GateKeeper {
  /**
   * The questions that nobody has answered, of all processes of the store, oldest first. Rejects with
   * `store_unavailable`.
   */
  pending(): Promise<readonly ApprovalRequest[]>;
  /**
   * Answers a question, from wherever a person does: a web page, a chat. The first answer counts; until the call has
   * heard it a person can still change it. Rejects with a `RangeError` for what is no answer, and with
   * `store_unavailable`.
   */
  answer(id: string, answer: ApprovalAnswer): Promise<AnswerReport>;
}

const TTL_MS = 900_000;
const POLL_MS = 1_000;
const OPTION_KEYS = ['ask', 'ttlMs', 'countsAgainstTurn', 'onLeave', 'pollMs'];
/** Nobody reads more, and a store has better to keep. */
const SHOWN_MAX_CHARS = 100_000;
/** Whoever changes an input more often while it is decided about does so each time. */
const CHANGES_MAX = 5;

/** An approval that a call has used. */
interface UsedApproval {
  /** Of the input that it was for. */
  readonly print: string | undefined;
  /** From then on it counts no more. */
  readonly untilMs: number;
}

/** What is known of a call that needs approvals. */
interface Gated {
  /** By tool and input. */
  readonly needed: Map<string, boolean>;
  /** By tool: the input that was decided about last. */
  readonly decided: Map<string, string | undefined>;
  /** By tool: what is certain to have failed may be tried again with it. */
  readonly used: Map<string, UsedApproval>;
  readonly told: Wait['told'];
  /** How often its input was another than the one that was decided about. */
  changes: number;
}

class Gate implements ApprovalGate {
  readonly #site: GateSite;
  readonly #options: ApprovalsOptions;
  readonly #calls = new WeakMap<GatedCall, Gated>();

  constructor(site: GateSite, options: ApprovalsOptions) {
    this.#site = site;
    this.#options = options;
  }

  turnTime(endMs: number): HeldTime | undefined {
    return this.#options.countsAgainstTurn === true ? undefined : new TurnTime(this.#site.runtime, endMs);
  }

  approved(
    subject: GateSubject,
    isUncertain: boolean,
    isKnown: () => Observable<boolean>,
  ): Observable<ApprovalRecord | undefined> {
    return defer(() => {
      // Its budget alone is what it has to pass.
      if (!canBeNeeded(subject)) return of(undefined);
      const gated = this.#of(subject.context);
      const { name } = subject.guarded.tool;
      // Before it is decided about: whoever changes it meanwhile has it decided about anew.
      const print = printOf(subject);
      gated.decided.set(name, print);
      return this.#needed(subject, print).pipe(
        switchMap((needed) => {
          const used = isUncertain ? undefined : gated.used.get(name);
          const isCovered = used !== undefined && used.print === print && used.untilMs > this.#site.runtime.now();
          if (!needed || isCovered) return of(undefined);
          return approvedFor({ ...this.#wait(subject, isUncertain ? 'uncertain' : 'needed'), isKnown });
        }),
      );
    });
  }

  used(subject: GateSubject, approval: ApprovalRecord | undefined): Observable<boolean> {
    return defer(() => {
      if (!this.#isAsDecided(subject)) return of(false);
      if (approval === undefined) return of(true);
      const { place } = this.#questionOf(subject, approval.cause);
      const print = printOf(subject);
      return usedUp(this.#site, place, approval).pipe(
        map((leftMs) => {
          // Whoever made the call may have changed its input while the store was asked.
          if (!this.#isAsDecided(subject) || leftMs === undefined) return false;
          const untilMs = this.#site.runtime.now() + leftMs;
          this.#of(subject.context).used.set(subject.guarded.tool.name, { print, untilMs });
          return true;
        }),
      );
    });
  }

  /**
   * Whether the input is still the one that was found to need no approval, or to have it.
   * @throws ToolExecutionError for an input that is another each time, and for one of which that cannot be said
   */
  #isAsDecided(subject: GateSubject): boolean {
    const gated = this.#of(subject.context);
    const { name } = subject.guarded.tool;
    if (!gated.decided.has(name)) return true;
    const print = printOf(subject);
    if (print === undefined) throw unwritten();
    if (gated.decided.get(name) === print) return true;
    gated.changes++;
    if (gated.changes > CHANGES_MAX) throw changing();
    return false;
  }

  #of(call: GatedCall): Gated {
    const known = this.#calls.get(call);
    if (known !== undefined) return known;
    const gated: Gated = { needed: new Map(), decided: new Map(), used: new Map(), told: {}, changes: 0 };
    this.#calls.set(call, gated);
    return gated;
  }

  /** Asked once a call, tool and input. */
  #needed(subject: GateSubject, print: string | undefined): Observable<boolean> {
    const { needed } = this.#of(subject.context);
    const known = print === undefined ? undefined : needed.get(print);
    if (known !== undefined) return of(known);
    return isNeeded(subject, this.#site.runtime).pipe(
      tap((is) => {
        if (print !== undefined) needed.set(print, is);
      }),
    );
  }

  #questionOf(subject: GateSubject, cause: ApprovalCause): Question {
    const { context, guarded } = subject;
    const { ttlMs = TTL_MS } = this.#options;
    const { callId, nodeId, session, actor, tenant } = context.call;
    const { tool, effects } = guarded;
    const named = { turnId: context.site.turnId, nodeId, session, actor, tenant, description: tool.description };
    const request = {
      cause,
      toolName: tool.name,
      effects,
      input: this.#shown(subject.input),
      callId,
      ...given(named),
    } as Question['request'];
    return { place: placeOf(approvalKey(subject, cause), ttlMs), request, ttlMs };
  }

  /** An input for a person, which a store can keep. */
  #shown(input: unknown): unknown {
    const shown = this.#site.trace.redactor.value(input) ?? null;
    return JSON.stringify(shown).length <= SHOWN_MAX_CHARS ? shown : '[cut]';
  }

  #wait(subject: GateSubject, cause: ApprovalCause): Omit<Wait, 'isKnown'> {
    const { ask, onLeave, pollMs = POLL_MS } = this.#options;
    const { told } = this.#of(subject.context);
    return {
      site: this.#site,
      subject,
      question: this.#questionOf(subject, cause),
      ask,
      keeps: onLeave === 'keep',
      pollMs,
      told,
    };
  }
}

const notJoined = (): never => {
  throw new RangeError('approvals have no store yet: give them to createSpillway({ approvals }) first');
};

/**
 * Makes people part of a layer: a call of a tool with `needsApproval` waits until one of them has approved it. An
 * approval is for one tool, one input, one session, actor and tenant, counts for `ttlMs`, and is used by one attempt,
 * whichever process makes it; a retry after an attempt that may have taken effect asks anew. Questions and answers are
 * in the layer's store, and outlive the process where that does.
 *
 * @param options who is asked, and how long an answer counts
 * @throws RangeError for an option out of its range
 *
 * @example
 * const approvals = createApprovals({ ask: ({ toolName }) => ({ approved: toolName === 'pay', by: 'Grace' }) });
 * const spillway = createSpillway({ tools, approvals, store });
 */
export function createApprovals(options: ApprovalsOptions = {}): Approvals {
  checkKeys('createApprovals', options, OPTION_KEYS);
  const { ask, ttlMs, pollMs, countsAgainstTurn, onLeave } = options;
  if (ask !== undefined && typeof ask !== 'function') throw new RangeError(`ask must be a function, not ${typeof ask}`);
  if (ttlMs !== undefined) checkNumber('ttlMs', ttlMs, positiveDuration);
  if (onLeave !== undefined) checkOneOf('onLeave', onLeave, ['withdraw', 'keep']);
  if (pollMs !== undefined) checkNumber('pollMs', pollMs, positiveDuration);
  if (countsAgainstTurn !== undefined && typeof countsAgainstTurn !== 'boolean')
    throw new RangeError(`countsAgainstTurn must be true or false, not ${typeof countsAgainstTurn}`);
  let joined: GateSite | undefined;
  const keeper: Keeper & Approvals = {
    pending: async () => answersIn(joined ?? notJoined()).pending(),
    answer: async (id, answer) => answersIn(joined ?? notJoined()).answer(id, answer),
    approvals: (site) => new Gate((joined = site), given(options)),
    join: gatesOf,
  };
  return keeper;
}
