import { NEVER, defer, switchMap, throwError } from 'rxjs';
import { hedge, type Runtime } from 'spillway';
import { describe, expect, it } from 'vitest';
import { PATIENT, ended, scene, type Scene } from './verified-payment.ts';

const virtual = (at: () => Scene): Runtime => ({
  now: () => at().runtime.now(),
  wallNow: () => at().runtime.wallNow(),
  random: () => 0.5,
  id: () => 'id',
  after: (ms) => at().runtime.after(ms),
});

const lostAnswer = (): Error => Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
const refused = (status: number): Error => Object.assign(new Error('no'), { status });

describe('a mutating tool that hedges by itself, and its verify', () => {
  it.each([
    ['of the second request is certain', 409],
    ['of the second request asks to try again', 503],
  ])('R-18.1 the doubt of a first request outlives a refusal that %s', async (_, status) => {
    const requests: number[] = [];
    const own: { at?: Scene } = {};
    const clock = virtual(() => own.at as Scene);
    const twice = hedge({ delayMs: 100 }, clock);
    const request = defer(() => {
      requests.push(requests.length + 1);
      // The first one is booked, and its answer is lost while the second is under way.
      const [afterMs, error] =
        requests.length === 1 ? ([200, lostAnswer()] as const) : ([300, refused(status)] as const);
      return clock.after(afterMs).pipe(switchMap(() => throwError(() => error)));
    });
    own.at = scene(
      () => ({ done: true, output: 'receipt' }),
      () => request.pipe(twice),
      { verify: { settleMs: 1_000 } },
    );
    const { status: told, verified } = await ended(own.at);
    expect({ told, verified, requests }).toEqual({ told: 'success', verified: 'done', requests: [1, 2] });
  });

  it('R-18.2 is not told that nothing was done while a request may be under way', async () => {
    const own: { at?: Scene } = {};
    const twice = hedge(
      { delayMs: 100 },
      virtual(() => own.at as Scene),
    );
    own.at = scene(
      () => ({ done: false }),
      () => defer(() => new Promise(() => undefined)).pipe(twice),
      { verify: { settleMs: 0 } },
    );
    const { verified, error, attempts } = await ended(own.at);
    expect({ verified, uncertain: error?.uncertain, attempts }).toEqual({
      verified: 'unknown',
      uncertain: true,
      attempts: 1,
    });
  });

  it('R-18.2 is retried where every request stops when nobody waits for it', async () => {
    const own: { at?: Scene } = {};
    const twice = hedge(
      { delayMs: 100 },
      virtual(() => own.at as Scene),
    );
    own.at = scene(
      () => ({ done: false }),
      (attempt) => (attempt === 1 ? NEVER.pipe(twice) : 'receipt'),
      { verify: { settleMs: 0, stopsOnUnsubscribe: true }, retry: PATIENT },
    );
    expect(await ended(own.at)).toMatchObject({ status: 'success', attempts: 2 });
  });
});
