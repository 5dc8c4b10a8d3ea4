import { WebBytes, drop, webStream, type ByteSource } from './bytes.ts';
import { HeaderList } from './headers.ts';

/** A request, however it came. */
export interface GatewayRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: HeaderList;
  readonly body: ByteSource | null;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** An answer, however it goes on. A source in it must be started. */
export interface GatewayAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: ByteSource | Uint8Array<ArrayBuffer> | string | null;
}

export const isSource = (body: GatewayAnswer['body']): body is ByteSource =>
  typeof body === 'object' && body !== null && !(body instanceof Uint8Array);

export const requestOf = ({ method, url, headers, body, signal }: Request): GatewayRequest => ({
  method,
  url: new URL(url),
  headers: HeaderList.of(headers),
  body: body === null ? null : new WebBytes(body),
  signal,
});

/** Answers that have no body: `Response` takes none with them. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** `Response` has no status beyond these. */
const STATUS = { least: 200, most: 599, instead: 502 } as const;

export function responseOf({ status, headers, body }: GatewayAnswer): Response {
  const init = {
    status: status >= STATUS.least && status <= STATUS.most ? status : STATUS.instead,
    headers: headers.toHeaders(),
  };
  if (BODILESS.has(status)) {
    if (isSource(body)) drop(body);
    return new Response(null, init);
  }
  return new Response(isSource(body) ? webStream(body) : body, init);
}
