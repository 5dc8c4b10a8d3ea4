import type { IncomingMessage } from 'node:http';
import { pipeline, type Duplex, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { Progress } from '../../contract/tool.ts';

/** From this size on a download reports how far it is. */
const REPORTED_BYTES = 262_144;

/** An answer that came and is of no use: the request was carried out, and asking again gives the same. */
export const unusable = (message: string, cause?: unknown): ToolExecutionError =>
  new ToolExecutionError('execution_error', message, { classification: 'permanent', uncertain: true, cause });

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};
/** What `accept-encoding` asks for. */
export const ENCODINGS = 'gzip, deflate, br';
/** More than two in a row are a trick. */
const ENCODINGS_MAX = 2;

const decodersOf = ({ headers }: IncomingMessage): Duplex[] => {
  const names = (headers['content-encoding'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length > ENCODINGS_MAX || !names.every((name) => Object.hasOwn(DECODERS, name)))
    throw unusable(
      `The answer has the content encoding ${names.join(', ').slice(0, 64)}, which was not asked for; the ` +
        `server must use one of ${ENCODINGS}`,
    );
  return names.toReversed().flatMap((name) => DECODERS[name]?.() ?? []);
};

const tooLarge = (bytesMax: number): ToolExecutionError =>
  unusable(`The answer is larger than ${bytesMax} bytes; ask for less, or raise the option maxResponseBytes`);

const lengthOf = ({ headers }: IncomingMessage): number | undefined => {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
};

/** Counts what comes over the wire, ends it at the limit, and reports how far a large body is. */
const meter = (
  response: IncomingMessage,
  bytesMax: number,
  report: (progress: Progress) => void,
): { readonly isEmpty: boolean } => {
  const total = lengthOf(response);
  let progress = 0;
  let reported = 0;
  response.on('data', (piece: Buffer) => {
    progress += piece.length;
    // Encoded, a body without an end can decode to nothing at all.
    if (progress > bytesMax) return void response.destroy(tooLarge(bytesMax));
    // Not for every packet.
    if (progress < REPORTED_BYTES || (progress - reported < REPORTED_BYTES && progress !== total)) return;
    reported = progress;
    report(total === undefined ? { progress } : { progress, total });
  });
  return {
    get isEmpty() {
      return progress === 0;
    },
  };
};

/** All of a stream, up to a limit. */
const collected = (stream: Readable, bytesMax: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    stream.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > bytesMax) stream.destroy(tooLarge(bytesMax));
      else pieces.push(piece);
    });
    stream.on('end', () =>
      resolve(pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces, bytes)),
    );
    stream.on('error', reject);
    stream.on('close', () => {
      if (!stream.readableEnded) reject(new Error('The answer ended early'));
    });
  });

/**
 * The body of an answer, decoded. It is cut off as soon as it is larger than `bytesMax`, counted before and after
 * decoding.
 * @throws ToolExecutionError for a body that is too large or cannot be decoded; what the connection failed with, or the
 * abort
 */
export async function readResponseBody(
  response: IncomingMessage,
  bytesMax: number,
  signal: AbortSignal,
  report: (progress: Progress) => void,
): Promise<Buffer> {
  const abort = (): void => void response.destroy(new Error('aborted'));
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort);
  const measured = meter(response, bytesMax, report);
  try {
    if ((lengthOf(response) ?? 0) > bytesMax) throw tooLarge(bytesMax);
    const decoders = decodersOf(response);
    const last = decoders.at(-1);
    // Whatever fails, all of them end with it.
    if (last !== undefined) pipeline([response, ...decoders], () => undefined);
    return await collected(last ?? response, bytesMax);
  } catch (error) {
    const { errored } = response;
    response.destroy();
    if (error instanceof ToolExecutionError || signal.aborted || errored !== null) throw error;
    // Nothing is no gzip, and still an answer, as with 204.
    if (measured.isEmpty) return Buffer.alloc(0);
    throw unusable('The answer cannot be decoded: its body is not what its content encoding says', error);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The steps of a JSON pointer or a dotted path. */
export function pointerOf(at: string): string[] {
  if (at === '') return [];
  if (!at.startsWith('/')) return at.split('.');
  if (/~(?![01])/.test(at)) throw new RangeError('has a ~ that is no escape; write ~0 for ~ and ~1 for /');
  return at
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The part of a value that a path leads to; `undefined` where there is none. */
export function partAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (Array.isArray(inner)) return /^(?:0|[1-9]\d*)$/.test(step) ? (inner[Number(step)] as unknown) : undefined;
    return typeof inner === 'object' && inner !== null && Object.hasOwn(inner, step)
      ? (inner as Record<string, unknown>)[step]
      : undefined;
  }, value);
}

const charsetOf = (contentType: string): string => /;\s*charset="?([\w.:-]{1,40})"?/i.exec(contentType)?.[1] ?? 'utf-8';
const mediaTypeOf = (contentType: string): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
const isJsonType = (mediaType: string): boolean =>
  mediaType === 'application/json' || mediaType === 'text/json' || mediaType.endsWith('+json');
const isTextType = (mediaType: string): boolean =>
  mediaType === '' ||
  mediaType.startsWith('text/') ||
  isJsonType(mediaType) ||
  /^application\/(?:.*\+)?(?:xml|javascript|yaml|x-yaml|x-www-form-urlencoded|x-ndjson|sql|graphql)$/.test(mediaType);

const decoderOf = (charset: string): TextDecoder => {
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch {
    throw unusable(`The answer is in the character set ${charset}, which is not known`);
  }
};

const textOf = (body: Buffer, contentType: string): string => {
  const charset = charsetOf(contentType);
  const decoder = decoderOf(charset);
  try {
    return decoder.decode(body);
  } catch (error) {
    throw unusable(
      `The answer is not text in ${charset}, as its content type ` +
        `(${mediaTypeOf(contentType).slice(0, 64) || 'none'}) lets expect`,
      error,
    );
  }
};

/** How an answer's body is read. */
export interface Reading {
  readonly as: 'json' | 'text' | undefined;
  /** A part of it is asked for, or checked: then it is JSON. */
  readonly structured: boolean;
}

/**
 * The value of a body: JSON where it is said to be, or wanted, else text. An empty one is `null`, or the empty text.
 * @throws ToolExecutionError permanent and uncertain, for a body that is not what it is said to be
 */
export function valueOfBody(body: Buffer, contentType: string, { as, structured }: Reading): unknown {
  const mediaType = mediaTypeOf(contentType);
  const json = as === 'json' || (as === undefined && (structured || isJsonType(mediaType)));
  if (body.length === 0) return as === 'text' ? '' : null;
  if (!json && as === undefined && !isTextType(mediaType))
    throw unusable(
      `The answer is of type ${mediaType.slice(0, 64)}, which is neither JSON nor text; say as: text or as: ` +
        'json if it is',
    );
  const text = textOf(body, contentType);
  if (!json) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw unusable(`The answer is not JSON; its content type is ${mediaType.slice(0, 64) || 'missing'}`, error);
  }
}
