import { sha256 } from '../../policy/key/sha256.ts';
import { readBodyInTime, type RequestBody } from './body.ts';
import { holding } from '../wire/bytes.ts';
import { isSource, type GatewayAnswer, type GatewayRequest } from '../wire/exchange.ts';
import { clientHeaders, upstreamHeaders } from '../wire/headers.ts';
import { piecesOf } from '../wire/json.ts';
import { TurnGate } from '../wire/limits.ts';
import type { GatewaySettings } from './options.ts';
import { conversationPath } from '../wire/path.ts';
import { plainAnswer } from './plain.ts';
import { GatewayReport } from './report.ts';
import { ConversationRequest } from './request.ts';
import { isAbout, knownMessages, retryKeys, type KnownMessage } from './restore.ts';
import { firstAborted } from '../wire/signal.ts';
import { PassedEvents, StreamedAnswer, errorEvent } from './stream.ts';
import { GatewayTools } from './tools.ts';
import { FailedRequests, GatewayTurn, type TurnServices } from './answer.ts';
import {
  Upstream,
  UpstreamRefusal,
  isEventStream,
  isOk,
  type Transport,
  type UpstreamAnswer,
} from '../wire/upstream.ts';
import { hasThread, validateRequest } from './validate.ts';
import { conversationClient } from '../conversation/client.ts';
import type { ConversationRecord } from '../conversation/conversation.ts';
import { GatewayError, errorAnswer } from '../wire/error.ts';

/** Of a hash: enough to keep parties apart. */
const SCOPE_CHARS = 32;

const digestOf = (key: string): string => sha256(key.toWellFormed()).slice(0, SCOPE_CHARS);

/** A request on its way. */
interface GatewayExchange {
  readonly request: GatewayRequest;
  readonly requestId: string;
  /** Path and query. */
  readonly target: string;
  readonly scope: string;
  /** Whose requests it is counted with. */
  readonly rateScopes: readonly string[];
}

type Known = ReadonlyArray<readonly [KnownMessage, ConversationRecord]>;

/** What the state has of a request. */
interface Restored {
  readonly known: Known;
  /** Steps that were made before the same request failed, and who made them. */
  readonly resumed: readonly string[];
  readonly author: string;
}

/** What may end a turn early. */
interface Ending {
  /** Aborted by any of it. */
  readonly signal: AbortSignal;
  /** Says that the client went away. */
  readonly abort: () => void;
  /** Aborted when the gateway is shut down. */
  readonly harvest: AbortSignal;
}

/** The SDK's tool runner knows this answer: it sends the whole conversation instead. */
const threadUnsupported = (): GatewayError =>
  new GatewayError(
    'thread_unsupported',
    'thread: this gateway adds tools of its own to a conversation, and cannot to one that the API holds; ' +
      'send the whole conversation without thread',
    { details: { error_code: 'thread_unsupported_request', unsupported: ['tools'] } },
  );

/** The endpoint itself: what becomes of each request. */
export class Gateway {
  readonly #settings: GatewaySettings;
  readonly report: GatewayReport;
  readonly gate: TurnGate;
  readonly #services: TurnServices;

