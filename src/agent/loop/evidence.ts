import { TOOL_ERROR_KIND_MEANINGS, type ToolErrorKind } from '../../contract/error-kind.ts';
import type { ErrorReport, ToolEvent, TraceEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { VerifyFinding } from '../../contract/settle/verify.ts';
import { outputText, type Effect } from '../../policy/model-text.ts';
import type { AgentEvent } from '../event.ts';
import { shown } from './stored-outputs.ts';
import { OUTPUT_CHARS } from './limits.ts';
import type { KnownAnswer, TranscriptEvidence } from './transcript.ts';

/**
 * What a failed attempt says about its tool. A lost connection may have been refused before anything was sent: that is
 * not in the report.
 */
const effectOfFailure = ({ kind, uncertain }: ErrorReport): Effect => {
  if (uncertain === true || kind === 'transport_error' || kind === 'internal_error') return 'may_have_run';
  if (!Object.hasOwn(TOOL_ERROR_KIND_MEANINGS, kind)) return 'may_have_run';
  return TOOL_ERROR_KIND_MEANINGS[kind as ToolErrorKind].executed ? 'ran' : 'did_not_run';
};

/** Of two attempts of one call the graver counts: what may have happened in the first is not undone by the second. */
const GRAVITY: Readonly<Record<Effect, number>> = { did_not_run: 0, undone: 1, ran: 2, may_have_run: 3 };
const graver = (a: Effect, b: Effect): Effect => (GRAVITY[a] >= GRAVITY[b] ? a : b);

/** What a verification says of the attempts before it. */
const FOUND: Readonly<Record<VerifyFinding, Effect>> = { done: 'ran', not_done: 'undone', unknown: 'may_have_run' };

/** Nothing is kept of an output that is made known again: the run that kept it is gone. */
const NOWHERE = { keep: () => undefined, read: () => undefined };

/** One call, as its events tell of it. */
class SeenCall {
  readonly toolCallId: string;
  /** Its effect, as far as the events prove it. */
  known: Effect = 'may_have_run';
  /** Its output, where the events hold all of it. */
  answer: KnownAnswer | undefined;
  #effect: Effect = 'did_not_run';
  #running = false;

  constructor(toolCallId: string) {
    this.toolCallId = toolCallId;
  }

  /**
   * @param isWhole whether outputs are in the events as they are: `trace$` has none, or what `capture` lets through of
   * them
   */
  record(event: ToolEvent, isWhole: boolean): void {
    switch (event.type) {
      case 'attempt_started':
        this.#running = true;
        break;
      case 'attempt_succeeded':
        // A success settles what earlier attempts left open.
        this.#end('ran');
        break;
      case 'attempt_failed':
        this.#end(graver(this.#effect, effectOfFailure(event.error)));
        break;
      case 'attempt_canceled':
        this.#end('may_have_run');
        break;
      case 'verified':
        // It speaks of all attempts before it.
        this.#end(FOUND[event.finding]);
        break;
      case 'settled': {
        const { output, toolName } = event.result;
        if (output === undefined || !isWhole) break;
        const text = shown(outputText(output.content), OUTPUT_CHARS, NOWHERE);
        this.answer = { effect: 'ran', result: { callId: this.toolCallId, toolName, text } };
        break;
      }
      default:
        break;
    }
    const isOver =
      event.type === 'settled' ||
      event.type === 'abandoned' ||
      event.type === 'attempt_succeeded' ||
      event.type === 'rejected';
    this.known = isOver && !this.#running ? this.#effect : 'may_have_run';
  }

  #end(effect: Effect): void {
    this.#running = false;
    this.#effect = effect;
  }
}

/** The nodes of one turn, of which those that still waited for another have no call to tell of them. */
class SeenTurn {
  readonly #nodes = new Map<string, { readonly toolCallId: string | undefined; readonly needs: readonly string[] }>();
  readonly #started = new Set<string>();
  readonly #settled = new Set<string>();
  #over = false;

  record(event: TurnOwnEvent): void {
    if (event.type === 'turn_started') {
      for (const { id, toolCallId, needs } of event.nodes) this.#nodes.set(id, { toolCallId, needs });
    } else if (event.type === 'node_started') this.#started.add(event.nodeId);
    else if (event.type === 'node_settled') this.#settled.add(event.nodeId);
    else if (event.type === 'settled' || event.type === 'abandoned') this.#over = true;
  }

