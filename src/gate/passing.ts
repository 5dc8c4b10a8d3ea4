import { catchError, defer, filter, finalize, map, of, switchMap, take, tap, type Observable } from 'rxjs';
import type { ApprovalRecord } from '../contract/gate/approval.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { ask } from '../operators/dedupe/ask.ts';
import type {
  GateKeeper,
  GateSite,
  GateSubject,
  GatedAttempt,
  GatedSteps,
  Gates,
  HeldTime,
  Reservation,
} from '../layer/gate-port.ts';

/** Lets a call pass once a person has approved it. */
export interface ApprovalGate {
  /** The time of a turn that ends at `endMs`; `undefined` where it runs on while a person is waited for. */
  turnTime(endMs: number): HeldTime | undefined;
  /**
   * Emits once a person has approved, or `undefined` where none has to; what it gives is good for one `used`.
   * @param isUncertain an earlier attempt may have taken effect
   * @param isKnown whether it may get what another call came to, asked where that call has used the answer
   * @throws ToolExecutionError (as the stream's error) for a no, for none in time, and where the store does not answer
   */
  approved(
    subject: GateSubject,
    isUncertain: boolean,
    isKnown: () => Observable<boolean>,
  ): Observable<ApprovalRecord | undefined>;
  /**
   * Uses an approval up: emits false where another call has, or where the input is no longer the one that was decided
   * about, whether that needed approval or not.
   * @throws ToolExecutionError (as the stream's error) where the store does not answer: then it may be used up; and for
   * an input that is another each time
   */
  used(subject: GateSubject, approval: ApprovalRecord | undefined): Observable<boolean>;
}

/** Lets an attempt pass as long as its budgets have something left. */
export interface BudgetGate {
  /**
   * Reserves what the attempt is taken to use.
   * @param isFirst it is the first that counts as a call: a retry is no further one, unless nothing before it ran
   * @throws ToolExecutionError (as the stream's error) `limit_exceeded`, and where the store does not answer
   */
  reserved(subject: GateSubject, isFirst: boolean): Observable<Reservation>;
}

/** What a keeper of gates brings along. */
export interface Keeper extends GateKeeper {
  /** Where it asks people. Absent where it does not. */
  readonly approvals?: (site: GateSite) => ApprovalGate;
  /** What it limits. Absent where it does not. */
  readonly budget?: (site: GateSite) => BudgetGate;
}

/** Whether an earlier attempt may have taken effect, of this call or of one whose key it took over. */
const isUncertain = ({ context, guarded }: GatedAttempt): boolean => guarded.effects !== 'read' && context.uncertain;

/** What an attempt used is told when it has ended, however that is. */
const spending = <T>(
  attempt: GatedAttempt,
  reservation: Reservation | undefined,
  attempt$: Observable<T>,
): Observable<T> => {
  if (reservation === undefined) return attempt$;
  const { context } = attempt;
  const attemptsBefore = context.attempts;
  let how: Parameters<Reservation['ended']>[0] | undefined;
  const ends = (end: typeof how = 'failed'): typeof end => {
    how = context.attempts > attemptsBefore ? end : 'did_not_run';
    // Before it is decided about a retry, which may be made by another process.
    if (how !== 'did_not_run') attempt.isCounted = true;
    return how;
  };
  return attempt$.pipe(
    tap({
      next: () => void ends('succeeded'),
      error: (error: unknown) => void ends(toToolExecutionError(error).executed ? 'failed' : 'did_not_run'),
    }),
    finalize(() => reservation.ended(ends(how))),
  );
};

class LayerGates implements Gates {
  readonly hasApprovals: boolean;
  readonly hasBudget: boolean;
  readonly #site: GateSite;
  readonly #approvals: ApprovalGate | undefined;
  readonly #budget: BudgetGate | undefined;

  constructor(site: GateSite, approvals: ApprovalGate | undefined, budget: BudgetGate | undefined) {
    this.#site = site;
    this.#approvals = approvals;
    this.#budget = budget;
    this.hasApprovals = approvals !== undefined;
    this.hasBudget = budget !== undefined;
  }

