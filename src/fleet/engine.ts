import { concatMap, defer, firstValueFrom, type Observable } from 'rxjs';
import type {
  Closeable,
  FleetEngine,
  FleetHealth,
  FleetPlan,
  SubmitOptions,
  Submitted,
} from '../contract/fleet/port.ts';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { attached } from './attached.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Entered, TurnLedger } from './ledger.ts';
import { digestOf, planRecord } from './plan-record.ts';
import { checkTurnId } from './turn-id.ts';
import { untilAnswered } from './until-answered.ts';
import { serveTurns } from './worker/serve.ts';

/** What an engine of a ledger and a dispatcher is made of. */
export interface FleetParts {
  readonly ledger: TurnLedger;
  readonly dispatcher: Dispatcher;
  readonly runtime: Runtime;
  /** Turns that may be open at a time. */
  readonly maxOpen: number;
  /** How long an engine that gives no answer is asked. */
  readonly answerTimeoutMs: number;
}

/** A full queue is asked again after so long. */
const FULL_RETRY_MS = 1_000;

const taken = (entered: Entered, turnId: string): Extract<Entered, { state: 'accepted' | 'known' }> => {
  if (entered.state === 'conflict')
    throw new ToolExecutionError(
      'conflict',
      `The turn ${turnId} was submitted with another plan, or for somebody else; use a new id for a new plan`,
      { status: 422 },
    );
  if (entered.state === 'full')
    throw new ToolExecutionError(
      'limit_exceeded',
      `The fleet has ${entered.open} turns that have not settled, and takes no more; submit again later, or add workers`,
      { retryAfterMs: FULL_RETRY_MS, classification: 'transient' },
    );
  return entered;
};

/** Puts an engine together: a ledger that outlives processes, and a dispatcher that gives turns to live ones. */
export function fleetEngine({ ledger, dispatcher, runtime, maxOpen, answerTimeoutMs }: FleetParts): FleetEngine {
  const workers = new Set<Closeable>();
  const asked = <T>(question: () => Promise<T>): Promise<T> =>
    firstValueFrom(untilAnswered(question, runtime, answerTimeoutMs));
  const submit = async (turnId: string, plan: FleetPlan, options: SubmitOptions = {}): Promise<Submitted> => {
    checkTurnId(turnId);
    const record = planRecord(plan, options);
    const entry = {
      turnId,
      record: JSON.stringify(record),
      digest: digestOf(record),
      tenant: options.tenant ?? '',
      timeoutMs: record.options.timeoutMs,
      submission: runtime.id(),
    };
    const { state, isSettled, deadlineAtMs, backlog } = taken(await asked(() => ledger.enter(entry, maxOpen)), turnId);
    // Also for one that is known: whoever submitted it may have died before it was handed on.
    if (!isSettled) await asked(() => dispatcher.add(turnId, backlog));
    return { turnId, state, deadlineAtMs };
  };
  const health = async (): Promise<FleetHealth> => {
    const { overdue, ...report } = await asked(() => ledger.report());
    return { engine: dispatcher.engine, ...report, stuck: overdue };
  };
  const close = async (): Promise<void> => {
    await Promise.all([...workers].map((worker) => worker.close()));
    await dispatcher.close();
    ledger.close();
  };
  let closing: Promise<void> | undefined;
  return {
    serve: (turns) => {
      const worker = serveTurns(ledger, dispatcher, turns, runtime);
      workers.add(worker);
      return worker;
    },
    submit,
    attach: (turnId): Observable<TraceEvent> =>
      defer(async () => checkTurnId(turnId)).pipe(concatMap(() => attached(ledger, turnId, runtime))),
    cancel: (turnId) => asked(() => ledger.cancel(turnId)),
    health,
    close: () => (closing ??= close()),
  };
}
