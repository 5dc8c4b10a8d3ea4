import { fieldsOf, type Block } from './blocks.ts';
import { wholeOf, type ByteSource } from '../wire/bytes.ts';
import type { GatewayAnswer } from '../wire/exchange.ts';
import { clientHeaders } from '../wire/headers.ts';
import { edited, elementsOf, memberEdit, membersOf, startOf, type Edit } from '../wire/json.ts';
import { containerOf, type GatewayTurn, type StepEnd } from './answer.ts';
import { isOk, type UpstreamAnswer } from '../wire/upstream.ts';
import { GatewayError } from '../wire/error.ts';

/** The header that tells of what may go wrong later. */
const WARNING_HEADER = 'x-spillway-warning';

interface Answer extends StepEnd {
  readonly text: string;
  readonly id: unknown;
}

const unreadable = (cause?: unknown): GatewayError =>
  new GatewayError('upstream_broken', 'The upstream’s answer cannot be read; ask again', { cause });

/** Reads a whole answer. Its blocks keep their JSON to the byte. */
const answerOf = (text: string): Answer => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw unreadable(error);
  }
  const { content, stop_reason: stopReason, usage, container, id } = fieldsOf(value);
  const span = membersOf(text, startOf(text)).get('content');
  if (!Array.isArray(content) || span === undefined) throw unreadable();
  const blocks = elementsOf(text, span.from).map(({ from, to }, place): Block => ({
    value: fieldsOf(content[place]),
    json: text.slice(from, to),
  }));
  const hasCalls = blocks.some((block) => block.value['type'] === 'tool_use');
  return { text, blocks, hasCalls, stopReason, usage: fieldsOf(usage), container: containerOf(container), id };
};

const isJson = ({ headers }: UpstreamAnswer): boolean =>
  /^application\/json\b/i.test(headers.get('content-type') ?? '');

const bytesOf = async (body: ByteSource, turn: GatewayTurn): Promise<Uint8Array<ArrayBuffer>> => {
  try {
    return await wholeOf(body);
  } catch (error) {
    throw turn.broken(error);
  }
};

/** The client's one answer, made of those of all steps: the blocks it may see, the usage of all. */
const merged = (
  last: Answer,
  turn: GatewayTurn,
  visible: readonly Block[],
  firstId: unknown,
  warning: string | undefined,
): string => {
  const { text, stopReason } = last;
  const members = membersOf(text, startOf(text));
  const edits: Edit[] = [memberEdit(text, members, 'content', `[${visible.map(({ json }) => json).join(',')}]`)];
  if (turn.merged) {
    edits.push(memberEdit(text, members, 'usage', JSON.stringify(turn.usage)));
    if (typeof firstId === 'string') edits.push(memberEdit(text, members, 'id', JSON.stringify(firstId)));
  }
  if (stopReason === 'tool_use' && !visible.some(({ value }) => value['type'] === 'tool_use'))
    edits.push(memberEdit(text, members, 'stop_reason', '"end_turn"'));
  if (warning !== undefined) edits.push(memberEdit(text, members, 'spillway_warning', JSON.stringify(warning)));
  return edited(text, edits);
};

/**
 * The answer to a client that does not stream. Where the gateway has no part in it, it is the upstream's, byte for
 * byte.
 * @throws UpstreamRefusal or GatewayError
 */
export async function plainAnswer(turn: GatewayTurn, first: UpstreamAnswer): Promise<GatewayAnswer> {
  const visible: Block[] = [];
  let firstId: unknown;
  let upstream = first;
  for (;;) {
    const headers = clientHeaders(upstream.headers);
    const { status, body } = upstream;
    if (body === null || !isOk(upstream) || !isJson(upstream)) return { status, headers, body };
    const bytes = await bytesOf(body, turn);
    const answer = answerOf(new TextDecoder().decode(bytes));
    firstId ??= answer.id;
    const hides = answer.blocks.some(({ value }) => turn.isOurs(value));
    visible.push(...answer.blocks.filter(({ value }) => !turn.isOurs(value)));
    const outcome = await turn.after(answer);
    if (outcome.type === 'continued') {
      upstream = outcome.answer;
      continue;
    }
    const { warning } = outcome;
    const warned = warning === undefined ? headers : headers.with(WARNING_HEADER, warning);
    if (!hides && !turn.merged && warning === undefined) return { status, headers: warned, body: bytes };
    return { status, headers: warned.without('content-length'), body: merged(answer, turn, visible, firstId, warning) };
  }
}
