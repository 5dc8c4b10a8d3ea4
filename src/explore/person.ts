import { isDeepStrictEqual } from 'node:util';
import type { TraceEvent } from '../contract/event.ts';
import { neededBy } from '../policy/gate/when.ts';
import type { ApprovalRequest, NeedsApproval, NeedsApprovalContext } from '../contract/gate/approval.ts';

type Rule = Extract<NeedsApproval<unknown>, (...given: never) => unknown>;

/**
 * Whoever approves the calls of an explored plan: says yes to each question, and remembers what it was about. Outlives
 * the processes that ask.
 */
export class Person {
  /** By call and tool: what the call was about to be given, as it was then: a tool may change it. */
  readonly #inputs = new Map<string, unknown>();
  /** By the id of the question: what was shown. */
  readonly #shown = new Map<string, unknown>();
  /** By call and tool: what was approved for it. */
  readonly #approved = new Map<string, unknown>();

  /** A rule that decides as the given one does, and shows the person what it decides about. */
  seeing(rule: NeedsApproval<unknown>): Rule {
    return (input: unknown, context: NeedsApprovalContext) => {
      const name = nameOf(context);
      this.#inputs.set(name, structuredClone(input));
      // Decided anew: another input may need nobody.
      this.#approved.delete(name);
      if (typeof rule === 'function') return rule(input, context);
      return typeof rule === 'object' ? neededBy(rule, input) : rule;
    };
  }

  readonly ask = (request: ApprovalRequest): true => {
    if (!this.#shown.has(request.id)) this.#shown.set(request.id, this.#inputs.get(nameOf(request)));
    return true;
  };

  hear(event: TraceEvent): void {
    if (event.source !== 'call' || event.type !== 'approval' || event.step !== 'approved') return;
    this.#approved.set(nameOf(event), this.#shown.get(event.approvalId));
  }

  /** Whether a call has nobody's yes to what it is given. */
  disowns(callId: string, toolName: string, input: unknown): boolean {
    const name = nameOf({ callId, toolName });
    return this.#approved.has(name) && !isDeepStrictEqual(this.#approved.get(name), input);
  }
}

const nameOf = ({ callId, toolName }: Pick<NeedsApprovalContext, 'callId' | 'toolName'>): string =>
  JSON.stringify([callId, toolName]);
