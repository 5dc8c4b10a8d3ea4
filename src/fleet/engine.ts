import { defer, firstValueFrom, type Observable } from 'rxjs';
import type {
  Closeable,
  FleetEngine,
  FleetHealth,
  FleetPlan,
  FleetTurns,
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
import { CLOSE_MS, within } from './worker/within.ts';
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
  /** Called once all of it is closed. */
  readonly closed?: () => void;
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
      `The fleet has ${entered.open} turns that have not settled, and takes no more; submit again later, or ` +
        'add workers',
      { retryAfterMs: FULL_RETRY_MS, classification: 'transient' },
    );
  return entered;
};

/** An engine of a ledger that outlives processes, and of a dispatcher that gives turns to live ones. */
export class LedgerFleet implements FleetEngine {
  readonly #parts: FleetParts;
  readonly #workers = new Set<Closeable>();
  #closing: Promise<void> | undefined;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  serve(turns: FleetTurns): Closeable {
    const { ledger, dispatcher, runtime } = this.#parts;
    const worker = serveTurns(ledger, dispatcher, turns, runtime);
    this.#workers.add(worker);
    return worker;
  }

  async submit(turnId: string, plan: FleetPlan, options: SubmitOptions = {}): Promise<Submitted> {
    checkTurnId(turnId);
    const { ledger, dispatcher, runtime, maxOpen } = this.#parts;
    const record = planRecord(plan, options);
    const entry = {
      turnId,
      record: JSON.stringify(record),
      digest: digestOf(record),
      tenant: options.tenant ?? '',
      timeoutMs: record.options.timeoutMs,
      submission: runtime.id(),
    };
    const entered = await this.#asked(() => ledger.enter(entry, maxOpen));
    const { state, isSettled, deadlineAtMs, place, submission } = taken(entered, turnId);
    // Also for one that is known: whoever submitted it may have died before it was handed on.
    if (!isSettled) await this.#asked(() => dispatcher.add(turnId, place, submission));
    return { turnId, state, deadlineAtMs };
  }

  attach(turnId: string): Observable<TraceEvent> {
    const { ledger, runtime } = this.#parts;
    return defer(() => {
      checkTurnId(turnId);
      return attached(ledger, turnId, runtime);
    });
  }

  cancel(turnId: string): Promise<boolean> {
    return this.#asked(() => this.#parts.ledger.cancel(turnId));
  }

  async health(): Promise<FleetHealth> {
    const { ledger, dispatcher } = this.#parts;
    const { overdue, ...report } = await this.#asked(() => ledger.report());
    return { engine: dispatcher.engine, ...report, stuck: overdue };
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { ledger, dispatcher, runtime, closed } = this.#parts;
    await Promise.all([...this.#workers].map((worker) => worker.close()));
    await within(CLOSE_MS, runtime, dispatcher.close());
    ledger.close();
    closed?.();
  }

  #asked<T>(question: () => Promise<T>): Promise<T> {
    const { runtime, answerTimeoutMs } = this.#parts;
    return firstValueFrom(untilAnswered(question, runtime, answerTimeoutMs));
  }
}
