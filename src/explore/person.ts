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
  /** By call and tool: what the call is about to be given. */
  readonly #inputs = new Map<string, unknown>();
  /** By the id of the question: what was shown. */
  readonly #approved = new Map<string, unknown>();
  /** Calls that go on with the approval of another input. */
  readonly #unapproved = new Set<string>();

  /** A rule that decides as the given one does, and shows the person what it decides about. */
  seeing(rule: NeedsApproval<unknown>): Rule {
    return (input: unknown, context: NeedsApprovalContext) => {
      this.#inputs.set(nameOf(context), input);
      if (typeof rule === 'function') return rule(input, context);
      return typeof rule === 'object' ? neededBy(rule, input) : rule;
    };
  }

  readonly ask = (request: ApprovalRequest): true => {
    if (!this.#approved.has(request.id)) this.#approved.set(request.id, this.#inputs.get(nameOf(request)));
    return true;
  };

  hear(event: TraceEvent): void {
    if (event.source !== 'call' || event.type !== 'approval' || event.step !== 'approved') return;
    const name = nameOf(event);
    if (isDeepStrictEqual(this.#approved.get(event.approvalId), this.#inputs.get(name))) this.#unapproved.delete(name);
    else this.#unapproved.add(name);
  }

  /** Whether a call has nobody's yes to what it is given. */
  disowns(callId: string, toolName: string): boolean {
    return this.#unapproved.size > 0 && this.#unapproved.has(nameOf({ callId, toolName }));
  }
}

const nameOf = ({ callId, toolName }: Pick<NeedsApprovalContext, 'callId' | 'toolName'>): string =>
  JSON.stringify([callId, toolName]);
