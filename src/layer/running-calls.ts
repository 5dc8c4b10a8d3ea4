/** A call in the list: linked into it, so that it costs nothing to leave. */
export interface RunningCall {
  next: RunningCall | undefined;
  previous: RunningCall | undefined;
  cancel(message: string): void;
}

/**
 * The calls of a layer that are running. A list that its members carry, and not a Set: a Set that is emptied and filled
 * with each call leaves a chain of old tables behind, which kept 3 KB of every call alive until the next full
 * collection.
 */
export class RunningCalls {
  #first: RunningCall | undefined;

  add(call: RunningCall): void {
    call.next = this.#first;
    if (this.#first !== undefined) this.#first.previous = call;
    this.#first = call;
  }

  /** Harmless for one that has left. */
  delete(call: RunningCall): void {
    const { next, previous } = call;
    if (previous !== undefined) previous.next = next;
    else if (this.#first === call) this.#first = next;
    if (next !== undefined) next.previous = previous;
    call.next = undefined;
    call.previous = undefined;
  }

  /** Cancels every call, those included that begin meanwhile; each leaves the list as it ends. */
  cancelAll(): void {
    for (let call = this.#first; call !== undefined; call = this.#first) {
      this.delete(call);
      call.cancel('The layer was closed');
    }
  }
}
