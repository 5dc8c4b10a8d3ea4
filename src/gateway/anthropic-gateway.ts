import { sha256 } from '../policy/sha256.ts';
import { readBody, type RequestBody } from './anthropic-body.ts';
import { TurnGate, type Place } from './anthropic-limits.ts';
import type { GatewaySettings } from './anthropic-options.ts';
import { plainAnswer } from './anthropic-plain.ts';
import { GatewayReport } from './anthropic-report.ts';
import { ConversationRequest } from './anthropic-request.ts';
import { bodyOf, chunksOf, isEventStream } from './anthropic-response.ts';
import { isAbout, knownMessages, retryKeys, type KnownMessage } from './anthropic-restore.ts';
import { piecesOf } from './anthropic-json.ts';
import { firstAborted } from './anthropic-signal.ts';
import { errorEvent, passedOn, streamedAnswer } from './anthropic-stream.ts';
import { GatewayTools } from './anthropic-tools.ts';
import { FailedRequests, GatewayTurn, type TurnServices } from './anthropic-turn.ts';
import { Upstream, UpstreamRefusal, clientHeaders, upstreamHeaders } from './anthropic-upstream.ts';
import { validateRequest } from './anthropic-validate.ts';
import { conversationClient } from './conversation-client.ts';
import type { ConversationRecord } from './conversation.ts';
import { GatewayError, errorResponse } from './error.ts';

/** Of a hash: enough to keep parties apart. */
const SCOPE_CHARS = 32;

/** A request on its way. */
interface Passage {
  readonly request: Request;
  readonly requestId: string;
  /** Path and query. */
  readonly target: string;
  readonly scope: string;
}

type Known = ReadonlyArray<readonly [KnownMessage, ConversationRecord]>;

/** The endpoint itself: what becomes of each request. */
export class Gateway {
  readonly #settings: GatewaySettings;
  readonly report: GatewayReport;
  readonly gate: TurnGate;
  readonly #services: TurnServices;

