// Was: a permit heard two words when its attempt was ended from within the first, and work unsubscribed while it
// started was subscribed to. Now: neither, for guards and calls alike.
import { NEVER, Observable, Subject, Subscription } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { createBreaker, createSpillway, guard, tool, type Breaker } from 'spillway';
import { abortable } from '../../src/operators/work/abortable.ts';

const transient = new Error('ECONNRESET');

describe('what a guard and a call have in common, they do in the same way', () => {
  it.each([
    ['abortable', (work: () => Observable<number>) => abortable(work)],
    ['guard.from', (work: () => Observable<number>) => guard({ timeoutMs: 1_000 }).from(work)],
  ])('R-4.1 %s: the stream of work that is unsubscribed while it starts is not subscribed to', (_what, guarded) => {
    const subscribed = vi.fn<() => void>();
    const subscription = new Subscription();
    const stream = new Observable<number>(() => subscribed());
    const asked = new Observable<number>((subscriber) => {
      subscription.add(subscriber);
      return guarded(() => {
        subscription.unsubscribe();
        return stream;
      }).subscribe(subscriber);
    });
    asked.subscribe();
    expect(subscribed).not.toHaveBeenCalled();
  });

  it.each([
    ['failure', (source: Subject<never>) => source.error(transient)],
    ['success', (source: Subject<never>) => source.complete()],
  ])('BRK-4 a permit hears one word, %s, though its attempt is ended from within that word', (word, end) => {
    const words: string[] = [];
    const subscription = new Subscription();
    const say = (said: string) => (): void => {
      words.push(said);
      subscription.unsubscribe();
    };
    const own = createBreaker();
    const breaker: Breaker = {
      ...own,
      state: own.state,
      admit: () => ({
        admitted: true,
        success: say('success'),
        failure: say('failure'),
        answered: say('answered'),
        ignore: say('ignore'),
        release: say('release'),
      }),
    };
    const source = new Subject<never>();
    subscription.add(source.pipe(guard({ breaker })).subscribe({ error: () => undefined }));
    end(source);
    expect(words).toStrictEqual([word]);
  });

  it('R-7.6 every run of an around has a signal, and the time-out aborts each of them', async () => {
    const signals: AbortSignal[] = [];
    const slow = tool({
      name: 'slow',
      policy: { timeoutMs: 20, retry: { maxAttempts: 1 } },
      execute: (_input, { signal }) => {
        signals.push(signal);
        return NEVER;
      },
    });
    let again: (() => unknown) | undefined;
    const spillway = createSpillway({
      tools: [slow],
      around: (_callId, _attempt, run) => {
        again = run;
        run();
        return run();
      },
    });
    expect((await spillway.execute({ toolName: 'slow' })).error?.code).toBe('timeout');
    // Run once more when the attempt is over, it finds its signal aborted.
    again?.();
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, true, true]);
    expect(signals[0]).toBe(signals[1]);
  });
});
