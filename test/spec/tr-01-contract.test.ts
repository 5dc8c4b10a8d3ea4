import { describe, expect, it } from 'vitest';
import type { DedupeStore, ToolCallEnvelope, ToolCallRequest } from 'spillway';
import { asked, places, records, watched } from './tr-02-stores.ts';

/** A store that notes each question. */
const noted = (store: DedupeStore): { readonly store: DedupeStore; readonly questions: string[] } => {
  const questions: string[] = [];
  const proxy = new Proxy(store, {
    get: (target, name, receiver) => {
      if (typeof name === 'string') questions.push(name);
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  return { store: proxy, questions };
};

const good = asked();
const without = (name: keyof ToolCallEnvelope): object =>
  Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));

const MALFORMED: ReadonlyArray<readonly [string, unknown, string]> = [
  ['no toolName', without('toolName'), 'toolName'],
  ['an empty toolName', { ...good, toolName: '' }, 'toolName'],
  ['a bad contractVersion', { ...good, contractVersion: '1.0' }, 'contractVersion'],
  ['no contractVersion', without('contractVersion'), 'contractVersion'],
  ['no target', without('target'), 'target'],
  ['an actor of another type', { ...good, target: { ...good.target, actorId: 7 } }, 'target.actorId'],
  ['a key that is empty', { ...good, payload: { ...good.payload, idempotencyKey: '' } }, 'payload.idempotencyKey'],
  [
    'a key that is too long',
    { ...good, payload: { ...good.payload, idempotencyKey: 'k'.repeat(513) } },
    'payload.idempotencyKey',
  ],
  ['params that are a list', { ...good, payload: { ...good.payload, params: [] } }, 'payload.params'],
  [
    'a mode that does not exist',
    { ...good, transport: { ...good.transport, dedupeMode: 'enabled' } },
    'transport.dedupeMode',
  ],
  [
    'no attempts',
    { ...good, transport: { ...good.transport, retryBudget: { maxAttempts: 0, maxElapsedMs: 1 } } },
    'transport.retryBudget.maxAttempts',
  ],
  ['a field that nobody knows', { ...good, priority: 1 }, 'priority'],
  ['a field inside that nobody knows', { ...good, control: { retry: true } }, 'retry'],
  ['nothing', null, 'malformed'],
  ['a text', 'flight_search', 'malformed'],
  ['an empty short form', {}, 'toolName'],
  ['a short form with an empty key', { toolName: 't', idempotencyKey: '' }, 'idempotencyKey'],
];

describe.each(places())('TR-1 on %s', (_name, placeOf) => {
  it.each(MALFORMED)(
    'TR-1 %s: an immediate, terminal validation error that names the path, no attempt and no record',
    async (_what, request, path) => {
      const { store, questions } = noted(await (await placeOf()).open());
      let runs = 0;
      const { layer, events, call } = watched(store, () => ++runs, { retry: { maxAttempts: 4 } });
      questions.length = 0;
      const result = await layer.execute(request as ToolCallRequest);
      expect(result).toMatchObject({
        status: 'error',
        attempts: 0,
        fromCache: false,
        error: { code: 'invalid_parameters', terminal: true, retriable: false },
      });
      expect(result.error?.message).toContain(path);
      expect(events.map(({ type }) => type)).not.toContain('attempt_started');
      // How durable it is, a store is asked once at the start: no question about the call.
      expect([runs, questions.filter((question) => question !== 'report')]).toEqual([0, []]);
      // A valid call still runs, and leaves the one record there is.
      expect(await call()).toMatchObject({ status: 'success', output: { content: 1 } });
      expect(questions).toContain('setIfNotExists');
      expect((await records(store)).map(({ state }) => state)).toEqual(['done']);
    },
  );

  it.each([
    ['NaN', NaN],
    ['Infinity', -Infinity],
    ['a function', () => 1],
    ['a big integer', 1n],
    ['a lone surrogate', '\ud800'],
    ['__proto__ of a cycle', Object.assign(JSON.parse('{"__proto__":{}}') as object, {})],
  ])('TR-1 input that no key can be made of, or that is odd (%s): clear, and never a crash', async (what, value) => {
    const { store } = noted(await (await placeOf()).open());
    let runs = 0;
    const { call } = watched(store, () => ++runs);
    const result = await call({ params: { value } });
    if (what.startsWith('__proto__')) {
      expect(result).toMatchObject({ status: 'success' });
      return;
    }
    expect(result).toMatchObject({
      status: 'error',
      attempts: 0,
      error: { code: 'invalid_parameters', terminal: true },
    });
    expect(runs).toBe(0);
    expect(await records(store)).toEqual([]);
  });
});