  turnTime(endMs: number): HeldTime | undefined {
    return this.#approvals?.turnTime(endMs);
  }

  first(subject: GateSubject, key: string | undefined): Observable<void> {
    const isKnown = (): Observable<boolean> => this.#isKnown(subject, key);
    return isKnown().pipe(
      switchMap((known) => (known ? of(undefined) : this.#approved(subject, false, isKnown))),
      take(1),
      map(() => undefined),
    );
  }

  attempt<T>(attempt: GatedAttempt, steps: GatedSteps<T>): Observable<T> {
    const { context } = attempt;
    const { runtime } = context.site;
    const askedAtMs = runtime.now();
    const refused = (error: unknown): never => {
      attempt.takePermit()?.ignore();
      attempt.refusal = toToolExecutionError(error);
      throw attempt.refusal;
    };
    const passed = (approval: ApprovalRecord | undefined, reservation: Reservation | undefined): Observable<T> => {
      attempt.reservation = reservation;
      const attempt$ = this.#used(attempt, approval).pipe(
        catchError(refused),
        filter(() => !context.isOver),
        switchMap((isUsed) => {
          if (isUsed) return steps.run();
          attempt.takePermit()?.ignore();
          reservation?.ended('did_not_run');
          return steps.again();
        }),
      );
      return spending(attempt, reservation, attempt$);
    };
    return this.#approved(attempt, isUncertain(attempt), () => of(false)).pipe(
      catchError(refused),
      filter(() => !context.isOver),
      switchMap((approval) => {
        // A person's time is nobody's.
        attempt.startedAtMs += runtime.now() - askedAtMs;
        return steps.permitted().pipe(
          switchMap(() => this.#reserved(attempt).pipe(catchError(refused))),
          switchMap((reservation) => passed(approval, reservation)),
        );
      }),
    );
  }

  /** Waits for a person, where the call needs one. The turn's time stands still meanwhile. */
  #approved(
    subject: GateSubject,
    afterDoubt: boolean,
    isKnown: () => Observable<boolean>,
  ): Observable<ApprovalRecord | undefined> {
    return defer(() => {
      if (this.#approvals === undefined) return of(undefined);
      const approval$ = this.#approvals.approved(subject, afterDoubt, isKnown);
      const goOn = subject.context.site.time?.hold();
      return goOn === undefined ? approval$ : approval$.pipe(finalize(goOn));
    });
  }

  #used(subject: GateSubject, approval: ApprovalRecord | undefined): Observable<boolean> {
    return this.#approvals?.used(subject, approval) ?? of(true);
  }

  #reserved(attempt: GatedAttempt): Observable<Reservation | undefined> {
    const { unlimited } = attempt.context.call;
    if (this.#budget === undefined || unlimited === true) return of(undefined);
    return this.#budget.reserved(attempt, !attempt.isCounted);
  }

  #isKnown({ context }: GateSubject, key: string | undefined): Observable<boolean> {
    if (key === undefined) return of(false);
    const { dedupe } = this.#site;
    return ask(() => dedupe.store().get(key), dedupe.storeTimeoutMs, context.site.runtime).pipe(
      map((reading) => reading !== undefined),
      // Whoever claims the key is told.
      catchError(() => of(true)),
    );
  }
}

const isKeeper = (keeper: GateKeeper): keeper is Keeper => 'approvals' in keeper || 'budget' in keeper;

/** The gates that keepers make together: a person is asked, then a budget, whoever of them is there. */
export const gatesOf = (site: GateSite, all: readonly GateKeeper[]): Gates => {
  const keepers = all.filter(isKeeper);
  const approvals = keepers.find((keeper) => keeper.approvals !== undefined)?.approvals;
  const budget = keepers.find((keeper) => keeper.budget !== undefined)?.budget;
  return new LayerGates(site, approvals?.(site), budget?.(site));
};
