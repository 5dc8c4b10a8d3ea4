import type { Subscription } from 'rxjs';
import { read } from '../../errors/structure.ts';

export type RequestId = string | number;

/** A request whose answer has not come. */
export interface OpenRequest {
  /** Ends its stream, and no other's. */
  readonly controller: AbortController;
  /** The last event that was read: where its stream can be taken up again. */
  token: string | undefined;
  /** Streams in a row that brought nothing. */
  emptyHanded: number;
  /** The status with which the server sent it elsewhere, or to sign in: it has not run it. */
  turnedAway: number | undefined;
  wait: Subscription | undefined;
}

/** What answers a request whose answer was lost on the way: this very object, which no server sends. */
export const CLOSED_EARLY = { code: -32_000, message: 'Connection closed before the answer came' } as const;

/** The id of a message that is a request. */
export const requestIdOf = (message: unknown): RequestId | undefined => {
  const id = read(message, 'method') === undefined ? undefined : read(message, 'id');
  return typeof id === 'string' || typeof id === 'number' ? id : undefined;
};

/** The message that a body holds. */
export const bodyOf = (body: unknown): unknown =>
  typeof body === 'string' ? (JSON.parse(body) as unknown) : undefined;
