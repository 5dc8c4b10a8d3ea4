import type { DedupeStore } from '../../contract/store.ts';
import { LONG_MS, check, claimOf, failure, finish, found, own, refused, same, type HarnessCase } from './check.ts';

const HALF = '\ud800';
const OTHER_HALF = '\ud801';
const MEGABYTE = 1_000_000;

const PAYLOADS: readonly string[] = [
  'null',
  '0',
  '-0',
  '""',
  'false',
  '{}',
  '[]',
  ' {"b" : 1,\n"a":\t2 } ',
  '1e400',
  '12.50',
  '{"a":1,"a":2}',
  '{"__proto__":{"x":1}}',
  '',
  'no JSON at all',
  JSON.stringify('é e\u0301 ß 漢字 💥 \u{10ffff} \u2028 \ufeff'),
  '"a\\u0000b"',
  'a\0b',
  '\ufeff{}',
  '\r\n',
  '\x7f\x1b[31m',
  "'; DROP TABLE records; --",
  JSON.stringify('x'.repeat(MEGABYTE)),
  JSON.stringify('漢'.repeat(MEGABYTE / 4)),
];

const NAMES: readonly string[] = [
  '',
  ' ',
  'a',
  'A',
  'a ',
  ' a',
  'aa',
  'a:b',
  'a:',
  ':a',
  'a:b:c',
  '{}',
  '{a}',
  '{a}b',
  '{b}',
  'a\nb',
  'a\r\nb',
  'a\0b',
  'a\0c',
  'a\tb',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '*',
  'a*',
  '?',
  '[a]',
  '%',
  '_',
  '\\',
  '\\0',
  "'",
  '"',
  '`',
  '$1',
  'null',
  'undefined',
  '0',
  '-1',
  '1e3',
  'é',
  'e\u0301',
  '漢字',
  '💥',
  '\ufeff',
  '\u2028',
  '\ufffd',
  'k'.repeat(5_000),
  `${'k'.repeat(5_000)}2`,
];

/** A store may refuse text that is no Unicode; it may not change it, nor take one for another. */
const refusedOrKept = async (store: DedupeStore, key: string, payload: string): Promise<void> => {
  let record;
  try {
    record = await own(store, claimOf(key));
    record = await finish(store, record, payload);
  } catch (error) {
    check(
      record === undefined || record.state === 'inflight',
      `what the store took it must give back: ${String(error)}`,
    );
    return;
  }
  const { key: kept, payload: read } = (await found(store, key)).record;
  same([kept, read], [key, payload], 'text with a lone surrogate');
};

/** What it keeps is what it was given. */
export const dataCases: readonly HarnessCase[] = [
  {
    name: 'a payload is kept byte for byte: null, 0, "", false, whitespace, a megabyte, any Unicode',
    run: async ({ store, open }) => {
      const other = (await open?.()) ?? store;
      for (const [i, payload] of PAYLOADS.entries()) {
        const settled = await finish(store, await own(store, claimOf(`k${i}`)), payload);
        for (const { record } of [
          { record: settled },
          await found(other, `k${i}`),
          await refused(store, claimOf(`k${i}`)),
        ]) {
          check(
            record.payload === payload,
            `payload ${JSON.stringify(payload).slice(0, 80)} came back as ` +
              String(JSON.stringify(record.payload)).slice(0, 80),
          );
        }
      }
    },
  },
  {
    name: 'a result of nothing has no payload, and a failure none either',
    run: async ({ store }) => {
      const nothing = await own(store, claimOf('nothing'));
      check(
        (await store.compareAndSet('nothing', nothing.version, { state: 'done', ttlMs: LONG_MS })) !== undefined,
        'an outcome without a payload is one',
      );
      check(!('payload' in (await found(store, 'nothing')).record), 'no payload is no member, not undefined');
      const failing = await own(store, claimOf('failing'));
      const text = { ...failure, code: '', message: 'line 1\nline 2 \0 "quoted" 💥', uncertain: true } as const;
      await store.compareAndSet('failing', failing.version, { state: 'failed', ttlMs: LONG_MS, error: text });
      const { record } = await found(store, 'failing');
      same([record.error, 'payload' in record], [text, false], 'the error');
    },
  },
  {
    name: 'keys of any characters are keys of their own: empty, braces, colons, newlines, NUL, __proto__',
    run: async ({ store, open }) => {
      const other = (await open?.()) ?? store;
      for (const [i, key] of NAMES.entries())
        await finish(store, await own(store, claimOf(key, { requestId: `r${i}` })), String(i));
      for (const [i, key] of NAMES.entries()) {
        const { record } = await found(other, key);
        same(
          [record.key, record.payload, record.request.requestId, record.idempotencyKey],
          [key, String(i), `r${i}`, `of ${key}`],
          `the record of ${JSON.stringify(key).slice(0, 40)}`,
        );
      }
      for (const key of NAMES)
        check(await store.delete(key), `${JSON.stringify(key).slice(0, 40)} is deleted by its own name, once`);
    },
  },
  {
    name: 'tools, sessions, tenants and actors of any characters are kept, and listed by their own name',
    run: async ({ store }) => {
      for (const [i, name] of NAMES.entries()) {
        const claim = claimOf(`k${i}`, { tool: name, sessionKey: name, tenantId: name, requestId: name });
        const record = await own(store, {
          ...claim,
          idempotencyKey: name,
          request: { ...claim.request, actorId: name, toolCallId: name },
        });
        same((await found(store, `k${i}`)).record, record, `the record of ${JSON.stringify(name).slice(0, 40)}`);
        same(record.request, { ...claim.request, actorId: name, toolCallId: name }, 'its request');
      }
      for (const [i, name] of NAMES.entries()) {
        const keys: string[] = [];
        for await (const { key } of store.byTool(name)) keys.push(key);
        for await (const { key } of store.bySession(name)) keys.push(key);
        same(keys, [`k${i}`, `k${i}`], `listed under ${JSON.stringify(name).slice(0, 40)}`);
      }
    },
  },
  {
    name: 'text with a lone surrogate is refused or kept, and never taken for another',
    run: async ({ store }) => {
      await refusedOrKept(store, HALF, '1');
      await refusedOrKept(store, OTHER_HALF, '2');
      await refusedOrKept(store, 'payload', `"${HALF}"`);
      await refusedOrKept(store, 'payload 2', `"${OTHER_HALF}${HALF}"`);
    },
  },
  {
    name: 'what a caller changes later does not change the record',
    run: async ({ store }) => {
      const claim = claimOf('k');
      const request: Record<string, unknown> = { ...claim.request };
      const owner = await own(store, { ...claim, request: request as unknown as typeof claim.request });
      request['sessionKey'] = 'stolen';
      same((await found(store, 'k')).record.request, claim.request, 'the request');
      const error: Record<string, unknown> = { ...failure };
      await store.compareAndSet('k', owner.version, {
        state: 'failed',
        ttlMs: LONG_MS,
        error: error as unknown as typeof failure,
      });
      error['message'] = 'changed';
      same((await found(store, 'k')).record.error, failure, 'the error');
    },
  },
];
