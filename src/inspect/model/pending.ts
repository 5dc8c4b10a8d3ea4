import type { CallTold, TraceModel, TurnTold } from '../model.ts';

/** What is waited for. */
export type PendingKind = 'backoff' | 'timeout' | 'cooldown' | 'deadline' | 'lease';

/** A timer that runs, as far as the trace tells. */
export interface PendingTimer {
  /** What it is for. */
  readonly kind: PendingKind;
  /** When it began, on the clock of the events. */
  readonly fromMs: number;
  /** When it ends, on the same clock. */
  readonly dueMs: number;
  /** The turn that it belongs to; absent for a breaker, and for a call outside of turns. */
  readonly turnId?: string;
  /** The call; absent for a deadline and a breaker. */
  readonly callId?: string;
  /** With `cooldown`: the breaker's name. */
  readonly breakerKey?: string;
}

/** When it began and when it ends. */
export type TimerOfCall = Pick<PendingTimer, 'kind' | 'fromMs' | 'dueMs'>;

/** The timer of a call: of its attempt, of the wait for the next one, or of the lease that it waits for. */
export function pendingOfCall({ status, waitsSinceMs, attempts, key: steps }: CallTold): TimerOfCall | undefined {
  if (status !== 'running' || waitsSinceMs !== undefined) return undefined;
  const last = attempts.at(-1);
  const timer = (kind: PendingKind, fromMs: number, dueMs: number | undefined): TimerOfCall | undefined =>
    dueMs === undefined ? undefined : { kind, fromMs, dueMs };
  if (last?.outcome === 'running') return timer('timeout', last.startMs, last.dueAtMs);
  const { strategy, delayMs, atMs } = last?.decision ?? {};
  if (strategy === 'retry' && delayMs !== undefined && atMs !== undefined)
    return timer('backoff', atMs, atMs + delayMs);
  const key = steps.at(-1);
  return key?.step === 'waiting' ? timer('lease', key.atMs, key.leaseUntilMs) : undefined;
}

/** When the time of a turn is over: ever later while it stands still. */
export function endOfTime({ dueMs, heldMs, heldBy }: TurnTold, nowMs: number): number {
  return dueMs + heldMs + (heldBy && nowMs);
}

/** The deadline of a turn that runs. */
export function pendingOfTurn(turn: TurnTold, nowMs: number): PendingTimer | undefined {
  const { status, startMs, dueMs, turnId } = turn;
  return status === 'running' && dueMs < Infinity
    ? { kind: 'deadline', fromMs: startMs, dueMs: endOfTime(turn, nowMs), turnId }
    : undefined;
}

/**
 * The timers that run: attempts that will be cut off, waits before the next attempt, breakers that cool down, deadlines
 * of turns, and leases of others that are waited for. A timer that is due may be among them until the event that it
 * brings about has come; a deadline that stands still, since a person is asked, is not.
 *
 * @example
 * const due = pendingTimers(emptyTrace()).filter(({ kind }) => kind === 'backoff');
 */
export function pendingTimers({ turns, calls, breakers, lastMs }: TraceModel): PendingTimer[] {
  const timers: PendingTimer[] = [];
  for (const turn of turns.values()) {
    const timer = turn.heldBy === 0 ? pendingOfTurn(turn, lastMs) : undefined;
    if (timer !== undefined) timers.push(timer);
  }
  for (const call of calls.values()) {
    const timer = pendingOfCall(call);
    const { callId, turnId } = call;
    if (timer !== undefined) timers.push({ ...timer, callId, ...(turnId === undefined ? {} : { turnId }) });
  }
  for (const { key, state, changes } of breakers.values()) {
    const last = changes.at(-1);
    if (state === 'open' && last?.untilMs !== undefined)
      timers.push({ kind: 'cooldown', fromMs: last.atMs, dueMs: last.untilMs, breakerKey: key });
  }
  return timers;
}
