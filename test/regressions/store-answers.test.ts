// Was: a store that answered rubbish threw an uncaught TypeError and left the call unsettled. Now: it is
// `store_unavailable`, permanent, naming what it answered.
import { NEVER, firstValueFrom, lastValueFrom, of, type Observable } from 'rxjs';
import { createSpillway, dedupe, tool, type DedupeStore, type ToolResultEnvelope, type TraceEvent } from 'spillway';
import type { DedupeRecord } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';

const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
// Vitest's own listeners would only tell of it at the end, and of the wrong test.
beforeAll(() => {
  process.prependListener('uncaughtException', note);
});
afterAll(() => {
  process.off('uncaughtException', note);
});
afterEach(() => {
  expect(uncaught.splice(0)).toEqual([]);
});

interface Seen {
  readonly result: Promise<ToolResultEnvelope>;
  readonly runs: () => number;
  readonly events: TraceEvent[];
  readonly close: () => Promise<void>;
}

const layerOn = (
  runtime: VirtualRuntime,
  store: DedupeStore,
  mode: 'enforced' | 'bestEffort' = 'enforced',
  ms = 0,
): Seen => {
  let runs = 0;
  const layer = createSpillway({
    runtime,
    store,
    tools: [
      tool({
        name: 't',
        policy: { timeoutMs: 900_000 },
        execute: () => (runs++, ms === 0 ? 'ran' : firstValueFrom(runtime.after(ms)).then(() => 'ran')),
      }),
    ],
  });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  return { result: layer.execute(asked({ mode })), runs: () => runs, events, close: () => layer.close() };
};

const settled = async (runtime: VirtualRuntime, result: Promise<ToolResultEnvelope>): Promise<ToolResultEnvelope> => {
  for (let i = 0; i < 100; i++) await runtime.advance(10_000);
  return Promise.race([result, Promise.reject(new Error('the call never settled'))]);
};

const REQUEST = { sessionKey: '', actorId: '', requestId: 'r', paramsDigest: '0' };
const RECORD = {
  key: 'k',
  tool: 't',
  idempotencyKey: 'k',
  state: 'inflight',
  createdAtMs: 1,
  updatedAtMs: 1,
  expiresAtMs: 9e15,
  ttlMs: 9e9,
  request: REQUEST,
  lockUntilMs: 9e15,
  version: 1,
};
const { request: _, ...WITHOUT_REQUEST } = RECORD;
const { lockUntilMs: __, ...WITHOUT_LEASE } = RECORD;
const hostile = new Proxy(
  {},
  {
    get: (_target, name) => {
      if (name === 'then') return undefined;
      throw new Error('hands off');
    },
  },
);

const CLAIMS: readonly (readonly [what: string, answer: unknown, named: string])[] = [
  ['undefined', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a text', 'secret', 'a text'],
  ['a number', 5, '5'],
  ['a list', [1], 'a list of 1'],
  ['{ created: false }', { created: false }, 'atMs is undefined'],
  ['{ created: true }', { created: true }, 'atMs is undefined'],
  ['no record', { created: false, atMs: 1 }, 'its record is undefined'],
  ['a record without request', { created: false, atMs: 1, record: WITHOUT_REQUEST }, 'its record.request is undefined'],
  [
    'a version that is a text',
    { created: true, atMs: 1, record: { ...RECORD, version: '7' } },
    'its record.version is a text, not a whole number',
  ],
  [
    'a version with a fraction',
    { created: true, atMs: 1, record: { ...RECORD, version: 1.5 } },
    'its record.version is 1.5',
  ],
  [
    'a claim that runs without the end of its lease',
    { created: false, atMs: 1, record: WITHOUT_LEASE },
    'its record.lockUntilMs is undefined',
  ],
  [
    'an unknown state',
    { created: false, atMs: 1, record: { ...RECORD, state: 'ok' } },
    'its record.state is a text, not inflight, done',
  ],
  [
    'a failure that is none',
    { created: false, atMs: 1, record: { ...RECORD, state: 'failed', error: {} } },
    'its record.error.code is undefined',
  ],
  ['what cannot be read', hostile, 'cannot be read'],
];

const answering = (runtime: VirtualRuntime, method: keyof DedupeStore, answer: unknown): DedupeStore => ({
  ...memoryStore({ runtime }),
  [method]: () => answer,
});

describe.each([
  ['at once', (answer: unknown) => answer],
  ['in a promise', (answer: unknown) => Promise.resolve(answer)],
] as const)('R-10.3 rubbish, given %s', (_how, given) => {
  it.each(CLAIMS)('R-10.3 as a claim: %s', async (_what, answer, named) => {
    const runtime = virtualRuntime();
    const seen = layerOn(runtime, answering(runtime, 'setIfNotExists', given(answer)));
    expect(await settled(runtime, seen.result)).toMatchObject({
      status: 'error',
      error: {
        code: 'store_unavailable',
        terminal: true,
        message: expect.stringMatching(new RegExp(`setIfNotExists.*${named}`)) as string,
      },
    });
    expect(seen.runs()).toBe(0);
    expect(seen.events.filter(({ type }) => type === 'store_changed')).toMatchObject([
      { state: 'lost', message: expect.stringContaining('setIfNotExists') as string },
    ]);
    expect(JSON.stringify(seen.events)).not.toContain('secret');
  });

  it.each([
    ['undefined record', {}],
    ['null', null],
    ['a claim of itself', { record: WITHOUT_REQUEST, atMs: 1 }],
  ])('R-10.3 as a reading, for who waits: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const store = answering(runtime, 'get', given(answer));
    layerOn(runtime, store, 'enforced', 600_000).result.catch(() => undefined);
    const waiting = layerOn(runtime, store);
    expect((await settled(runtime, waiting.result)).error).toMatchObject({
      code: 'store_unavailable',
      terminal: true,
      message: expect.stringContaining('answered get with rubbish') as string,
    });
    expect(waiting.runs()).toBe(0);
  });

  it.each([
    ['null', null],
    ['true', true],
    ['a record without its version', { ...RECORD, state: 'done', version: undefined }],
  ])('R-10.3 as what became of an outcome: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const seen = layerOn(runtime, answering(runtime, 'compareAndSet', given(answer)));
    expect(await settled(runtime, seen.result)).toMatchObject({ status: 'success', output: { content: 'ran' } });
    expect(seen.events.filter((event) => event.type === 'dedupe' && event.step === 'unrecorded')).toMatchObject([
      { message: expect.stringContaining('answered compareAndSet with rubbish') as string },
    ]);
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['1', 1],
    ['an object', {}],
  ])('R-10.3 as a renewal: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const seen = layerOn(runtime, answering(runtime, 'renew', given(answer)), 'enforced', 600_000);
    const result = await settled(runtime, seen.result);
    expect(result.error).toMatchObject({
      code: 'store_unavailable',
      terminal: true,
      uncertain: true,
      message: expect.stringContaining('answered renew with rubbish') as string,
    });
  });

  it('R-10.3 as a deletion, when nothing ran: the call ends as it would', async () => {
    const runtime = virtualRuntime();
    const store = answering(runtime, 'delete', given(undefined));
    const layer = createSpillway({
      runtime,
      store,
      tools: [tool({ name: 't', execute: () => 'ran' })],
      hooks: { beforeToolCall: () => ({ block: 'no' }) },
    });
    expect((await settled(runtime, layer.execute(asked()))).status).not.toBe('success');
  });

  it.each([
    ['undefined', undefined],
    ['a list', [1]],
    ['warnings that are none', { kind: 'k', durability: 'disk', shared: true }],
  ])('R-10.3 as a report: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const layer = createSpillway({ runtime, store: answering(runtime, 'report', given(answer)) });
    expect((await layer.inspect()).store).toBeUndefined();
  });

  it.each([
    ['undefined', undefined],
    ['a record without request', { record: WITHOUT_REQUEST, atMs: 1, created: false }],
  ])('R-9.4 the operator errors with it, too: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const stream: Observable<number> = of(1).pipe(
      dedupe(answering(runtime, 'setIfNotExists', given(answer)), 'k', {}, runtime),
    );
    await expect(lastValueFrom(stream)).rejects.toMatchObject({
      kind: 'store_unavailable',
      classification: 'permanent',
      code: 'bad_answer',
    });
  });
});

