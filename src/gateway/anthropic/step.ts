import { BlockAssembler, fieldsOf, latestUsage, type Fields } from './blocks.ts';
import { SseSplitter, sseBytes, type SseEvent } from '../wire/sse.ts';
import { containerOf, type GatewayTurn, type StepEnd } from './answer.ts';

const EVENT_END = new TextEncoder().encode('\n\n');

/**
 * Follows one answer of the upstream while it comes, and gives on what the client may see, under the client's own
 * numbers of blocks.
 */
export class StreamStep {
  readonly #turn: GatewayTurn;
  readonly #isFirst: boolean;
  readonly #splitter = new SseSplitter();
  readonly #blocks = new BlockAssembler();
  /** The client's number of a block, by the upstream's; none for one it does not see. */
  readonly #places = new Map<unknown, number>();
  #nextPlace: number;
  #begun: Fields = {};
  #ended: Fields = {};
  #container: string | undefined;
  #stopReason: unknown;
  /** From `message_delta` on: what comes after it is not yet decided. */
  readonly #held: Array<{ readonly event: SseEvent; readonly data: Fields }> = [];
  hasStopped = false;
  /** The upstream said itself that it failed. */
  hasFailed = false;

  constructor(turn: GatewayTurn, isFirst: boolean, nextPlace: number) {
    this.#turn = turn;
    this.#isFirst = isFirst;
    this.#nextPlace = nextPlace;
  }

  get nextPlace(): number {
    return this.#nextPlace;
  }

  /** What the client gets of a piece at once. */
  hear(piece: Uint8Array): Uint8Array[] {
    return this.#splitter.push(piece).flatMap((event) => this.#heard(event));
  }

  /** The same of what is left at the end. */
  hearRest(): Uint8Array[] {
    const rest = this.#splitter.rest();
    if (rest === undefined) return [];
    if (rest.whole || this.hasStopped) return this.#heard(rest);
    // Half an event would spoil what comes after it, and so would one that has no end.
    const pieces = rest.value === undefined ? [] : this.#heard(rest);
    return pieces.length === 0 ? [] : [...pieces, EVENT_END];
  }

  get end(): StepEnd {
    const blocks = this.#blocks;
    return {
      get blocks() {
        return blocks.blocks;
      },
      hasCalls: blocks.hasCalls,
      stopReason: this.#stopReason,
      usage: latestUsage(this.#begun, this.#ended),
      container: this.#container,
    };
  }

  /** What was held, once it is the end of the whole answer. */
  closing(warning: string | undefined): Uint8Array[] {
    const { merged, usage } = this.#turn;
    const seesNoCall =
      this.#stopReason === 'tool_use' && ![...this.#places.keys()].some((index) => this.#blocks.isToolUse(index));
    return this.#held.map(({ event, data }) => {
      if (data['type'] !== 'message_delta' || (!merged && warning === undefined && !seesNoCall)) return event.raw;
      const delta = seesNoCall ? { ...fieldsOf(data['delta']), stop_reason: 'end_turn' } : data['delta'];
      return sseBytes(
        'message_delta',
        JSON.stringify({
          ...data,
          delta,
          usage: merged ? usage : data['usage'],
          ...(warning === undefined ? {} : { spillway_warning: warning }),
        }),
      );
    });
  }

  #heard(event: SseEvent): Uint8Array[] {
    // Most events are these: they are read once their block is asked for, if it ever is.
    const { deltaIndex } = event;
    if (deltaIndex !== undefined) {
      this.#blocks.grow(deltaIndex, event);
      const place = this.#places.get(deltaIndex);
      return place === undefined ? [] : [place === deltaIndex ? event.raw : event.withDeltaIndex(place)];
    }
    const data = fieldsOf(event.value);
    const { type, index } = data;
    switch (type) {
      case 'message_start': {
        const { usage, container } = fieldsOf(data['message']);
        this.#begun = fieldsOf(usage);
        this.#container = containerOf(container);
        return this.#isFirst ? [event.raw] : [];
      }
      case 'content_block_start': {
        const block = fieldsOf(data['content_block']);
        this.#blocks.start(index, block);
        if (this.#turn.isOurs(block)) return [];
        this.#places.set(index, this.#nextPlace++);
        return this.#placed(event, data);
      }
      case 'content_block_delta':
        this.#blocks.grow(index, event);
        return this.#placed(event, data);
      case 'content_block_stop':
        return this.#placed(event, data);
      case 'message_delta': {
        const { stop_reason: stopReason, container } = fieldsOf(data['delta']);
        this.#stopReason = stopReason ?? this.#stopReason;
        this.#container = containerOf(container) ?? this.#container;
        this.#ended = latestUsage(this.#ended, fieldsOf(data['usage']));
        return this.#hold(event, data);
      }
      case 'message_stop':
        this.hasStopped = true;
        return this.#hold(event, data);
      case 'error':
        this.hasFailed = true;
        return [event.raw];
      default:
        return this.#held.length === 0 ? [event.raw] : this.#hold(event, data);
    }
  }

  #hold(event: SseEvent, data: Fields): Uint8Array[] {
    this.#held.push({ event, data });
    return [];
  }

  #placed({ raw }: SseEvent, data: Fields): Uint8Array[] {
    const place = this.#places.get(data['index']);
    if (place === undefined) return [];
    return [place === data['index'] ? raw : sseBytes(String(data['type']), JSON.stringify({ ...data, index: place }))];
  }
}
