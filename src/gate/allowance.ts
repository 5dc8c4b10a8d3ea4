import {
  AsyncSubject,
  EMPTY,
  catchError,
  defaultIfEmpty,
  defer,
  finalize,
  forkJoin,
  map,
  merge,
  of,
  retry,
  switchMap,
  take,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { Amounts, BudgetRecord, Usage } from '../contract/gate/budget.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { changed, type RegisterPlace, type RegisterTerms } from '../operators/dedupe/register.ts';
import {
  NOTHING,
  budgetIn,
  charge,
  leftOf,
  most,
  newBudget,
  readUsage,
  reserve,
  spend,
  usedBy,
  type Counted,
  type Shortage,
  type Spent,
} from '../policy/gate/budget.ts';
import { sha256 } from '../policy/key/sha256.ts';
import { STAMP } from '../layer/trace.ts';
import type { ReadLimits } from './limits.ts';
import type { GateSite, GateSubject, Reservation } from '../layer/gate-port.ts';
import { spentError } from './refusals.ts';
import { reservationOf } from './reservation.ts';

/** By which name the store lists budgets. No tool can have it. */
const BUDGET_TOOL = 'spillway/budget';
/** Tools of which it is remembered what they used. */
const TOOLS_MAX = 10_000;
/** A store that was lost is told again what was used, for as long as it can still stand reserved there. */
const TELLS_MAX = 10;
const TELL_MS = 500;
const TELL_MAX_MS = 30_000;

/** Whose use is counted. */
export interface BudgetScope {
  /** The turn, which is its tenant's. Default: none, and no turn's budget counts it. */
  readonly turnId?: string;
  /** The session. Default: that of all calls without one. */
  readonly session?: string;
  /** The tenant. Default: that of all calls without one. */
  readonly tenant?: string;
}

const unreadable = (): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    'What the store holds of a budget cannot be read, and nothing is spent on it; delete its record to begin anew',
    { classification: 'permanent' },
  );

/** One kind of budget, as many of them as there are turns, sessions or tenants. */
export class Allowance {
  readonly #site: GateSite;
  readonly #read: ReadLimits;
  /** By key: what has ended here and is being told to the store; the next attempt is to know of it. */
  readonly #telling = new Map<string, Set<Observable<unknown>>>();
  /** By key: the last change of this process that is under way. */
  readonly #lines = new Map<string, Observable<unknown>>();
  /** By tool: the most that one attempt was seen to use in this process. */
  readonly #seen = new Map<string, Amounts>();
  /** By budget and tool: the first attempt of this process, of which nobody knows what it uses; emits its end. */
  readonly #firsts = new Map<string, Observable<unknown>>();

  constructor(site: GateSite, read: ReadLimits) {
    this.#site = site;
    this.#read = read;
  }

  /** @throws ToolExecutionError (as the stream's error) `limit_exceeded`, and where the store does not answer */
  reserved(subject: GateSubject, isFirst: boolean): Observable<Reservation> {
    const { context, guarded } = subject;
    const { callId, session, tenant } = context.call;
    // A call outside of a turn is a turn of one.
    const scope = this.#keyOf({ turnId: context.site.turnId ?? callId, session, tenant });
    return defer(() => {
      // Whoever has a budget of its own waits for nobody else's.
      const name = `${scope} ${guarded.tool.name}`;
      const before = this.#firsts.get(name);
      // Nobody knows yet what one of them uses: until the first has ended they go one at a time.
      if (before !== undefined)
        return before.pipe(
          defaultIfEmpty(0),
          switchMap(() => this.reserved(subject, isFirst)),
        );
      const first = this.#isUnknown(guarded) ? new AsyncSubject<unknown>() : undefined;
      if (first !== undefined) this.#firsts.set(name, first);
      const known = (): void => {
        if (first === undefined) return;
        this.#firsts.delete(name);
        first.complete();
      };
      return this.#reserve(scope, subject, isFirst, known).pipe(tap({ error: known, unsubscribe: known }));
    });
  }