  constructor(settings: GatewaySettings) {
    const {
      upstream: url,
      transport,
      upstreamTimeoutMs: timeoutMs,
      upstreamRetry: retry,
      runtime,
      limits,
      tools,
      spillway,
      turn,
      state,
      statePolicy,
      logger,
    } = settings;
    this.#settings = settings;
    this.report = new GatewayReport(logger, runtime);
    this.gate = new TurnGate(limits.maxTurns, limits.rate, runtime);
    this.report.running = () => this.gate.running;
    // Without tools no layer is asked.
    const layer = spillway ?? ({} as NonNullable<typeof spillway>);
    this.#services = {
      upstream: new Upstream({ url, transport, timeoutMs, retry, runtime }),
      tools: new GatewayTools(tools, layer, turn, limits),
      state: conversationClient(state, { ...statePolicy, runtime }),
      report: this.report,
      maxSteps: limits.steps,
      failed: new FailedRequests(runtime),
    };
  }

  /** Asks the upstream in the way of a host that has a better one, unless the gateway was given its own. */
  offerTransport(transport: Transport): void {
    if (!this.#settings.ownFetch) this.#services.upstream.use(transport);
  }

  /** Answers a request; never rejects. */
  async answer(request: GatewayRequest): Promise<GatewayAnswer> {
    const requestId = `req_${this.#settings.runtime.id().replaceAll('-', '')}`;
    this.report.count('requests');
    try {
      const { method, url, headers } = request;
      const { pathname, search } = url;
      const { scope, rateScopes } = this.#settings;
      const exchange: GatewayExchange = {
        request,
        requestId,
        target: `${pathname}${search}`,
        scope: digestOf(scope(headers)),
        rateScopes: rateScopes(headers).map(digestOf),
      };
      const path = method === 'POST' ? conversationPath(pathname) : undefined;
      if (path === '/v1/messages') return await this.#messages(exchange);
      if (path === '/v1/messages/count_tokens') return await this.#counted(exchange);
      return await this.#passed(exchange);
    } catch (thrown) {
      return this.#refused(thrown, requestId);
    }
  }

  #refused(thrown: unknown, requestId: string): GatewayAnswer {
    if (thrown instanceof UpstreamRefusal) {
      this.report.error('upstream_broken', requestId, { answered: thrown.status });
      return thrown.toAnswer();
    }
    const error =
      thrown instanceof GatewayError
        ? thrown
        : new GatewayError('internal_error', 'The gateway failed; ask again', { cause: thrown });
    this.report.error(error.kind, requestId, {}, error.cause);
    return errorAnswer(error, requestId);
  }

  /** All that is no conversation: models, files, batches. */
  async #passed({ request, target }: GatewayExchange): Promise<GatewayAnswer> {
    this.gate.refuseWhileDraining();
    const { method, headers, body, signal } = request;
    const answer = await this.#services.upstream.send({
      method,
      target,
      headers: upstreamHeaders(headers),
      signal,
      ...(body === null ? {} : { body }),
    });
    return { ...answer, headers: clientHeaders(answer.headers) };
  }

  async #read(request: GatewayRequest, counting: boolean): Promise<RequestBody> {
    const { limits, runtime } = this.#settings;
    const body = await readBodyInTime(request, limits, this.gate.closing, runtime);
    validateRequest(body.value, counting, limits);
    if (this.#services.tools.size > 0 && hasThread(body.value)) throw threadUnsupported();
    return body;
  }

  async #counted(exchange: GatewayExchange): Promise<GatewayAnswer> {
    this.gate.admit(exchange.rateScopes);
    const { tools, upstream } = this.#services;
    const { request, target } = exchange;
    const { headers, signal } = request;
    const body = await this.#read(request, true);
    const known = tools.size === 0 ? [] : (await this.#restore(body, exchange, [], true)).known;
    const sent =
      tools.size === 0 ? body.bytes : new ConversationRequest(body, tools.offered(body.value).definitions, known).text;
    const answer = await upstream.send({
      method: 'POST',
      target,
      headers: upstreamHeaders(headers),
      body: sent,
      signal,
    });
    return { ...answer, headers: clientHeaders(answer.headers) };
  }

  /** A turn has its place from when its body is there until its answer has ended: who sends slowly keeps nobody out. */
  async #messages(exchange: GatewayExchange): Promise<GatewayAnswer> {
    this.gate.admit(exchange.rateScopes);
    this.gate.refuseWhileFull();
    const { signal: client } = exchange.request;
    const body = await this.#read(exchange.request, false);
    const place = this.gate.enter();
    this.report.count('turns');
    const gone = new AbortController();
    const signal = firstAborted([client, gone.signal, place.harvest]);
    try {
      const answer = await this.#answer(exchange, body, { signal, abort: () => gone.abort(), harvest: place.harvest });
      if (isSource(answer.body)) return { ...answer, body: holding(answer.body, () => place.leave()) };
      place.leave();
      return answer;
    } catch (thrown) {
      place.leave();
      throw place.harvest.aborted
        ? new GatewayError('draining', 'The gateway is being shut down; ask again', { cause: thrown })
        : thrown;
    }
  }

  async #answer(exchange: GatewayExchange, body: RequestBody, ending: Ending): Promise<GatewayAnswer> {
    const { upstream, tools } = this.#services;
    const { pingMs, runtime } = this.#settings;
    const { request, requestId, target, scope } = exchange;
    const { signal, abort, harvest } = ending;
    const send = { method: 'POST', target, headers: upstreamHeaders(request.headers), signal };
    if (tools.size === 0) return this.#untouched(await upstream.send({ ...send, body: body.bytes }), requestId, ending);
    const { known, resumed, author } = await this.#restore(body, exchange, this.#retried(body, exchange));
    const offered = tools.offered(body.value);
    const conversation = new ConversationRequest(body, offered.definitions, known);
    const turn = new GatewayTurn(this.#services, {
      requestId,
      scope,
      value: body.value,
      retryKey: () => retryKeys(scope, body.text, runtime.wallNow())[0],
      conversation,
      offered,
      resumed,
      author,
      upstream: send,
      harvest,
    });
    try {
      const first = await upstream.send({ ...send, body: turn.firstBody });
      if (!isOk(first)) await turn.keepForRetry();
      if (body.value['stream'] !== true || !isEventStream(first)) return await plainAnswer(turn, first);
      const onError = (error: GatewayError | UpstreamRefusal): void => {
        if (error instanceof GatewayError) this.report.error(error.kind, requestId, {}, error.cause);
        else this.report.error('upstream_broken', requestId, { answered: error.status });
      };
      return {
        status: first.status,
        headers: clientHeaders(first.headers).without('content-length'),
        body: new StreamedAnswer(turn, first, { pingMs, runtime, abort, onError }),
      };
    } catch (error) {
      await turn.keepAfter(error);
      throw error;
    }
  }

  /** Without tools, what the upstream says is what the client gets. */
  #untouched(answer: UpstreamAnswer, requestId: string, { signal, abort, harvest }: Ending): GatewayAnswer {
    const { status, body } = answer;
    const headers = clientHeaders(answer.headers);
    if (body === null || !isEventStream(answer)) return { status, headers, body };
    const toEvent = (cause: unknown): Uint8Array => {
      const kind = harvest.aborted ? 'draining' : signal.aborted ? 'client_gone' : 'upstream_broken';
      const error = new GatewayError(kind, 'The answer was broken off; ask again', { cause });
      this.report.error(kind, requestId, {}, cause);
      return errorEvent(error, requestId);
    };
    return { status, headers: headers.without('content-length'), body: new PassedEvents(body, abort, toEvent) };
  }

  /** What a request may have been kept under that is sent again, by the client's own word or because it failed here. */
  #retried({ text }: RequestBody, { request, scope }: GatewayExchange): readonly string[] {
    const { failed } = this.#services;
    const saysSo = Number(request.headers.get('x-stainless-retry-count') ?? 0) > 0;
    if (!saysSo && failed.none) return [];
    const keys = retryKeys(scope, text, this.#settings.runtime.wallNow());
    const failedHere = keys.filter((key) => failed.take(key));
    return saysSo ? keys : failedHere;
  }

  /** Asks the state for what the client does not see. */
  async #restore(
    { value }: RequestBody,
    exchange: GatewayExchange,
    retries: readonly string[],
    counting = false,
  ): Promise<Restored> {
    const { requestId, scope } = exchange;
    const messages = knownMessages(value, scope);
    const keys = [...new Set([...messages.map(({ key }) => key), ...retries])];
    if (keys.length === 0) return { known: [], resumed: [], author: requestId };
    const pending = messages.find((message) => message.pending);
    const records = await this.#retrieve(keys, pending, requestId);
    const known = messages.flatMap((one): Known => {
      const record = records.get(one.key);
      return record === undefined || !isAbout(record, one) ? [] : [[one, record]];
    });
    // A count has no `metadata`, so that what is kept for a user is not found; it need not be exact.
    const refuses = this.#settings.unknownCalls === 'refuse' && !counting;
    if (pending !== undefined && refuses && !known.some(([message]) => message === pending)) {
      throw new GatewayError(
        'state_unknown',
        `The tool calls of messages.${pending.place} are not known to this gateway, or no longer; ` +
          'begin the turn again from the message before it',
      );
    }
    const [kept] = retries.flatMap((key) => records.get(key) ?? []);
    return {
      known,
      resumed: piecesOf(kept === undefined || kept.before === '' ? '[]' : kept.before),
      author: kept?.author ?? requestId,
    };
  }

  async #retrieve(
    keys: readonly string[],
    pending: KnownMessage | undefined,
    requestId: string,
  ): Promise<ReadonlyMap<string, ConversationRecord>> {
    this.report.count('stateRetrievals');
    try {
      return await this.#services.state.retrieve(keys);
    } catch (cause) {
      this.report.count('stateRetrievalFailures');
      if (pending !== undefined)
        throw new GatewayError('state_unavailable', 'The conversation state could not be retrieved; ask again later', {
          cause,
        });
      // What it might know of earlier messages can be done without.
      this.report.error('state_unavailable', requestId, {}, cause);
      return new Map();
    }
  }
}

/** What is behind the gateways of this process: a server of our own need not go by way of `Request` and `Response`. */
export const inners: WeakMap<object, Gateway> = new WeakMap();
