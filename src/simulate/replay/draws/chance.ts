import type { TraceEvent } from '../../../contract/event.ts';
import { failureKey } from '../trace/attempts.ts';
import { drawFor } from './neighbours.ts';
import type { Recording } from '../trace/recording.ts';

/** A draw that admits whatever share a recovering breaker lets through, and one that never does. */
const [ADMITS, REFUSES] = [0, 1 - 2 ** -32];

/**
 * The numbers and ids of a replay. A backoff gets the number that was drawn for it when it was recorded; one that was
 * not made then, a number that belongs to its call and attempt, so that another policy changes no other call's luck. A
 * recovering breaker admits what it admitted.
 */
export class Chance {
  readonly #recording: Recording;
  /** The call that is acting, as far as that is known: the one that began last, or whose wait has just ended. */
  callId = '';
  #failed: string | undefined;
  readonly #failures = new Map<string, number>();
  readonly #starts = new Map<string, number>();
  readonly #recordedStarts = new Map<string, number>();
  readonly #nodes: ReadonlyMap<string, string>;
  #beginning: string | undefined;
  #node: string | undefined;
  #made = 0;

  constructor(recording: Recording) {
    this.#recording = recording;
    this.#nodes = new Map(
      recording.turns.flatMap(({ started, calls }) =>
        [...calls].map(([nodeId, { callId }]): [string, string] => [`${started.turnId} ${nodeId}`, callId]),
      ),
    );
    for (const event of recording.events) {
      if (event.type === 'call_started') this.#recordedStarts.set(event.callId, 0);
      if (event.type === 'attempt_started') count(this.#recordedStarts, event.callId);
    }
  }

  /** A call or turn begins now, and is to have the id that it was recorded under. */
  begins(id: string): void {
    this.#beginning = id;
    this.#node = undefined;
  }

  id(): string {
    const begun = this.#beginning;
    this.#beginning = undefined;
    if (begun !== undefined) return begun;
    // A node that never began when it was recorded is known by its name alone.
    if (this.#node !== undefined) return this.#nodes.get(this.#node) ?? `unmade ${this.#node}`;
    return `made ${++this.#made}`;
  }

  /** Told of each event, so that it is known what the next number is for. */
  hear(event: TraceEvent): void {
    if (event.source === 'turn') {
      if (event.type === 'node_started') this.#node = `${event.turnId} ${event.nodeId}`;
      return;
    }
    if (event.source !== 'call') return;
    if (event.type === 'call_started' || event.type === 'alternative_used') this.callId = event.callId;
    if (event.type === 'attempt_started') {
      count(this.#starts, event.callId);
      count(this.#failures, `${event.callId} ${event.toolName}`);
    }
    if (event.type === 'decision') {
      this.callId = event.callId;
      this.#failed = undefined;
    }
    if (event.type === 'attempt_failed' || event.type === 'rejected') {
      const own = this.#failures.get(`${event.callId} ${event.toolName}`) ?? 0;
      this.#failed = failureKey(event.callId, event.toolName, own, event.type === 'rejected');
    }
  }

  draw(): number {
    const failed = this.#failed;
    if (failed !== undefined) return this.#recording.draws.get(failed) ?? drawFor(failed);
    const next = (this.#starts.get(this.callId) ?? 0) + 1;
    const recorded = this.#recordedStarts.get(this.callId);
    if (recorded === undefined) return drawFor(`${this.callId} ${next}`);
    return next <= recorded ? ADMITS : REFUSES;
  }
}

const count = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
