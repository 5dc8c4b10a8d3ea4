import type { Subscription } from 'rxjs';

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
