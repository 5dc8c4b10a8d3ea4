/**
 * The signal of one attempt, made when it is first asked for: most of the memory of a pending attempt would be that.
 */
export class AttemptSignal {
  #controller: AbortController | undefined;
  #end: 'answered' | 'failed' | 'aborted' | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#end === 'aborted') this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Set once the work has completed, failed or been given up: nothing that it does later counts. */
  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** What work of the same attempt is given that begins now: behind a failed one it finds its signal aborted. */
  get forMore(): AttemptSignal {
    if (this.#end !== 'failed') return this;
    const spent = new AttemptSignal();
    spent.abort();
    return spent;
  }

  answer(): void {
    this.#end ??= 'answered';
  }

  fail(): void {
    this.#end ??= 'failed';
  }

  /** Work that has settled is not aborted after the fact. */
  abort(): void {
    if (this.#end !== undefined) return;
    this.#end = 'aborted';
    this.#controller?.abort();
  }
}
