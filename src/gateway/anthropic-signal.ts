/**
 * A signal that is aborted with the first of others, which live no longer than it does: its listeners stay on them. `AbortSignal.any` would be
 * kept by Node for as long as someone listens, and what is fetched listens for ever.
 */
export function firstAborted(signals: readonly AbortSignal[]): AbortSignal {
  const joint = new AbortController();
  const abort = (): void => joint.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }
  return joint.signal;
}
