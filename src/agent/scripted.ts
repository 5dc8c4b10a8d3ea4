import { Observable, concat, defer, of, throwError } from 'rxjs';
import type { AgentMessage } from './message.ts';
import type { AgentModel, ModelEvent, ModelTool, StopReason } from './model.ts';

/** A tool call that a scripted model makes. */
export interface ScriptedCall {
  /** Default: `call_` and a number, counted over the whole script. */
  readonly id?: string;
  /** The tool's name. */
  readonly name: string;
  /** The input, as if parsed from the model's JSON. Default: none. */
  readonly input?: unknown;
  /** What the model wrote instead of JSON, to try a call that cannot be read. Default: none. */
  readonly unparsed?: string;
}

/**
 * One answer of a scripted model: text, then tool calls, then a stop or an error. Or the events themselves, or any
 * stream of them.
 */
export type ScriptedStep =
  | {
      /** The text, said in one piece before the calls. Default: none. */
      readonly text?: string;
      /** The calls, in order. Default: none. */
      readonly calls?: readonly ScriptedCall[];
      /** Default: `tool_calls` when there are any, else `end`. */
      readonly stop?: StopReason;
      /** The step errors with this after its text and calls, instead of stopping. */
      readonly error?: unknown;
    }
  | readonly ModelEvent[]
  | Observable<ModelEvent>;

/** What a scripted model was asked. */
export interface ScriptedRequest {
  /** The transcript at that time. */
  readonly messages: readonly AgentMessage[];
  /** The tools that were offered. */
  readonly tools: readonly ModelTool[];
  /** The system prompt; absent where the run has none. */
  readonly system?: string;
  /** The signal of that step, to see whether the run aborted it. */
  readonly signal: AbortSignal;
}

/** A model for tests that remembers what it was asked. */
export interface ScriptedModel extends AgentModel {
  /** What the model was asked so far, one entry for each time. */
  readonly requests: readonly ScriptedRequest[];
}

const isEvents = (step: ScriptedStep): step is readonly ModelEvent[] => Array.isArray(step);

/**
 * A model for tests: answers as its script says, one step for each time it is asked; when there is none left it errors.
 *
 * @param steps the answers, or a function that makes them of what was asked
 *
 * @example const model = scriptedModel([{ calls: [{ name: 'flight_search', input: { from: 'HEL', to: 'NRT' } }] }, {
 * text: 'Done.' }]);
 */
export function scriptedModel(
  steps: readonly ScriptedStep[] | ((request: ScriptedRequest, place: number) => ScriptedStep | undefined),
): ScriptedModel {
  const requests: ScriptedRequest[] = [];
  let ids = 0;
  const play = (step: ScriptedStep): Observable<ModelEvent> => {
    if (step instanceof Observable) return step;
    if (isEvents(step)) return of(...step);
    const { text, calls = [], stop = calls.length > 0 ? 'tool_calls' : 'end' } = step;
    const events: ModelEvent[] = text === undefined ? [] : [{ type: 'text', text }];
    for (const { id = `call_${++ids}`, ...call } of calls) events.push({ type: 'tool_call', id, ...call });
    return concat(
      of(...events),
      'error' in step ? throwError(() => step.error) : of<ModelEvent>({ type: 'stop', reason: stop }),
    );
  };
  const model: AgentModel = (messages, tools, { signal, system }) =>
    defer(() => {
      const request = { messages, tools, signal, ...(system === undefined ? {} : { system }) };
      const place = requests.push(request) - 1;
      const step = typeof steps === 'function' ? steps(request, place) : steps[place];
      return step === undefined ? throwError(() => new RangeError(`the script has no step ${place + 1}`)) : play(step);
    });
  return Object.assign(model, { requests });
}
