import { Observable, map } from 'rxjs';
import { attemptTimeout } from 'spillway';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { withTurns } from './with-turns.ts';

/** When each attempt ended, since the start, and with what. */
const watched = (
  runtime: VirtualRuntime,
  seen: string[],
  name: string,
): { next: (value: unknown) => void; error: () => void } => {
  const startedAtMs = runtime.now();
  const tell = (what: string): void => void seen.push(`${name} ${what} at ${runtime.now() - startedAtMs}`);
  return { next: (value) => tell(String(value)), error: () => tell('timed out') };
};

describe('R-4.1 the clock of an attempt', () => {
  it.each([2, 40, 500, 999])(
    'R-4.1 one that begins %i ms into the synchronous part of another puts off no deadline',
    async (blockedMs) => {
      const runtime = virtualRuntime();
      const seen: string[] = [];
      const second = new Observable(() => undefined).pipe(attemptTimeout(1_000, runtime));
      const first = new Observable(() => {
        runtime.stall(blockedMs);
        second.subscribe(watched(runtime, seen, 'second'));
      }).pipe(attemptTimeout(1_000, runtime));
      first.subscribe(watched(runtime, seen, 'first'));
      await runtime.run();
      expect(seen).toEqual(['first timed out at 1000', 'second timed out at 1000']);
    },
  );
});

describe('R-4.6 an answer behind a stalled event loop', () => {
  it.each([
    ['is let in while it is unpacked, a millisecond behind the stall', 1, 'answer'],
    ['and not for ever', 5, 'timed out'],
  ])('R-4.6 %s', async (_name, unpackMs, ended) => {
    const runtime = withTurns(virtualRuntime());
    const seen: string[] = [];
    // It came at 900, while the loop stalled until 1,100; then a thread of its own unpacks it.
    let unpack: (() => void) | undefined;
    const source = new Observable((subscriber) => {
      unpack = () =>
        runtime
          .after(unpackMs)
          .pipe(map(() => 'answer'))
          .subscribe(subscriber);
    });
    source.pipe(attemptTimeout(1_000, runtime)).subscribe(watched(runtime, seen, 'it'));
    const arrived = runtime.after(900).subscribe(() => unpack?.());
    await runtime.advance(800);
    runtime.stall(300);
    await runtime.run();
    expect(arrived.closed).toBe(true);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toContain(ended);
  });
});
