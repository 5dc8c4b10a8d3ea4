import { CHECK, NOW } from '../../policy/advice.ts';
import { EFFECT_SENTENCES, NO_OUTPUT, type Effect } from '../../policy/model-text.ts';
import {
  toolCallsOf,
  type AgentMessage,
  type AssistantMessage,
  type ToolCallPart,
  type ToolMessage,
  type ToolResult,
} from '../message.ts';

/** The answer that a call had before it was lost. */
export interface KnownAnswer {
  /** Whether the tool ran. */
  readonly effect: Effect;
  /** The answer itself; it is put under the call's present id and name. */
  readonly result: ToolResult;
}

/**
 * What is known of calls without a result, by call id: whether its tool ran, or its answer itself. `evidenceFromTrace`
 * makes it of stored events.
 */
export type TranscriptEvidence = ReadonlyMap<string, Effect | KnownAnswer>;

/**
 * One thing that was mended. `answered`: a call had no result and got its own, where that is known, or one that says
 * whether its tool ran. `renamed`: an id was empty, or that of another call of the message. `dropped_result`: a result
 * without its call in the message before. `dropped_duplicate`: a second result for one call. `filled`: a result without
 * text. `reordered`: results out of call order, or in several messages.
 */
export interface TranscriptRepair {
  /** What was done, as listed above. */
  readonly type: 'answered' | 'renamed' | 'dropped_result' | 'dropped_duplicate' | 'filled' | 'reordered';
  /** The call's id, after any renaming. */
  readonly callId: string;
  /** The index, in the list given, of the message that was changed. */
  readonly at: number;
  /** With `answered`: whether the call's tool ran. */
  readonly effect?: Effect;
  /** With `renamed`: the id that the call had before. */
  readonly from?: string;
}

/** A transcript that can be sent, and what was changed to make it one. */
export interface RepairedTranscript {
  /** The list given itself, when there was nothing to mend. */
  readonly messages: readonly AgentMessage[];
  /** Every change; empty where nothing was wrong. */
  readonly repairs: readonly TranscriptRepair[];
}

const INTERRUPTED = 'The run was interrupted before this call had a result.';

/** What the tool did is not known to be without consequence. */
const adviceAfter = (effect: Effect): string =>
  effect === 'did_not_run' ? NOW : `${CHECK} Only if it did not: you can try again.`;

/** The answer to a call whose own was lost. */
export const lostResult = ({ id, name }: ToolCallPart, effect: Effect): ToolResult => ({
  callId: id,
  toolName: name,
  text: `${INTERRUPTED} ${EFFECT_SENTENCES[effect]} ${adviceAfter(effect)}`,
  isError: true,
});

/** An id that no other call has, made of one that will not do. */
export function freshId(id: string, taken: ReadonlySet<string>): string {
  const stem = id === '' ? 'call' : id;
  // From here on, so that many of one name are not a search each.
  let number = taken.size + 1;
  while (taken.has(`${stem}_${number}`)) number++;
  return `${stem}_${number}`;
}

/** Repairs a transcript message by message; `repaired` and `repairs` hold the result. */
class Repairer {
  readonly repairs: TranscriptRepair[] = [];
  readonly repaired: AgentMessage[] = [];
  readonly #evidence: TranscriptEvidence;
  readonly #taken: Set<string>;

  constructor(messages: readonly AgentMessage[], evidence: TranscriptEvidence) {
    this.#evidence = evidence;
    this.#taken = new Set(messages.flatMap((message) => toolCallsOf(message).map(({ id }) => id)));
  }