  constructor(settings: GatewaySettings) {
    const { upstream: url, fetch, upstreamTimeoutMs: timeoutMs, upstreamRetry: retry, runtime, limits, tools, spillway, turn, state, statePolicy, logger } = settings;
    this.#settings = settings;
    this.report = new GatewayReport(logger, runtime);
    this.gate = new TurnGate(limits.maxTurns, limits.rate, runtime);
    this.report.running = () => this.gate.running;
    // Without tools no layer is asked.
    const layer = spillway ?? ({} as NonNullable<typeof spillway>);
    this.#services = {
      upstream: new Upstream({ url, fetch, timeoutMs, retry, runtime }),
      tools: new GatewayTools(tools, layer, turn, limits),
      state: conversationClient(state, { ...statePolicy, runtime }),
      report: this.report,
      maxSteps: limits.steps,
      failed: new FailedRequests(runtime),
    };
  }

  async fetch(request: Request): Promise<Response> {
    const requestId = `req_${this.#settings.runtime.id().replaceAll('-', '')}`;
    this.report.count('requests');
    try {
      const { pathname, search } = new URL(request.url);
      const passage: Passage = { request, requestId, target: `${pathname}${search}`, scope: sha256(this.#settings.scope(request.headers).toWellFormed()).slice(0, SCOPE_CHARS) };
      if (request.method === 'POST' && pathname === '/v1/messages') return await this.#messages(passage);
      if (request.method === 'POST' && pathname === '/v1/messages/count_tokens') return await this.#counted(passage);
      return await this.#passed(passage);
    } catch (thrown) {
      return this.#refused(thrown, requestId);
    }
  }

  #refused(thrown: unknown, requestId: string): Response {
    if (thrown instanceof UpstreamRefusal) {
      this.report.error('upstream_broken', requestId, { answered: thrown.status });
      return thrown.toResponse();
    }
    const error = thrown instanceof GatewayError ? thrown : new GatewayError('internal_error', 'The gateway failed; ask again', { cause: thrown });
    this.report.error(error.kind, requestId, {}, error.cause);
    return errorResponse(error, requestId);
  }

  /** All that is no conversation: models, files, batches. */
  async #passed({ request, target }: Passage): Promise<Response> {
    this.gate.refuseWhileDraining();
    const { method, body, signal } = request;
    const headers = upstreamHeaders(request.headers);
    const response = await this.#services.upstream.send({ method, target, headers, signal, ...(body === null ? {} : { body }) });
    return new Response(response.body, { status: response.status, headers: clientHeaders(response.headers) });
  }

  async #read({ request }: Passage, counting: boolean, signal: AbortSignal): Promise<RequestBody> {
    const { limits } = this.#settings;
    const body = await readBody(request, limits, signal);
    validateRequest(body.value, counting, limits);
    return body;
  }

  async #counted(passage: Passage): Promise<Response> {
    this.gate.refuseWhileDraining();
    const { tools, upstream } = this.#services;
    const { request, target } = passage;
    const body = await this.#read(passage, true, request.signal);
    const known = tools.size === 0 ? [] : (await this.#restore(body, passage, [])).known;
    const sent = tools.size === 0 ? body.bytes : new ConversationRequest(body, tools.offer(body.value['tools']).definitions, known).text;
    const response = await upstream.send({ method: 'POST', target, headers: upstreamHeaders(request.headers), body: sent, signal: request.signal });
    return new Response(response.body, { status: response.status, headers: clientHeaders(response.headers) });
  }

  async #messages(passage: Passage): Promise<Response> {
    const place = this.gate.enter(passage.scope);
    this.report.count('turns');
    const gone = new AbortController();
    const signal = firstAborted([passage.request.signal, gone.signal, place.harvest]);
    let streams = false;
    try {
      const body = await this.#read(passage, false, signal);
      const pieces = await this.#answer(passage, body, place, signal);
      if (!('pieces' in pieces)) return pieces.whole;
      streams = true;
      return new Response(bodyOf(pieces.pieces, () => gone.abort(), () => place.leave()), { status: pieces.status, headers: pieces.headers });
    } catch (thrown) {
      if (place.harvest.aborted) throw new GatewayError('draining', 'The gateway is being shut down; ask again', { cause: thrown });
      throw thrown;
    } finally {
      if (!streams) place.leave();
    }
  }

  async #answer(
    passage: Passage,
    body: RequestBody,
    place: Place,
    signal: AbortSignal,
  ): Promise<{ readonly whole: Response } | { readonly pieces: AsyncGenerator<Uint8Array, void, undefined>; readonly status: number; readonly headers: Headers }> {
    const { upstream, tools } = this.#services;
    const { pingMs, runtime } = this.#settings;
    const { request, requestId, target, scope } = passage;
    const send = { method: 'POST', target, headers: upstreamHeaders(request.headers), signal };
    if (tools.size === 0) {
      const response = await upstream.send({ ...send, body: body.bytes });
      const { status } = response;
      const headers = clientHeaders(response.headers);
      if (response.body === null) return { whole: new Response(null, { status, headers }) };
      if (isEventStream(response)) headers.delete('content-length');
      const broken = (cause: unknown): GatewayError => {
        const kind = place.harvest.aborted ? 'draining' : signal.aborted ? 'client_gone' : 'upstream_broken';
        const error = new GatewayError(kind, 'The answer was broken off; ask again', { cause });
        this.report.error(kind, requestId, {}, cause);
        return error;
      };
      return { pieces: isEventStream(response) ? passedOn(response.body, (cause) => errorEvent(broken(cause), requestId)) : chunksOf(response.body), status, headers };
    }
    const { known, resumed } = await this.#restore(body, passage, this.#retried(body, passage));
    const offer = tools.offer(body.value['tools']);
    const conversation = new ConversationRequest(body, offer.definitions, known);
    const turn = new GatewayTurn(this.#services, { requestId, scope, value: body.value, retryKey: () => retryKeys(scope, body.text, runtime.wallNow())[0], conversation, offer, resumed, upstream: send, harvest: place.harvest });
    const plain = async (): Promise<{ readonly response: Response; readonly whole?: Response }> => {
      try {
        const response = await upstream.send({ ...send, body: turn.firstBody });
        if (!response.ok) await turn.keepForRetry();
        return body.value['stream'] === true && isEventStream(response) ? { response } : { response, whole: await plainAnswer(turn, response) };
      } catch (error) {
        await turn.keepAfter(error);
        throw error;
      }
    };
    const { response, whole } = await plain();
    if (whole !== undefined) return { whole };
    const headers = clientHeaders(response.headers);
    headers.delete('content-length');
    const onError = (error: GatewayError | UpstreamRefusal): void => {
      if (error instanceof GatewayError) this.report.error(error.kind, requestId, {}, error.cause);
      else this.report.error('upstream_broken', requestId, { answered: error.status });
    };
    return { pieces: streamedAnswer(turn, response, { pingMs, runtime, onError }), status: response.status, headers };
  }

  /** What a request may have been kept under that is sent again, by the client's own word or because it failed here. */
  #retried({ text }: RequestBody, { request, scope }: Passage): readonly string[] {
    const { failed } = this.#services;
    const saysSo = Number(request.headers.get('x-stainless-retry-count') ?? 0) > 0;
    if (!saysSo && failed.none) return [];
    const keys = retryKeys(scope, text, this.#settings.runtime.wallNow());
    const failedHere = keys.filter((key) => failed.take(key));
    return saysSo ? keys : failedHere;
  }

  /** Asks the state for what the client does not see. */
  async #restore({ value }: RequestBody, passage: Passage, retries: readonly string[]): Promise<{ readonly known: Known; readonly resumed: readonly string[] }> {
    const { requestId, scope } = passage;
    const messages = knownMessages(value['messages'] as readonly unknown[], scope);
    const keys = [...new Set([...messages.map(({ key }) => key), ...retries])];
    if (keys.length === 0) return { known: [], resumed: [] };
    const pending = messages.find((message) => message.pending);
    const records = await this.#retrieve(keys, pending, requestId);
    const known = messages.flatMap((one): Known => {
      const record = records.get(one.key);
      return record === undefined || !isAbout(record, one) ? [] : [[one, record]];
    });
    if (pending !== undefined && this.#settings.unknownCalls === 'refuse' && !known.some(([message]) => message === pending)) {
      throw new GatewayError('state_unknown', `The tool calls of messages.${pending.place} are not known to this gateway, or no longer; begin the turn again from the message before it`);
    }
    const [kept] = retries.flatMap((key) => records.get(key) ?? []);
    return { known, resumed: piecesOf(kept?.before ?? '[]') };
  }

  async #retrieve(keys: readonly string[], pending: KnownMessage | undefined, requestId: string): Promise<ReadonlyMap<string, ConversationRecord>> {
    this.report.count('stateRetrievals');
    try {
      return await this.#services.state.retrieve(keys);
    } catch (cause) {
      this.report.count('stateRetrievalFailures');
      if (pending !== undefined) throw new GatewayError('state_unavailable', 'The conversation state could not be retrieved; ask again later', { cause });
      // What it might know of earlier messages can be done without.
      this.report.error('state_unavailable', requestId, {}, cause);
      return new Map();
    }
  }
}
