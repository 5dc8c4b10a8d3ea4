import { describe, expect, it } from 'vitest';
import { createSpillway, tool } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { places, records, watched } from './tr-02-stores.ts';

/** Results that a careless cache takes for none. */
const FALSY: readonly unknown[] = [undefined, null, 0, '', false, -0, [], {}];
const AWKWARD: readonly unknown[] = [
  'a\u0000b',
  '\ud800 alone',
  'x'.repeat(100_000),
  { a: { b: [null, { c: undefined }] } },
  JSON.parse('{"__proto__":{"polluted":1},"constructor":2}'),
  1e21,
  [[[[[]]]]],
  '{"state":"failed"}',
];

describe.each(places())('TR-3 on %s', (_name, placeOf) => {
  it('TR-3 a duplicate after completion gets the cached result; another session does not; the digest is unchanged', async () => {
    const place = await placeOf();
    let runs = 0;
    const [here, there] = [watched(await place.open(), () => ++runs), watched(await place.open(), () => ++runs)];
    const first = await here.call({ params: { to: 'NRT', from: 'HEL' } });
    const store = await place.open();
    const [record] = await records(store);
    for (const { call } of [here, there]) {
      const again = await call({ params: { from: 'HEL', to: 'NRT' } });
      expect(again).toMatchObject({
        status: 'success',
        fromCache: true,
        attempts: 0,
        output: first.output,
        cache: { matchedOn: 'completed' },
      });
      expect(again.cache?.ageMs).toBeLessThan(60_000);
      expect(again.cache?.keyFingerprint).toMatch(/^[0-9a-f]{16}$/);
    }
    expect(await records(store)).toEqual([record]);
    expect((await here.call({ session: 'another', params: { to: 'NRT', from: 'HEL' } })).fromCache).toBe(false);
    expect(runs).toBe(2);
  });

  it.each([...FALSY, ...AWKWARD].map((value, n) => [n, value] as const))(
    'TR-3 R-9.4 result %i is replayed as the result it was',
    async (_n, value) => {
      const place = await placeOf();
      let runs = 0;
      const execute = (): unknown => {
        runs++;
        return value;
      };
      const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
      const first = await here.call();
      for (const { call } of [here, there]) {
        const again = await call();
        expect(again).toMatchObject({ status: 'success', fromCache: true });
        expect(JSON.stringify([again.output?.content])).toBe(JSON.stringify([first.output?.content]));
        expect('content' in (again.output ?? {})).toBe(true);
      }
      expect(runs).toBe(1);
      expect(({} as { polluted?: number }).polluted).toBeUndefined();
    },
  );

  it('TR-3 a failure is replayed with its words, its class and its doubts', async () => {
    const place = await placeOf();
    let runs = 0;
    const execute = (): never => {
      runs++;
      throw Object.assign(new Error('airport XYZ is closed'), { status: 409 });
    };
    const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const first = await here.call();
    expect(first).toMatchObject({ status: 'error', error: { terminal: true } });
    for (const { call } of [here, there])
      expect(await call()).toMatchObject({ fromCache: true, attempts: 0, status: first.status, error: first.error });
    expect(runs).toBe(1);
  });

  it('TR-3 a retriable failure is replayed to enforced, and runs again for bestEffort; a terminal one runs for neither', async () => {
    const place = await placeOf();
    let runs = 0;
    let status = 503;
    const { call } = watched(
      await place.open(),
      () => {
        runs++;
        throw Object.assign(new Error('busy'), { status });
      },
      { breaker: false },
    );
    expect((await call()).fromCache).toBe(false);
    expect((await call()).fromCache).toBe(true);
    status = 404;
    expect(await call({ mode: 'bestEffort' })).toMatchObject({ fromCache: false, error: { terminal: true } });
    expect(await call({ mode: 'bestEffort' })).toMatchObject({ fromCache: true, error: { terminal: true } });
    expect(runs).toBe(2);
  });
});

it('TR-3 R-10.2 results are kept for 24 h, failures for 5 min, by default', async () => {
  const runtime = virtualRuntime();
  let runs = 0;
  const good = tool({ name: 't', execute: () => ++runs });
  const bad = tool({
    name: 'bad',
    execute: (): never => {
      runs++;
      throw Object.assign(new Error('no'), { status: 400 });
    },
  });
  const layer = createSpillway({ tools: [good, bad], store: memoryStore({ runtime }), runtime });
  const replayed = async (toolName: string): Promise<boolean> =>
    (await layer.execute({ toolName, idempotencyKey: 'k' })).fromCache;
  expect([await replayed('t'), await replayed('bad')]).toEqual([false, false]);
  await runtime.advance(299_999);
  expect([await replayed('t'), await replayed('bad')]).toEqual([true, true]);
  await runtime.advance(1);
  expect([await replayed('t'), await replayed('bad')]).toEqual([true, false]);
  await runtime.advance(24 * 3_600_000 - 300_001);
  expect(await replayed('t')).toBe(true);
  await runtime.advance(1);
  expect(await replayed('t')).toBe(false);
});
