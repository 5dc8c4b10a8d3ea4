import { request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { expireAfter } from '../../operators/timing/expiry.ts';
import { liveRuntime } from '../../runtime.ts';
import { drop, type ByteSource, type ByteTaker } from './bytes.ts';
import { isSource, type GatewayAnswer, type GatewayRequest } from './exchange.ts';
import { HeaderList, decodedHeaders } from './headers.ts';
import type { Transport, UpstreamAnswer, UpstreamRequest } from './upstream.ts';

const closed = (): Error => new Error('the connection was closed');

/** What comes out of a stream of Node's. */
class NodeBytes implements ByteSource {
  readonly #stream: Readable;
  readonly #discard: () => void;
  #taker: ByteTaker | undefined;

  /** @param discard what becomes of the rest when nobody wants it */
  constructor(stream: Readable, discard: () => void) {
    this.#stream = stream;
    this.#discard = discard;
    // Heard of from the beginning: it may fail before it is started.
    stream.on('error', (error) => this.#leave()?.fail(error));
    stream.on('end', () => this.#leave()?.end());
    stream.on('close', () => this.#leave()?.fail(closed()));
  }

  start(taker: ByteTaker): void {
    const stream = this.#stream;
    this.#taker = taker;
    stream.on('data', (piece: Uint8Array) => this.#taker?.take(piece));
    if (stream.destroyed) queueMicrotask(() => this.#leave()?.fail(stream.errored ?? closed()));
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  cancel(): void {
    this.#leave()?.fail(new Error('canceled'));
    this.#discard();
  }

  #leave(): ByteTaker | undefined {
    const taker = this.#taker;
    this.#taker = undefined;
    return taker;
  }
}

/** Sends what comes, no faster than it is taken. */
const pump = (source: ByteSource, into: ClientRequest | ServerResponse): void => {
  let hasBegun = false;
  into.on('drain', () => source.resume());
  source.start({
    take: (piece) => {
      hasBegun = true;
      if (!into.destroyed && !into.write(piece)) source.pause();
    },
    end: () => {
      hasBegun = true;
      into.end();
    },
    fail: () => void into.destroy(),
  });
  // The head goes with the first piece where that comes at once, and does not wait for it where it does not.
  liveRuntime.after(0).subscribe(() => {
    if (!hasBegun && !into.destroyed) into.flushHeaders();
  });
};

const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** What an upstream answers; decoded, where it compresses although it was asked not to. */
const answerOf = (incoming: IncomingMessage, method: string): UpstreamAnswer => {
  const { statusCode: status = 502 } = incoming;
  const headers = HeaderList.ofRaw(incoming.rawHeaders);
  const discard = (): void => void incoming.destroy();
  if (method === 'HEAD' || status === 204 || status === 304) {
    incoming.resume();
    return { status, headers, body: null };
  }
  const decoder = DECODERS[headers.get('content-encoding')?.toLowerCase() ?? '']?.();
  if (decoder === undefined) return { status, headers, body: new NodeBytes(incoming, discard) };
  incoming.on('error', (error) => decoder.destroy(error));
  decoder.on('error', discard);
  return { status, headers: decodedHeaders(headers), body: new NodeBytes(incoming.pipe(decoder), discard) };
};

/** What says how long a body is. */
const framing = ({ method, body }: UpstreamRequest): readonly string[] => {
  if (typeof body === 'string') return ['content-length', String(Buffer.byteLength(body))];
  if (body instanceof Uint8Array) return ['content-length', String(body.length)];
  if (body !== undefined) return ['transfer-encoding', 'chunked'];
  return /^(?:POST|PUT|PATCH)$/.test(method) ? ['content-length', '0'] : [];
};

/** An upstream that says nothing for so long in the middle of an answer has broken it off. As Node's `fetch` has it. */
const SILENT_MS = 300_000;

/** Asks the upstream by Node's own client, over its global agents. */
export const nodeTransport: Transport = (url, request, attempt) =>
  new Promise((resolve, reject) => {
    const { method, headers, body } = request;
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    const ask = protocol === 'https:' ? httpsRequest : httpRequest;
    // An IPv6 address has brackets in an address only.
    const at = { hostname: hostname.replaceAll(/^\[|\]$/g, ''), port, path: `${pathname}${search}` };
    const sent = ask({
      ...at,
      method,
      headers: ['host', host, ...headers.toRaw(), ...framing(request)],
      timeout: SILENT_MS,
    });
    const abort = (): void => void sent.destroy();
    attempt.addEventListener('abort', abort, { once: true });
    sent.on('error', reject);
    // Whatever else it ends by: an answer in another protocol, say.
    sent.on('close', () => reject(closed()));
    sent.on('response', (incoming) => {
      attempt.removeEventListener('abort', abort);
      sent.on('timeout', () => incoming.destroy(new Error('the upstream fell silent')));
      resolve(answerOf(incoming, method));
    });
    if (typeof body === 'object' && !(body instanceof Uint8Array)) pump(body, sent);
    else sent.end(body);
  });

/** How long a client may go on sending what nobody reads once it has its answer. */
const UNREAD_MS = 500;

const dropUnread = (incoming: IncomingMessage): void => {
  if (incoming.complete) return;
  incoming.resume();
  const deadline = expireAfter(UNREAD_MS, liveRuntime, () => incoming.socket.destroySoon());
  incoming.on('close', () => deadline.unsubscribe());
};

/** The target of a request is mostly a path. */
const absolute = (target: string): string => (target.startsWith('/') ? `http://gateway${target}` : target);

const requestOf = (incoming: IncomingMessage, signal: AbortSignal): GatewayRequest => {
  const { method = 'GET', url = '/', rawHeaders } = incoming;
  const headers = HeaderList.ofRaw(rawHeaders);
  const hasBody = headers.has('transfer-encoding') || (headers.get('content-length') ?? '0') !== '0';
  // Its rest is read on, so that the answer can be.
  const body = hasBody ? new NodeBytes(incoming, () => void incoming.resume()) : null;
  return { method, url: new URL(absolute(url)), headers, body, signal };
};

/** @throws TypeError for a head that cannot be sent */
const send = ({ status, headers, body }: GatewayAnswer, outgoing: ServerResponse): void => {
  const length =
    typeof body === 'string' ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.length : undefined;
  outgoing.writeHead(status, (length === undefined ? headers : headers.with('content-length', String(length))).toRaw());
  if (isSource(body)) pump(body, outgoing);
  else outgoing.end(body ?? undefined);
};

/** Answers one request of a server of Node's, without going by way of `Request`, `Response` and web streams. */
export async function answerOnNode(
  answer: (request: GatewayRequest) => Promise<GatewayAnswer>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const client = new AbortController();
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) client.abort();
  });
  outgoing.on('finish', () => dropUnread(incoming));
  const { url = '' } = incoming;
  if (!URL.canParse(absolute(url))) return void outgoing.writeHead(400).end();
  const answered = await answer(requestOf(incoming, client.signal));
  try {
    send(answered, outgoing);
  } catch {
    if (isSource(answered.body)) drop(answered.body);
    outgoing.writeHead(502).end();
  }
}
