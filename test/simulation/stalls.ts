/** When the event loop was stalled, and so what it could see. */
export class Stalls {
  readonly #stalls: Array<{ readonly dueMs: number; readonly endMs: number }> = [];

  /** @param dueMs when what stalled it was due */
  add(dueMs: number, endMs: number): void {
    this.#stalls.push({ dueMs, endMs });
  }

  /** When a deadline was found to have passed: at its instant, or at the end of the stall that it fell into. */
  foundPassedMs(deadlineMs: number): number {
    let foundMs = deadlineMs;
    // What is overdue comes in the order in which it was due: a stall that was due later began when the deadline's
    // timer had come.
    for (const { dueMs, endMs } of this.#stalls) if (dueMs < deadlineMs) foundMs = Math.max(foundMs, endMs);
    return foundMs;
  }
}
