import type { ToolExecutionError } from '../contract/tool-error.ts';
import { liveRuntime } from '../runtime.ts';
import { readError, toTyped } from './reading.ts';
import { read } from './structure.ts';
import { isTyped } from './tool.ts';

/** What an answer says of itself where an error would have a message. */
const saidBy = (answer: unknown, status: number): string => {
  const reason = read(answer, 'statusText');
  return typeof reason === 'string' && reason !== '' ? `HTTP ${status} ${reason.slice(0, 128)}` : `HTTP ${status}`;
};

/**
 * Gives what an HTTP client threw, or answered, its kind: an answered status is an `execution_error`, or a
 * `timeout` for 408 and 504; a request that was never answered is what its causes say. `Retry-After` is read in all its
 * forms. The body is not read.
 *
 * @param thrown an error of fetch, undici, axios, got or another, or a `Response`, or anything with a status and
 * headers
 * @param wallNow the time that an HTTP date in `Retry-After` is compared with, in epoch milliseconds
 *
 * @example
 * httpThrown(new Response(null, { status: 503, headers: { 'retry-after': '7' } })).retryAfterMs; // 7000
 */
export function httpThrown(thrown: unknown, wallNow: () => number = () => liveRuntime.wallNow()): ToolExecutionError {
  if (isTyped(thrown)) return thrown;
  const reading = readError(thrown, wallNow, 'tool');
  const { structure, status } = reading;
  const own = typeof thrown === 'string' ? thrown : read(thrown, 'message');
  const silent = status !== undefined && (typeof own !== 'string' || own === '');
  const spoken = silent ? { ...reading, structure: { ...structure, message: saidBy(thrown, status) } } : reading;
  return toTyped(spoken, thrown, { kind: 'execution_error', options: {} });
}