  /**
   * Adds a message that calls tools, and one message with a result for each call. `after`: the messages with results
   * right after it.
   */
  addCalls(message: AssistantMessage, at: number, after: readonly ToolMessage[]): void {
    const calls = toolCallsOf(message);
    const waiting = new Map<string, Array<{ readonly result: ToolResult; readonly at: number }>>();
    const given = after.flatMap(({ results }, place) => results.map((result) => ({ result, at: at + 1 + place })));
    for (const one of given) {
      const same = waiting.get(one.result.callId);
      if (same === undefined) waiting.set(one.result.callId, [one]);
      else same.push(one);
    }
    const ids = this.#uniqueIds(calls, at);
    const answered = calls.map((call, place) => {
      const found = waiting.get(call.id)?.shift();
      return { named: { ...call, id: ids[place] ?? call.id }, found };
    });
    const known = new Set(calls.map(({ id }) => id));
    for (const { result, at: from } of [...waiting.values()].flat())
      this.#repair({
        type: known.has(result.callId) ? 'dropped_duplicate' : 'dropped_result',
        callId: result.callId,
        at: from,
      });
    const results = answered.map(({ named, found }) => this.#resultOf(named, found?.result, found?.at ?? at));
    const inOrder = answered.flatMap(({ found }) => found ?? []);
    const used = new Set(inOrder);
    const kept = given.filter((one) => used.has(one));
    if (after.length > 1 || kept.some((one, place) => one !== inOrder[place]))
      this.#repair({ type: 'reordered', callId: ids[0] ?? '', at: at + 1 });
    this.repaired.push(this.#renamed(message, calls, ids), this.#sameResults(after, results));
  }

  /** Leaves out results that stand after no call at all. */
  drop({ results }: ToolMessage, at: number): void {
    for (const { callId } of results) this.#repair({ type: 'dropped_result', callId, at });
    // One without results is left out too; there is no call to name.
    if (results.length === 0) this.#repair({ type: 'dropped_result', callId: '', at });
  }

  #uniqueIds(calls: readonly ToolCallPart[], at: number): string[] {
    const seen = new Set<string>();
    return calls.map(({ id: from }) => {
      const id = from === '' || seen.has(from) ? freshId(from, this.#taken) : from;
      seen.add(id);
      this.#taken.add(id);
      if (id !== from) this.#repair({ type: 'renamed', callId: id, from, at });
      return id;
    });
  }

  #resultOf(call: ToolCallPart, found: ToolResult | undefined, at: number): ToolResult {
    if (found === undefined) {
      const known = this.#evidence.get(call.id) ?? 'may_have_run';
      const effect = typeof known === 'string' ? known : known.effect;
      this.#repair({ type: 'answered', callId: call.id, at, effect });
      if (typeof known === 'string') return lostResult(call, effect);
      return { ...known.result, callId: call.id, toolName: call.name };
    }
    const isEmpty = !/\S/.test(found.text);
    if (isEmpty) this.#repair({ type: 'filled', callId: call.id, at });
    return found.callId === call.id && !isEmpty
      ? found
      : { ...found, callId: call.id, text: isEmpty ? NO_OUTPUT : found.text };
  }

  #renamed(message: AssistantMessage, calls: readonly ToolCallPart[], ids: readonly string[]): AssistantMessage {
    if (calls.every(({ id }, place) => id === ids[place])) return message;
    let place = 0;
    return {
      ...message,
      content: message.content.map((part) =>
        part.type === 'tool_call' ? { ...part, id: ids[place++] ?? part.id } : part,
      ),
    };
  }

  /** The message that was there, when it was right: what is stored stays as it is. */
  #sameResults(after: readonly ToolMessage[], results: readonly ToolResult[]): ToolMessage {
    const [only] = after;
    const isSame =
      only !== undefined &&
      after.length === 1 &&
      only.results.length === results.length &&
      only.results.every((result, place) => result === results[place]);
    return isSame ? only : { role: 'tool', results };
  }

  #repair(repair: TranscriptRepair): void {
    this.repairs.push(repair);
  }
}

/**
 * Makes a transcript one that can be sent: each tool call is answered exactly once, in call order, in the message right
 * after it.
 *
 * A call without a result gets its own where the evidence has it, else one that says whether its tool ran, did not run,
 * or may have run. Results without a call are dropped, of two for one call the first is kept. All else stays as it is,
 * to the byte. Pure; mending twice changes nothing more.
 *
 * @param messages the transcript; it may stop anywhere
 * @param evidence what is known of calls without a result, by call id
 *
 * @example
 * const call = { type: 'tool_call', id: 'c1', name: 'book_trip', input: {} } as const;
 * repairTranscript([{ role: 'assistant', content: [call] }], new Map([['c1', 'did_not_run']])).messages.length; // 2
 */
export function repairTranscript(
  messages: readonly AgentMessage[],
  evidence: TranscriptEvidence = new Map(),
): RepairedTranscript {
  const repairer = new Repairer(messages, evidence);
  for (let at = 0; at < messages.length;) {
    const message = messages[at];
    if (message === undefined) break;
    const after: ToolMessage[] = [];
    if (message.role === 'assistant') {
      for (let next = messages[at + 1]; next?.role === 'tool'; next = messages[at + 1 + after.length]) after.push(next);
      const [call] = toolCallsOf(message);
      if (call !== undefined) repairer.addCalls(message, at, after);
      else {
        repairer.repaired.push(message);
        after.forEach((orphan, place) => repairer.drop(orphan, at + 1 + place));
      }
    } else if (message.role === 'tool') repairer.drop(message, at);
    else repairer.repaired.push(message);
    at += 1 + after.length;
  }
  const { repaired, repairs } = repairer;
  return { messages: repairs.length === 0 ? messages : repaired, repairs };
}