describe('R-10.3 rubbish of other kinds', () => {
  it('R-10.3 bestEffort runs without such a store, and says what it answered', async () => {
    const runtime = virtualRuntime();
    const seen = layerOn(runtime, answering(runtime, 'setIfNotExists', undefined), 'bestEffort');
    expect(await settled(runtime, seen.result)).toMatchObject({ status: 'success' });
    expect(seen.events.filter((event) => event.type === 'dedupe')).toMatchObject([
      { step: 'unprotected', message: expect.stringContaining('setIfNotExists') as string },
    ]);
  });

  it.each([
    ['undefined', () => undefined],
    ['a promise', () => Promise.resolve()],
  ])('R-10.3 changes that are no stream: %s', async (_what, changes) => {
    const runtime = virtualRuntime();
    const store = { ...memoryStore({ runtime }), changes } as unknown as DedupeStore;
    layerOn(runtime, store, 'enforced', 20_000).result.catch(() => undefined);
    const waiting = layerOn(runtime, store);
    expect((await settled(runtime, waiting.result)).error).toMatchObject({
      code: 'store_unavailable',
      terminal: true,
      message: expect.stringContaining('changes') as string,
    });
  });

  it.each([
    [
      'throw',
      () => {
        throw new Error('no');
      },
    ],
    ['error', () => new (NEVER.constructor as typeof Observable)((subscriber) => subscriber.error(new Error('no')))],
  ])('R-10.3 changes that %s: who waits asks from time to time', async (_what, changes) => {
    const runtime = virtualRuntime();
    const store = { ...memoryStore({ runtime }), changes } as DedupeStore;
    layerOn(runtime, store, 'enforced', 20_000).result.catch(() => undefined);
    const waiting = layerOn(runtime, store);
    expect(await settled(runtime, waiting.result)).toMatchObject({ status: 'success', fromCache: true });
  });

  it.each([
    ['undefined', undefined],
    ['no iterable', {}],
  ])('R-10.3 a list that is none: %s', async (_what, answer) => {
    const runtime = virtualRuntime();
    const layer = createSpillway({
      runtime,
      store: answering(runtime, 'byTool', answer),
      tools: [tool({ name: 't', execute: () => 1 })],
    });
    await expect(layer.flush({ tool: 't' })).rejects.toMatchObject({
      kind: 'store_unavailable',
      classification: 'permanent',
      message: expect.stringContaining('byTool') as string,
    });
  });

  it('R-10.3 a list of what is no record', async () => {
    const runtime = virtualRuntime();
    const list = async function* (): AsyncGenerator<DedupeRecord> {
      yield WITHOUT_REQUEST as unknown as DedupeRecord;
    };
    const layer = createSpillway({
      runtime,
      store: answering(runtime, 'byTool', list()),
      tools: [tool({ name: 't', execute: () => 1 })],
    });
    await expect(layer.flush({ tool: 't' })).rejects.toMatchObject({
      kind: 'store_unavailable',
      classification: 'permanent',
      message: expect.stringContaining('request is undefined') as string,
    });
  });
});