  /**
   * The calls of nodes that cannot have begun: a need of theirs had not settled, they settled without having begun, or
   * the turn did.
   */
  get unbegun(): string[] {
    const hasBegun = (id: string, needs: readonly string[]): boolean =>
      this.#started.has(id) || !(this.#over || this.#settled.has(id) || needs.some((need) => !this.#settled.has(need)));
    return [...this.#nodes].flatMap(([id, { toolCallId, needs }]) =>
      toolCallId === undefined || hasBegun(id, needs) ? [] : [toolCallId],
    );
  }
}

/** What stored events tell, kept apart by call, by turn, and by what a run of an agent has answered. */
class Testimony {
  readonly #calls = new Map<string, SeenCall>();
  readonly #turns = new Map<string, SeenTurn>();
  readonly #answers = new Map<string, KnownAnswer>();

  record(event: TraceEvent | AgentEvent): void {
    if ('source' in event) this.#hearTrace(event, false);
    else if (event.type === 'tools') this.#hearTrace(event.event, true);
    else if (event.type === 'tool_result') {
      const { effect, result } = event;
      this.#answers.set(result.callId, { effect, result });
    }
  }

  get evidence(): TranscriptEvidence {
    const effects = new Map<string, Effect>();
    const meet = (toolCallId: string, effect: Effect): void => {
      effects.set(toolCallId, (effects.get(toolCallId) ?? effect) === effect ? effect : 'may_have_run');
    };
    const made = new Map<string, number>();
    for (const { toolCallId, known } of this.#calls.values()) {
      meet(toolCallId, known);
      made.set(toolCallId, (made.get(toolCallId) ?? 0) + 1);
    }
    for (const turn of this.#turns.values()) for (const toolCallId of turn.unbegun) meet(toolCallId, 'did_not_run');
    const evidence = new Map<string, Effect | KnownAnswer>(effects);
    const outputs = [...this.#calls.values()].flatMap(({ toolCallId, answer }) =>
      answer === undefined ? [] : [[toolCallId, answer] as const],
    );
    // What the run itself answered is what its model has read.
    const answers = [...outputs, ...this.#answers];
    // One of two calls under an id is no answer to the other.
    for (const [toolCallId, answer] of answers) if ((made.get(toolCallId) ?? 0) < 2) evidence.set(toolCallId, answer);
    return evidence;
  }

  #hearTrace(event: TraceEvent, isWhole: boolean): void {
    if (event.source === 'turn') {
      const turn = this.#turns.get(event.turnId) ?? new SeenTurn();
      this.#turns.set(event.turnId, turn);
      turn.record(event);
    }
    if (event.source !== 'call') return;
    const { callId } = event;
    if (event.type === 'call_started' && event.toolCallId !== undefined && !this.#calls.has(callId)) {
      this.#calls.set(callId, new SeenCall(event.toolCallId));
    }
    this.#calls.get(callId)?.record(event, isWhole);
  }
}

/**
 * Reads from stored events what became of calls, by the id that the model gave them: for `repairTranscript` after a
 * crash. A call counts as not run only when the events saw it refused or ended without an attempt, or saw that it still
 * waited for another call of its turn (`$result`): one that they do not know, or do not see ended, may have run. So may
 * one whose id was another call's as well, as in two runs on one layer, unless both came to the same.
 *
 * The events of a run of `runAgent` hold results as well, which those of `trace$` do not: a call that had its answer,
 * or whose own stream had settled, gets that answer again, at most 20,000 characters of it. Store each event as it is
 * told: what is lost at the end can only be guessed.
 *
 * @param events of `spillway.trace$`, or of a run of `runAgent`, in order; events that tell nothing of a call are
 *   passed over
 *
 * @example
 * const seen: TraceEvent[] = [];
 * spillway.trace$.subscribe((event) => seen.push(event));
 * repairTranscript([], evidenceFromTrace(seen));
 */
export function evidenceFromTrace(events: Iterable<TraceEvent | AgentEvent>): TranscriptEvidence {
  const testimony = new Testimony();
  for (const event of events) testimony.record(event);
  return testimony.evidence;
}
