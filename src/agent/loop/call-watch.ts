import type { ToolEvent, TurnEvent } from '../../contract/event.ts';
import type { FailureNotification } from '../../contract/recovery.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Effect } from '../../policy/model-text.ts';

/** What is known of one call. */
class CallFacts {
  #executed = false;
  #executedBefore = false;
  #uncertain = false;
  #running = false;
  /** An attempt has failed, and its error is about to be told. */
  #failing = false;

  record({ type }: ToolEvent): void {
    switch (type) {
      case 'attempt_started':
        this.#executedBefore = this.#executed;
        this.#executed = true;
        this.#running = true;
        break;
      case 'attempt_failed':
        this.#running = false;
        this.#failing = true;
        break;
      case 'attempt_canceled':
        this.#running = false;
        this.#uncertain = true;
        break;
      case 'attempt_succeeded':
        this.#running = false;
        this.#uncertain = false;
        break;
      default:
        break;
    }
  }

  fail(error: ToolExecutionError): void {
    if (!this.#failing) return;
    this.#failing = false;
    // Attempts before this one ran all the same.
    if (!error.executed) this.#executed = this.#executedBefore;
    else if (error.uncertain) this.#uncertain = true;
  }

  get running(): boolean {
    return this.#running;
  }

  get executed(): boolean {
    return this.#executed;
  }

  get effect(): Effect {
    if (this.#running || this.#uncertain) return 'may_have_run';
    return this.#executed ? 'ran' : 'did_not_run';
  }
}

const NOTHING = new CallFacts();

/**
 * Follows the calls of one turn: which tools ran, and which may have. Whether a failed attempt ran at all is in its
 * error, which the error handler is told.
 */
export class CallWatch {
  readonly #byNode = new Map<string, CallFacts>();
  readonly #byCall = new Map<string, CallFacts>();

  record(event: TurnEvent): void {
    if (event.source !== 'call') return;
    if (event.type === 'call_started' && event.nodeId !== undefined) {
      const facts = new CallFacts();
      this.#byNode.set(event.nodeId, facts);
      this.#byCall.set(event.callId, facts);
    }
    this.#byCall.get(event.callId)?.record(event);
  }

  /** A failure of any call of the layer; those of others are passed over. */
  fail({ callId, error }: FailureNotification): void {
    this.#byCall.get(callId)?.fail(error);
  }

  of(nodeId: string): CallFacts {
    return this.#byNode.get(nodeId) ?? NOTHING;
  }
}
