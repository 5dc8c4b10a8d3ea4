import type { RequestBody } from './body.ts';
import { edited, elementsOf, memberEdit, membersOf, startOf, type Edit, type Span } from '../wire/json.ts';
import { restoringEdits, type KnownMessage } from './restore.ts';
import type { ConversationRecord } from '../conversation/conversation.ts';

/**
 * The client's request as the upstream gets it, and as it goes on step by step. What is not ours stays as the client
 * wrote it, to the byte.
 */
export class ConversationRequest {
  /** The first step. */
  readonly text: string;
  readonly #members: ReadonlyMap<string, Span>;
  readonly #tail: Span;

  constructor(
    { text, value }: RequestBody,
    definitions: readonly string[],
    known: ReadonlyArray<readonly [KnownMessage, ConversationRecord]>,
  ) {
    const start = startOf(text);
    const members = membersOf(text, start);
    const messages = members.get('messages');
    const edits: Edit[] = [];
    if (messages !== undefined && known.length > 0)
      edits.push(
        ...restoringEdits(text, value['messages'] as readonly unknown[], elementsOf(text, messages.from), known),
      );
    if (definitions.length > 0) edits.push(toolsEdit(text, members, definitions));
    this.text = edited(text, edits);
    this.#members = membersOf(this.text, startOf(this.text));
    this.#tail = this.#members.get('messages') ?? { from: 0, to: 0 };
  }

  /**
   * A further step.
   * @param messages what was said since, each message as JSON
   * @param choice the `tool_choice` in place of the client's
   * @param container where the upstream runs code, once it has said so
   */
  next(messages: readonly string[], choice: string | undefined, container: string | undefined): string {
    const at = this.#tail.to - 1;
    const edits: Edit[] = [{ from: at, to: at, text: `,${messages.join(',')}` }];
    if (choice !== undefined) edits.push(memberEdit(this.text, this.#members, 'tool_choice', choice));
    if (container !== undefined && !this.#members.has('container'))
      edits.push(memberEdit(this.text, this.#members, 'container', JSON.stringify(container)));
    return edited(this.text, edits);
  }
}

/** Ours go first: they are the same in every request, so that what is cached behind them stays so. */
const toolsEdit = (text: string, members: ReadonlyMap<string, Span>, definitions: readonly string[]): Edit => {
  const span = members.get('tools');
  const ours = definitions.join(',');
  if (span === undefined || text[span.from] !== '[') return memberEdit(text, members, 'tools', `[${ours}]`);
  const [first] = elementsOf(text, span.from);
  return { from: span.from + 1, to: span.from + 1, text: first === undefined ? ours : `${ours},` };
};
