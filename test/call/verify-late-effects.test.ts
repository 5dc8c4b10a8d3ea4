import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { PATIENT, ended, lost, scene } from './verified-payment.ts';

describe('verify and effects that come late', () => {
  it('R-18.2 an effect that comes within settleMs after the attempt has stopped is found', async () => {
    let done = false;
    const at = scene(
      () => ({ done }),
      () => NEVER,
      { verify: { settleMs: 2_000, stopsOnUnsubscribe: true } },
    );
    // The server goes on with a request whose caller has gone.
    at.runtime.after(2_500).subscribe(() => (done = true));
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done', attempts: 1 });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_000, 3_000]);
  });

  it('R-18.2 it is asked only once the work that was aborted has stopped', async () => {
    let stop: (() => void) | undefined;
    const at = scene(
      () => ({ done: true }),
      () => new Promise((_, reject) => (stop = () => reject(new Error('aborted at last')))),
    );
    at.runtime.after(1_700).subscribe(() => stop?.());
    expect(await ended(at)).toMatchObject({ verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_700]);
  });

  it('R-18.2 of work that does not stop, "not done" is not believed', async () => {
    const at = scene(
      () => ({ done: false }),
      () => new Promise(() => undefined),
    );
    expect(await ended(at)).toMatchObject({ verified: 'unknown', attempts: 1, error: { uncertain: true } });
    expect(at.starts).toHaveLength(1);
  });

  it('R-18.2 what the aborted attempt gives after all goes before what verify says', async () => {
    let answer: ((value: string) => void) | undefined;
    const at = scene(
      () => ({ done: false }),
      () => new Promise((resolve) => (answer = resolve)),
    );
    at.runtime.after(1_500).subscribe(() => answer?.('paid'));
    expect(await ended(at)).toMatchObject({ status: 'success', verified: 'done', output: { content: 'paid' } });
    expect(at.starts).toHaveLength(1);
  });

  it('R-18.2 a thenable that acts each time it is asked is asked once', async () => {
    let acts = 0;
    // As the query builders of some databases are.
    const query = {
      then: (resolve: (value: string) => void) => {
        acts++;
        resolve('paid');
      },
    };
    const at = scene(
      () => 'unknown',
      () => query,
    );
    expect(await ended(at)).toMatchObject({ status: 'success', output: { content: 'paid' } });
    expect(acts).toBe(1);
  });

  it('R-18.2 an async iterable has stopped when its generator has', async () => {
    let stop: (() => void) | undefined;
    const at = scene(
      () => ({ done: true }),
      async function* () {
        yield await new Promise<string>((_, reject) => (stop = () => reject(new Error('stopped'))));
      },
    );
    at.runtime.after(1_800).subscribe(() => stop?.());
    expect(await ended(at)).toMatchObject({ verified: 'done' });
    expect(at.asked.map(({ atMs }) => atMs)).toEqual([1_800]);
  });

  it('R-18.2 no attempt starts after the total time, however long the verification took', async () => {
    const at = scene(() => ({ done: false }), lost, {
      retry: { ...PATIENT, maxTotalTimeMs: 900 },
      verify: { settleMs: 1_000 },
    });
    const { error, attempts } = await ended(at);
    expect({ attempts, uncertain: error?.uncertain }).toEqual({ attempts: 1, uncertain: undefined });
  });
});
