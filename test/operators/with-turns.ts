import type { VirtualRuntime } from 'spillway/testing';

/** Time as on a real event loop: its runtimes say when a turn of it is over. */
export const withTurns = (runtime: VirtualRuntime): VirtualRuntime => ({
  ...runtime,
  get pending() {
    return runtime.pending;
  },
  soon: (run) => {
    const ended = runtime.after(0).subscribe(run);
    return () => ended.unsubscribe();
  },
});
