import { describe, expect, it } from 'vitest';
import { places, watched } from './tr-02-stores.ts';

describe.each(places())('TR-6 on %s', (_name, placeOf) => {
  it.each([400, 401, 403, 404, 413, 422])(
    'TR-6 a terminal %i: no retry, one attempt, and the error says so, the first time and from the store',
    async (status) => {
      const place = await placeOf();
      let runs = 0;
      const execute = (): never => {
        runs++;
        throw Object.assign(new Error('you asked wrongly'), { status });
      };
      const [here, there] = [
        watched(await place.open(), execute, { retry: { maxAttempts: 4 } }),
        watched(await place.open(), execute),
      ];
      for (const { call } of [here, there]) {
        const result = await call();
        expect(result).toMatchObject({ status: 'error', error: { terminal: true, retriable: false } });
        expect(result.retriedBy).toBeUndefined();
      }
      expect(runs).toBe(1);
      expect(here.layer.breakers.get('t').state).toMatchObject({ type: 'closed', consecutiveFailures: 0 });
    },
  );

  it('TR-6 with dedupe disabled the error goes through as it was, once for each call', async () => {
    const place = await placeOf();
    let runs = 0;
    const { call } = watched(
      await place.open(),
      () => {
        runs++;
        throw Object.assign(new Error('you asked wrongly'), { status: 400 });
      },
      { retry: { maxAttempts: 4 } },
    );
    for (const expected of [1, 2]) {
      expect(await call({ mode: 'disabled' })).toMatchObject({
        status: 'error',
        attempts: 1,
        fromCache: false,
        error: { terminal: true, message: expect.stringContaining('you asked wrongly') as string },
      });
      expect(runs).toBe(expected);
    }
  });
});
