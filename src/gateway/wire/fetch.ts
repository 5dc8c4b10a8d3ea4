import { WebBytes, webStream } from './bytes.ts';
import { isSource } from './exchange.ts';
import { HeaderList, decodedHeaders } from './headers.ts';
import { firstAborted } from './signal.ts';
import type { Transport, UpstreamRequest } from './upstream.ts';

export interface UpstreamInit {
  readonly method: string;
  readonly headers: Headers;
  readonly body?: Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Of a body that is passed on. */
  readonly duplex?: 'half';
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** What of the platform's `fetch` is used. */
export type FetchLike = (url: string, init: UpstreamInit) => Promise<Response>;

const bodyInit = ({ body }: UpstreamRequest): Pick<UpstreamInit, 'body' | 'duplex'> => {
  if (body === undefined) return {};
  return isSource(body) ? { body: webStream(body), duplex: 'half' } : { body };
};

/** Asks the upstream by a `fetch`: the way that all platforms have. */
export const fetchTransport =
  (fetch: FetchLike): Transport =>
  async (url, request, attempt) => {
    const { method, signal } = request;
    const response = await fetch(url, {
      method,
      headers: request.headers.toHeaders(),
      redirect: 'manual',
      signal: firstAborted([attempt, signal]),
      ...bodyInit(request),
    });
    const headers = HeaderList.of(response.headers);
    return {
      status: response.status,
      headers: headers.has('content-encoding') ? decodedHeaders(headers) : headers,
      body: response.body === null ? null : new WebBytes(response.body),
    };
  };
