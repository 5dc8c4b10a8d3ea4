import type { Runtime } from '../../contract/runtime.ts';
import { expireAfter } from '../../operators/timing/expiry.ts';
import { BoundBytes, wholeOf } from '../wire/bytes.ts';
import type { GatewayRequest } from '../wire/exchange.ts';
import { doubledMember, nestsDeeper } from '../wire/json.ts';
import { misshapen } from './shapes.ts';
import { GatewayError } from '../wire/error.ts';

/** What a request's body may be. */
export interface BodyLimits {
  readonly maxBodyBytes: number;
  readonly maxDepth: number;
}

/** A body as it came, and what it says. */
export interface RequestBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

const tooLarge = (maxBodyBytes: number): GatewayError =>
  new GatewayError(
    'request_too_large',
    `The body is larger than ${maxBodyBytes} bytes, the most that this gateway takes; send less`,
  );

const brokenOff = (cause: unknown): GatewayError =>
  new GatewayError('client_gone', 'The body broke off; send the request again', { cause });

/** What a body is read from. */
type Incoming = Pick<GatewayRequest, 'headers' | 'body' | 'signal'>;

/**
 * Reads a body up to a limit, until `signal` says to wait for no more of it; what is beyond the limit is never held.
 */
async function readBytes({ headers, body, signal }: Incoming, maxBodyBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  if (body === null) return new Uint8Array(0);
  try {
    return await wholeOf(new BoundBytes(body, signal), maxBodyBytes, () => tooLarge(maxBodyBytes));
  } catch (thrown) {
    throw thrown instanceof GatewayError ? thrown : brokenOff(thrown);
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });

const decoded = (bytes: Uint8Array): string => {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new GatewayError('invalid_request', 'The body is not valid UTF-8; encode the JSON as UTF-8');
  }
};

/** Reads the body of a request that must be a JSON object. */
export async function readRequestBody(request: Incoming, { maxBodyBytes, maxDepth }: BodyLimits): Promise<RequestBody> {
  const encoding = request.headers.get('content-encoding')?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity')
    throw new GatewayError(
      'invalid_request',
      `The content-encoding ${JSON.stringify(encoding.slice(0, 64))} is not read here; send the JSON as it is`,
    );
  const bytes = await readBytes(request, maxBodyBytes);
  const text = decoded(bytes);
  if (nestsDeeper(text, maxDepth))
    throw new GatewayError(
      'too_deep',
      `The body is nested deeper than ${maxDepth} levels, the most that this gateway takes; flatten it`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GatewayError('invalid_request', 'The body is not valid JSON');
  }
  const doubled = doubledMember(text);
  if (doubled !== undefined) throw misshapen('doubled_member', '', doubled);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new GatewayError('invalid_request', 'The body must be a JSON object');
  return { bytes, text, value: value as Readonly<Record<string, unknown>> };
}

interface TimedBodyLimits extends BodyLimits {
  readonly bodyTimeoutMs: number;
}

const tooLate = (bodyTimeoutMs: number): GatewayError =>
  new GatewayError(
    'body_timeout',
    `The body did not come whole within ${bodyTimeoutMs / 1_000}s, the most that this gateway waits; send ` +
      'the request again',
  );

/**
 * Reads a body for no longer than it may take, and not beyond `closing`, whose reason is what the client is told then.
 */
export async function readBodyInTime(
  request: Incoming,
  limits: TimedBodyLimits,
  closing: AbortSignal,
  runtime: Runtime,
): Promise<RequestBody> {
  const { headers, body, signal: client } = request;
  const over = new AbortController();
  const listening = [client, closing].map((signal) => ({ signal, end: () => over.abort(signal.reason) }));
  for (const { signal, end } of listening) {
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  }
  const deadline = expireAfter(limits.bodyTimeoutMs, runtime, () => over.abort(tooLate(limits.bodyTimeoutMs)));
  try {
    return await readRequestBody({ headers, body, signal: over.signal }, limits);
  } finally {
    deadline.unsubscribe();
    // The gateway outlives its requests: what listens to it must not stay.
    for (const { signal, end } of listening) signal.removeEventListener('abort', end);
  }
}
