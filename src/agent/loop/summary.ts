import type { AgentReason, AgentResult } from '../event.ts';
import type { Effect } from '../../policy/model-text.ts';
import type { AgentLimits } from './limits.ts';

/** Names in one sentence before it says how many more there are. */
const NAMES_MAX = 5;

/** What became of the calls of a run, counted as they were answered. */
export class CallTally {
  #succeeded = 0;
  #failed = 0;
  readonly #open = new Map<string, number>();

  /** Takes in one answer: its tool, what is known of its effect, and whether it failed. */
  add(toolName: string, effect: Effect, hasFailed: boolean): void {
    if (!hasFailed) this.#succeeded++;
    else if (effect === 'may_have_run') this.#open.set(toolName, (this.#open.get(toolName) ?? 0) + 1);
    else this.#failed++;
  }

  /** The calls in words, or nothing where there were none. */
  get words(): string {
    const open = [...this.#open.values()].reduce((sum, count) => sum + count, 0);
    const counts = [
      this.#succeeded === 0 ? [] : [`${this.#succeeded} succeeded`],
      this.#failed === 0 ? [] : [`${this.#failed} failed`],
      open === 0 ? [] : [`${open} may have run, with an outcome that nobody knows (${named([...this.#open.keys()])})`],
    ].flat();
    return counts.length === 0 ? '' : ` Of its tool calls, ${counts.join(', ')}.`;
  }
}

const named = (names: readonly string[]): string => {
  const more = names.length - NAMES_MAX;
  return [...names.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])].join(', ');
};

const turnsOf = (count: number): string => `${count} ${count === 1 ? 'turn' : 'turns'}`;

const budgetOf = ({ tokens, usd }: AgentLimits): string =>
  [tokens === Infinity ? [] : [`${tokens} tokens`], usd === Infinity ? [] : [`${usd} US dollars`]].flat().join(' or ');

const WHY: Readonly<Record<AgentReason, (limits: AgentLimits) => string>> = {
  model_error: () => 'The run failed: the model could not be asked.',
  refused: () => 'The model refused to answer.',
  no_tool_executed: ({ turns }) => `The run failed: in all of its ${turnsOf(turns)} no tool ever ran.`,
  turns: ({ turns }) => `The run stopped without an answer, at its limit of ${turnsOf(turns)}.`,
  time: ({ timeMs }) => `The run stopped without an answer, at its limit of ${timeMs} ms.`,
  budget: (limits) => `The run stopped without an answer: its budget of ${budgetOf(limits)} is used up.`,
  output_tokens: () => 'The answer is cut off, at the limit of tokens that the model may write.',
  context_full: () => "The run stopped without an answer: the conversation fills the model's window.",
};

/**
 * What a run came to, in words for a person: how it ended, what its calls did, and which of them may have happened
 * without anybody knowing.
 */
export function runSummary(
  { status, reason, turns }: Pick<AgentResult, 'status' | 'reason' | 'turns'>,
  calls: CallTally,
  limits: AgentLimits,
): string {
  if (reason !== undefined) return `${WHY[reason](limits)}${calls.words}`;
  const end = status === 'canceled' ? 'The run was canceled.' : `The model answered after ${turnsOf(turns)}.`;
  return `${end}${calls.words}`;
}