  #reserve(
    scope: string,
    { context, guarded }: GateSubject,
    isFirst: boolean,
    known: () => void,
  ): Observable<Reservation> {
    const { runtime } = this.#site;
    const { limits, leaseMs, per } = this.#read;
    const { callId } = context.call;
    const { cost, tool } = guarded;
    const need = { id: runtime.id(), isFirst, cost, expected: this.#seen.get(tool.name) ?? NOTHING };
    return this.#told(scope).pipe(
      switchMap(() =>
        this.#changed(scope, (before, atMs) => {
          const after = reserve(before, limits, need, atMs, leaseMs);
          return { after, isWritten: !('short' in after) };
        }),
      ),
      switchMap((after) => {
        if ('short' in after) {
          this.#publish('refused', scope, after.short, callId);
          return throwError(() => spentError(after.short, per));
        }
        this.#warn(after, scope, callId);
        const { hold, budget } = after;
        const ended = (spent: Spent): void => {
          this.#learn(tool.name, spent);
          this.#tell(scope, callId, spent);
          known();
        };
        return [reservationOf({ hold, sinceMs: budget.sinceMs, cost }, ended)];
      }),
    );
  }

  /** Whether nothing is known of what a call uses that is limited. */
  #isUnknown({ tool, cost }: GateSubject['guarded']): boolean {
    const { usd, tokens } = this.#read.limits;
    if (this.#seen.has(tool.name)) return false;
    return tokens !== undefined || (usd !== undefined && cost === 0);
  }

  #learn(toolName: string, spent: Spent): void {
    // One that failed before it told anything says nothing of what the next will use.
    if (spent.how !== 'succeeded' && Object.keys(spent.told).length === 0) return;
    const seen = this.#seen.get(toolName) ?? NOTHING;
    this.#seen.delete(toolName);
    this.#seen.set(toolName, most(seen, usedBy(spent)));
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > TOOLS_MAX && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** Adds what something other than a tool has used. */
  charged(whose: BudgetScope, usage: Usage): Observable<void> {
    if (this.#read.per === 'turn' && whose.turnId === undefined) return of(undefined);
    const scope = this.#keyOf(whose);
    return this.#changed(scope, (before, atMs) => ({
      after: charge(before, this.#read.limits, readUsage(usage), atMs),
      isWritten: true,
    })).pipe(map((after) => this.#warn(after, scope)));
  }

  /** What is left, by unit. */
  left(whose: BudgetScope): Observable<readonly Shortage[]> {
    return this.#changed(this.#keyOf(whose), (before, atMs) => ({
      after: charge(before, this.#read.limits, {}, atMs),
      isWritten: false,
    })).pipe(map(({ budget }) => leftOf(budget, this.#read.limits)));
  }

  /**
   * Not waited for by the attempt that has ended; by `close()` it is, and by the next attempt here. Where the store is
   * lost it is told once that is back; after the lease what was reserved counts as used.
   */
  #tell(scope: string, callId: string, spent: Spent): void {
    const over = this.#site.dedupe.writing();
    const told$ = new AsyncSubject<unknown>();
    const telling = this.#telling.get(scope) ?? new Set();
    this.#telling.set(scope, telling.add(told$));
    const ended = (): void => {
      telling.delete(told$);
      if (telling.size === 0) this.#telling.delete(scope);
      over();
      told$.complete();
    };
    let isAgain = false;
    defer(() =>
      this.#changed(scope, (before, atMs) => ({
        after: spend(before, this.#read.limits, spent, atMs, isAgain),
        isWritten: true,
      })),
    )
      .pipe(
        retry({
          count: TELLS_MAX,
          delay: (_, count) => {
            isAgain = true;
            ended();
            return (this.#site.runtime.background ?? this.#site.runtime).after(
              Math.min(TELL_MAX_MS, TELL_MS * 2 ** (count - 1)),
            );
          },
        }),
        catchError(() => EMPTY),
        finalize(ended),
      )
      .subscribe((after) => this.#warn(after, scope, callId));
  }

  #told(scope: string): Observable<unknown> {
    return defer(() => forkJoin([...(this.#telling.get(scope) ?? [])]).pipe(defaultIfEmpty(undefined)));
  }

  /** Whose it is, as text. */
  #keyOf({
    turnId = '',
    session = '',
    tenant = '',
  }: Readonly<Partial<Record<keyof BudgetScope, string | undefined>>>): string {
    const { per, name, windowMs } = this.#read;
    // Tenants may choose the ids of their turns, and spend nothing of each other's.
    const whose = { turn: [tenant, turnId], session: [tenant, session], tenant: [tenant] }[per];
    return JSON.stringify([BUDGET_TOOL, name, per, windowMs, ...whose]);
  }

  #changed<A extends { readonly budget: BudgetRecord }>(
    scope: string,
    change: (before: BudgetRecord, atMs: number) => { readonly after: A; readonly isWritten: boolean },
  ): Observable<A> {
    const { dedupe, runtime } = this.#site;
    const { windowMs } = this.#read;
    const terms: RegisterTerms = {
      store: () => dedupe.store(),
      runtime: runtime.background ?? runtime,
      storeTimeoutMs: dedupe.storeTimeoutMs,
    };
    const place: RegisterPlace = { key: `sw1:${sha256(scope)}`, tool: BUDGET_TOOL, ttlMs: windowMs };
    const changed$ = changed(terms, place, ({ payload, atMs = 0 }) => {
      const kept = payload === undefined ? newBudget(atMs) : budgetIn(payload);
      if (kept === undefined) throw unreadable();
      const { after, isWritten } = change(kept.sinceMs + windowMs <= atMs ? newBudget(atMs) : kept, atMs);
      if (!isWritten) return { result: after };
      const ttlMs = Math.max(1, after.budget.sinceMs + windowMs - atMs);
      return { result: after, write: { payload: JSON.stringify(after.budget), ttlMs } };
    });
    return this.#inLine(scope, changed$);
  }

  /** One after the other here: what another comes between begins anew. A store that hangs is waited for once. */
  #inLine<A>(scope: string, change$: Observable<A>): Observable<A> {
    return defer(() => {
      const { runtime, dedupe } = this.#site;
      const before$ = this.#lines.get(scope) ?? of(0);
      const over$ = new AsyncSubject<unknown>();
      this.#lines.set(scope, over$);
      return merge(before$.pipe(defaultIfEmpty(0)), (runtime.background ?? runtime).after(dedupe.storeTimeoutMs)).pipe(
        take(1),
        switchMap(() => change$),
        finalize(() => {
          if (this.#lines.get(scope) === over$) this.#lines.delete(scope);
          over$.complete();
        }),
      );
    });
  }

  #warn({ warned }: Counted, scope: string, callId?: string): void {
    for (const shortage of warned) this.#publish('warned', scope, shortage, callId);
  }

  #publish(step: 'warned' | 'refused', scope: string, shortage: Shortage, callId: string | undefined): void {
    const { trace } = this.#site;
    if (!trace.observed) return;
    const { per } = this.#read;
    const whose = String((JSON.parse(scope) as string[]).at(-1));
    const by = callId === undefined ? {} : { callId };
    trace.publish({ ...STAMP, source: 'layer', type: 'budget', step, per, scope: whose, ...by, ...shortage });
  }
}
