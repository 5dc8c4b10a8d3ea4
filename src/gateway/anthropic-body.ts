import { GatewayError } from './error.ts';
import { nestsDeeper } from './anthropic-json.ts';

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

const tooLarge = (maxBodyBytes: number): GatewayError => new GatewayError('request_too_large', `The body is larger than ${maxBodyBytes} bytes, the most that this gateway takes; send less`);

const joined = (pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
};

const brokenOff = (cause?: unknown): GatewayError => new GatewayError('client_gone', 'The body broke off; send the request again', { cause });

/** Reads a body up to a limit; what is beyond it is never held. `signal`: when to wait for no more of it. */
export async function readBytes(request: Request, maxBodyBytes: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  if (request.body === null) return new Uint8Array(0);
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  // Nobody waits for the rest.
  const cancel = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener('abort', cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw brokenOff(cause);
      });
      // What is canceled ends as if it were whole.
      if (signal?.aborted === true) throw brokenOff();
      if (done) return joined(pieces, length);
      length += value.length;
      if (length > maxBodyBytes) throw tooLarge(maxBodyBytes);
      pieces.push(value);
    }
  } catch (error) {
    cancel();
    throw error;
  } finally {
    signal?.removeEventListener('abort', cancel);
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
export async function readBody(request: Request, { maxBodyBytes, maxDepth }: BodyLimits, signal?: AbortSignal): Promise<RequestBody> {
  const encoding = request.headers.get('content-encoding')?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity') throw new GatewayError('invalid_request', `The content-encoding ${JSON.stringify(encoding.slice(0, 64))} is not read here; send the JSON as it is`);
  const bytes = await readBytes(request, maxBodyBytes, signal);
  const text = decoded(bytes);
  if (nestsDeeper(text, maxDepth)) throw new GatewayError('too_deep', `The body is nested deeper than ${maxDepth} levels, the most that this gateway takes; flatten it`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GatewayError('invalid_request', 'The body is not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new GatewayError('invalid_request', 'The body must be a JSON object');
  return { bytes, text, value: value as Readonly<Record<string, unknown>> };
}
