import type { ToolErrorKind } from '../../contract/error-kind.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { PlanNode } from '../../contract/turn.ts';
import type { LoopGuard } from './guard.ts';
import type { AssistantMessage, ToolCallPart } from '../message.ts';
import { PathError, resolveReferences } from '../../policy/result-reference.ts';
import { inCycle, referencesIn } from './references.ts';
import { freshId } from './transcript.ts';

/** A call of a step, under an id that no other call of the transcript has. */
export interface StepCall {
  readonly call: ToolCallPart;
  /** The id that the model gave it, by which its other calls refer to it. */
  readonly givenId: string;
  /** A call before it in the step has the same id. */
  readonly duplicateOf?: ToolCallPart;
}

/** Why a call is not made. */
export interface Refusal {
  readonly kind: ToolErrorKind;
  /** A sentence for the model. */
  readonly detail: string;
}

/** What becomes of a step's calls: those that run, as nodes of a plan, and those that do not. */
export interface ToolUseAdmission {
  readonly nodes: readonly PlanNode[];
  /** By call id. */
  readonly refusals: ReadonlyMap<string, Refusal>;
  /** By call id, filled while the plan runs: inputs made of other results, and what was wrong with them. */
  readonly inputs: ReadonlyMap<string, unknown>;
  readonly faults: ReadonlyMap<string, string>;
}

/**
 * Gives each call of a new message an id of its own: providers repeat ids, leave them empty, and use them again in the
 * next step.
 */
export function withUniqueIds(
  message: AssistantMessage,
  taken: Set<string>,
  newId: () => string,
): { readonly message: AssistantMessage; readonly calls: readonly StepCall[] } {
  const calls: StepCall[] = [];
  const inStep = new Map<string, ToolCallPart>();
  const content = message.content.map((part) => {
    if (part.type !== 'tool_call') return part;
    const { id: givenId } = part;
    const id = givenId === '' ? `call_${newId()}` : taken.has(givenId) ? freshId(givenId, taken) : givenId;
    const call = id === givenId ? part : { ...part, id };
    const duplicateOf = givenId === '' ? undefined : inStep.get(givenId);
    taken.add(id);
    if (duplicateOf === undefined) inStep.set(givenId, call);
    calls.push({ call, givenId, ...(duplicateOf === undefined ? {} : { duplicateOf }) });
    return call;
  });
  return { message: { ...message, content }, calls };
}

const NAMES_MAX = 50;
const listed = (names: readonly string[]): string =>
  names.length === 0
    ? 'There are no tools.'
    : `The tools are: ${names.slice(0, NAMES_MAX).join(', ')}${names.length > NAMES_MAX ? ', ...' : ''}.`;

const sameInput = (a: ToolCallPart, b: ToolCallPart): boolean =>
  a.name === b.name && a.unparsed === b.unparsed && JSON.stringify(a.input) === JSON.stringify(b.input);

/** What is wrong with a call itself. */
const faultOf = ({ call, duplicateOf }: StepCall, tools: ReadonlyMap<string, AnyTool>): Refusal | undefined => {
  if (duplicateOf !== undefined) {
    return sameInput(call, duplicateOf)
      ? {
          kind: 'duplicate_in_flight',
          detail: 'It has the id of another call of this step and repeats it; that one was made, this one was not.',
        }
      : {
          kind: 'invalid_parameters',
          detail: 'It has the id of another call of this step; give each call an id of its own.',
        };
  }
  if (!tools.has(call.name)) return { kind: 'unknown_tool', detail: listed([...tools.keys()]) };
  if (call.unparsed !== undefined)
    return { kind: 'invalid_parameters', detail: 'It is not JSON, or was cut off before its end.' };
  return undefined;
};

/**
 * Decides which calls of a step run, and in which order: in parallel, but for those that refer to each other. One that
 * may not run does not keep the others from it, except those that need its result.
 */
export function admit(
  calls: readonly StepCall[],
  tools: ReadonlyMap<string, AnyTool>,
  toolCallsPerTurn: number,
  guard: LoopGuard,
): ToolUseAdmission {
  const refusals = new Map<string, Refusal>();
  const inputs = new Map<string, unknown>();
  const faults = new Map<string, string>();
  const needs = new Map<string, readonly string[]>();
  const originals = calls.filter(({ duplicateOf }) => duplicateOf === undefined);
  const idOf = new Map(originals.map(({ call, givenId }) => [givenId, call.id]));
  const known = new Set([...idOf.keys()].filter((id) => id !== ''));
  for (const step of calls) {
    const { call, givenId } = step;
    const objection = step.duplicateOf === undefined ? guard.objection(call) : undefined;
    const refusal = objection === undefined ? faultOf(step, tools) : { kind: 'blocked' as const, detail: objection };
    if (refusal !== undefined) {
      refusals.set(call.id, refusal);
      continue;
    }
    const references = referencesIn(call.input, givenId, known);
    if (references.fault !== undefined) refusals.set(call.id, { kind: 'invalid_parameters', detail: references.fault });
    else
      needs.set(
        call.id,
        references.needs.map((id) => idOf.get(id) ?? id),
      );
  }
  const refers = [...needs.values()].some(({ length }) => length > 0);
  for (const id of refers ? inCycle(needs) : [])
    refusals.set(id, {
      kind: 'invalid_parameters',
      detail: 'It and other calls of this step need each other’s results in a circle.',
    });
  let places = toolCallsPerTurn;
  for (const { call } of calls) {
    if (refusals.has(call.id)) continue;
    if (places-- <= 0)
      refusals.set(call.id, {
        kind: 'limit_exceeded',
        detail: `At most ${toolCallsPerTurn} calls run in one turn; this one was not made.`,
      });
  }
  if (refers) refuseDependents(needs, refusals);
  const node = ({ call }: StepCall): PlanNode => {
    const needed = needs.get(call.id) ?? [];
    const made = (values: Readonly<Record<string, unknown>>): unknown => {
      try {
        const outputs = Object.fromEntries([...idOf].map(([given, id]) => [given, values[id]]));
        const input = resolveReferences(call.input, outputs);
        inputs.set(call.id, input);
        return input;
      } catch (error) {
        if (error instanceof PathError) faults.set(call.id, error.message);
        throw error;
      }
    };
    if (needed.length === 0) inputs.set(call.id, call.input);
    // The registered tool itself, not its name: what is offered is what runs.
    return {
      id: call.id,
      tool: tools.get(call.name) ?? call.name,
      input: needed.length === 0 ? call.input : made,
      needs: needed,
      toolCallId: call.id,
    };
  };
  return { nodes: calls.filter(({ call }) => !refusals.has(call.id)).map(node), refusals, inputs, faults };
}

/** Who needs the result of a call that is not made is not made either. */
const refuseDependents = (needs: ReadonlyMap<string, readonly string[]>, refusals: Map<string, Refusal>): void => {
  const neededBy = new Map<string, string[]>();
  for (const [id, list] of needs) {
    for (const need of list) {
      const dependents = neededBy.get(need);
      if (dependents === undefined) neededBy.set(need, [id]);
      else dependents.push(id);
    }
  }
  const refused = [...refusals.keys()];
  // Grows while it is walked.
  for (const id of refused) {
    for (const dependent of neededBy.get(id) ?? []) {
      if (refusals.has(dependent)) continue;
      refusals.set(dependent, {
        kind: 'dependency_failed',
        detail: `It needs the result of ${id}, which was not made.`,
      });
      refused.push(dependent);
    }
  }
};
