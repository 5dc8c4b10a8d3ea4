// Was: an error of the progress stream was nobody's, and reached the process as an uncaught exception. Now: progress
// that fails is progress that ended.
import { Subject, config } from 'rxjs';
import { afterEach, expect, it, vi } from 'vitest';
import { idleTimeout } from '../../src/operators/idle-timeout.ts';
import { handClock } from '../support.ts';

afterEach(() => {
  config.onUnhandledError = null;
  vi.useRealTimers();
});

it('R-4.3 progress that fails is progress that ended: the source goes on, and the silence begins', () => {
  vi.useFakeTimers();
  const unhandled: unknown[] = [];
  config.onUnhandledError = (error) => unhandled.push(error);
  const clock = handClock();
  const [source, progress, events] = [new Subject<string>(), new Subject<void>(), [] as string[]];
  source
    .pipe(idleTimeout(5, progress, clock.runtime))
    .subscribe({ next: (value) => events.push(value), error: ({ kind }: { kind: string }) => events.push(kind) });
  clock.pass(3);
  progress.next();
  progress.error(new Error('no progress any more'));
  source.next('a');
  clock.pass(4);
  expect(events).toStrictEqual(['a']);
  clock.pass(1);
  vi.runAllTimers();
  expect(events).toStrictEqual(['a', 'timeout']);
  expect(unhandled).toStrictEqual([]);
});
