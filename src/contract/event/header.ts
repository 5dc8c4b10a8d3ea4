/** What every event carries. */
export interface EventHeader {
  /** Grows by one with each event of the layer. */
  readonly seq: number;
  /** Monotonic milliseconds, as `Runtime.now()`. */
  readonly atMs: number;
  /** The turn that it belongs to; absent for a call outside of a turn, and for what concerns the layer alone. */
  readonly turnId?: string;
}
