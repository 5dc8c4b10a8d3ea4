import { firstValueFrom, map, race, from as fromPromise, type Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { BlockAssembler, fieldsOf, latestUsage, type Fields } from './anthropic-blocks.ts';
import { PING, joinBytes, sseBytes, sseEvents, type SseEvent } from './anthropic-sse.ts';
import { containerOf, type GatewayTurn, type StepEnd } from './anthropic-turn.ts';
import type { UpstreamRefusal } from './anthropic-upstream.ts';
import { GatewayError, errorBody } from './error.ts';

const parsed = (event: SseEvent): Fields | undefined => {
  try {
    return fieldsOf(JSON.parse(event.data));
  } catch {
    // A comment, or nothing that we know.
    return undefined;
  }
};

/** Follows one answer of the upstream while it comes, and gives on what the client may see, under the client's own numbers of blocks. */
class StreamStep {
  readonly #turn: GatewayTurn;
  readonly #isFirst: boolean;
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

  /** What the client gets of an event at once. */
  hear(event: SseEvent): Uint8Array[] {
    const data = parsed(event) ?? {};
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
        this.#blocks.grow(index, data['delta']);
        return this.#placed(event, data);
      case 'content_block_stop':
        return this.#placed(event, data);
      case 'message_delta': {
        const { stop_reason: stopReason, container } = fieldsOf(data['delta']);
        this.#stopReason = stopReason ?? this.#stopReason;
        this.#container = containerOf(container) ?? this.#container;
        this.#ended = latestUsage(this.#ended, fieldsOf(data['usage']));
        this.#held.push({ event, data });
        return [];
      }
      case 'message_stop':
        this.hasStopped = true;
        this.#held.push({ event, data });
        return [];
      case 'error':
        this.hasFailed = true;
        return [event.raw];
      default:
        if (this.#held.length === 0) return [event.raw];
        this.#held.push({ event, data });
        return [];
    }
  }

  end(): StepEnd {
    return { blocks: this.#blocks.finish(), stopReason: this.#stopReason, usage: latestUsage(this.#begun, this.#ended), container: this.#container };
  }

  /** What was held, once it is the end of the whole answer. */
  closing(warning: string | undefined): Uint8Array[] {
    const { merged, usage } = this.#turn;
    const seesNoCall = this.#stopReason === 'tool_use' && ![...this.#places.keys()].some((index) => this.#blocks.isToolUse(index));
    return this.#held.map(({ event, data }) => {
      if (data['type'] !== 'message_delta' || (!merged && warning === undefined && !seesNoCall)) return event.raw;
      const delta = seesNoCall ? { ...fieldsOf(data['delta']), stop_reason: 'end_turn' } : data['delta'];
      return sseBytes('message_delta', JSON.stringify({ ...data, delta, usage: merged ? usage : data['usage'], ...(warning === undefined ? {} : { spillway_warning: warning }) }));
    });
  }

  #placed({ raw }: SseEvent, data: Fields): Uint8Array[] {
    const place = this.#places.get(data['index']);
    if (place === undefined) return [];
    return [place === data['index'] ? raw : sseBytes(String(data['type']), JSON.stringify({ ...data, index: place }))];
  }
}

/** Gives a ping every so often until work is done, the first one at once if it may take its time. */
async function* pinging(work: Promise<unknown>, atOnce: boolean, everyMs: number, runtime: Runtime): AsyncGenerator<Uint8Array, void, undefined> {
  const done$: Observable<boolean> = fromPromise(work.then(() => true, () => true));
  if (atOnce) yield PING;
  // The loser of a race is unsubscribed: no timer is left.
  while (!(await firstValueFrom(race(done$, runtime.after(everyMs).pipe(map(() => false)))))) yield PING;
}

const EVENT_END = new TextEncoder().encode('\n\n');

/** The events of one step, as the client may see them. */
async function* heard(step: StreamStep, body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const events of sseEvents(body)) {
    const out = events.flatMap((event) => {
      if (event.whole || step.hasStopped) return step.hear(event);
      // Half an event would spoil what comes after it, and so would one that has no end.
      const pieces = parsed(event) === undefined ? [] : step.hear(event);
      return pieces.length === 0 ? [] : [...pieces, EVENT_END];
    });
    if (out.length > 0) yield joinBytes(out);
  }
}

export interface StreamOptions {
  readonly pingMs: number;
  readonly runtime: Runtime;
  /** Hears of what broke the stream off. */
  readonly onError: (error: GatewayError | UpstreamRefusal) => void;
}

const broken = (): GatewayError => new GatewayError('upstream_broken', 'The upstream broke off its answer; ask again');

async function* steps(turn: GatewayTurn, first: Response, { pingMs, runtime }: StreamOptions): AsyncGenerator<Uint8Array, void, undefined> {
  let response = first;
  let place = 0;
  for (let isFirst = true; ; isFirst = false) {
    const step = new StreamStep(turn, isFirst, place);
    if (response.body !== null) yield* heard(step, response.body);
    if (step.hasFailed) return turn.keepForRetry();
    if (!step.hasStopped) throw broken();
    const end = step.end();
    const after = turn.after(end);
    if (!turn.isPlain(end)) yield* pinging(after, end.blocks.some(({ value }) => turn.isOurs(value)), pingMs, runtime);
    const outcome = await after;
    if (outcome.type === 'final') return yield joinBytes(step.closing(outcome.warning));
    place = step.nextPlace;
    response = outcome.response;
  }
}

/** An error as an event: the upstream's own where it gave one. */
export const errorEvent = (error: GatewayError | UpstreamRefusal, requestId: string): Uint8Array => {
  if (error instanceof GatewayError) return sseBytes('error', errorBody(error, requestId));
  try {
    const body: unknown = JSON.parse(error.body);
    if (fieldsOf(body)['type'] === 'error') return sseBytes('error', JSON.stringify(body));
  } catch {
    // A proxy's page, say.
  }
  return sseBytes('error', errorBody(broken(), requestId));
};

/** The answer to a client that streams, piece by piece. It ends with an `error` event where it cannot end well; it never throws. */
export async function* streamedAnswer(turn: GatewayTurn, first: Response, options: StreamOptions): AsyncGenerator<Uint8Array, void, undefined> {
  let over = false;
  try {
    yield* steps(turn, first, options);
    over = true;
  } catch (thrown) {
    const error = turn.broken(thrown);
    options.onError(error);
    // Before the client knows, and asks again.
    await turn.keepAfter(error);
    over = true;
    yield errorEvent(error, turn.requestId);
  } finally {
    // The client went away between two pieces.
    if (!over) await turn.keepForRetry();
  }
}

/** Events passed on as they are. Broken off, the stream ends with an `error` event after the last whole one. */
export async function* passedOn(body: ReadableStream<Uint8Array>, fail: (thrown: unknown) => Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const events of sseEvents(body)) yield joinBytes(events.map(({ raw }) => raw));
  } catch (thrown) {
    yield fail(thrown);
  }
}
