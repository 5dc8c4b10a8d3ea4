import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callKey, type CallKeyParts } from '../../src/policy/key/call-key.ts';
import { hostSha256, portableSha256, sha256 } from '../../src/policy/key/sha256.ts';

const base: CallKeyParts = {
  namespace: 'agents.tools.mail',
  toolName: 'send',
  params: { to: 'ada' },
  sessionKey: 's1',
  actorId: 'a1',
  tenantId: 't1',
};
const keyOf = (change: Partial<Record<keyof CallKeyParts, unknown>> = {}): string =>
  callKey({ ...base, ...change } as CallKeyParts).key;
/** How many keys these changes give. */
const distinct = (changes: ReadonlyArray<Partial<CallKeyParts>>): number =>
  new Set(changes.map((change) => keyOf(change))).size;

describe('R-9.1 which key', () => {
  it('R-9.1 the caller’s goes before the hook’s, the hook’s before the computed one', () => {
    const computed = callKey(base);
    const hook = callKey({ ...base, hookKey: 'h' });
    const caller = callKey({ ...base, hookKey: 'h', idempotencyKey: 'c' });
    expect([computed, hook, caller].map(({ source }) => source)).toEqual(['computed', 'hook', 'caller']);
    expect([computed, hook, caller].map(({ idempotencyKey }) => idempotencyKey)).toEqual([computed.key, 'h', 'c']);
    expect(caller.key).toBe(keyOf({ idempotencyKey: 'c' }));
    expect(new Set([computed.key, hook.key, caller.key]).size).toBe(3);
  });

  it('R-9.1 a caller’s and a hook’s key of the same text are one key', () => {
    expect(keyOf({ idempotencyKey: 'order-7' })).toBe(keyOf({ hookKey: 'order-7' }));
  });

  it('R-9.1 a given key is scoped by tenant, namespace, tool and session, and not by the actor', () => {
    const given = { idempotencyKey: 'order-7' };
    expect(
      distinct([
        given,
        { ...given, tenantId: 't2' },
        { ...given, namespace: 'other' },
        { ...given, toolName: 'draft' },
        { ...given, sessionKey: 's2' },
      ]),
    ).toBe(5);
    expect(keyOf({ ...given, actorId: 'a2' })).toBe(keyOf(given));
  });

  it('R-9.5 a given key stays when the params change, and the digest tells', () => {
    const [one, two] = [{ to: 'ada' }, { to: 'bob' }].map((params) =>
      callKey({ ...base, params, idempotencyKey: 'order-7' }),
    );
    expect(two?.key).toBe(one?.key);
    expect(two?.paramsDigest).not.toBe(one?.paramsDigest);
    expect(callKey({ ...base, params: { clientTs: 5, to: 'ada' } }).paramsDigest).toBe(one?.paramsDigest);
  });

  it('R-9.1 a computed key depends on every part', () => {
    expect(
      distinct([
        {},
        { namespace: 'other' },
        { toolName: 'draft' },
        { params: { to: 'bob' } },
        { sessionKey: 's2' },
        { actorId: 'a2' },
        { tenantId: 't2' },
      ]),
    ).toBe(7);
  });

  it('R-9.1 nobody can name a computed key', () => {
    const { key, paramsDigest, fingerprint } = callKey(base);
    for (const idempotencyKey of [key, key.slice(4), paramsDigest, fingerprint])
      expect(keyOf({ idempotencyKey })).not.toBe(key);
  });

  it('R-9.3 the global scope leaves out session and actor, never the tenant, and is a scope of its own', () => {
    const scope = 'global';
    expect(keyOf({ scope, sessionKey: 's2', actorId: 'a2' })).toBe(keyOf({ scope }));
    expect(
      distinct([
        { scope },
        { scope, tenantId: 't2' },
        { scope, tenantId: undefined },
        {},
        { sessionKey: undefined, actorId: undefined },
      ]),
    ).toBe(5);
    expect(keyOf({ scope, idempotencyKey: 'k', sessionKey: 's2' })).toBe(keyOf({ scope, idempotencyKey: 'k' }));
    expect(keyOf({ scope, idempotencyKey: 'k' })).not.toBe(keyOf({ idempotencyKey: 'k' }));
  });

  it.each(['tenantId', 'sessionKey', 'actorId', 'params'] as const)(
    'R-9.3 an absent %s is no text that one could give',
    (name) => {
      expect(
        distinct([
          { [name]: undefined },
          { [name]: 'undefined' },
          { [name]: 'null' },
          { [name]: '' },
          { [name]: 'default' },
        ]),
      ).toBe(5);
    },
  );

  it('R-9.1 nothing given, null, an empty object, an empty list and an empty text are five inputs', () => {
    expect(distinct([undefined, null, {}, [], ''].map((params) => ({ params })))).toBe(5);
  });

  it('R-9.1 lone surrogates in names do not become one key', () => {
    expect(
      distinct([
        { sessionKey: '\ud800' },
        { sessionKey: '\ud801' },
        { sessionKey: '\ufffd' },
        { sessionKey: String.raw`\ud800` },
      ]),
    ).toBe(4);
  });

  it('R-9.2 a tool’s own options reach the digest', () => {
    const [a, b] = [
      { q: 'two  words', nonce: 1 },
      { q: ' two words', nonce: 2 },
    ].map((params) => callKey({ ...base, params }, { whitespace: 'collapse', volatile: ['nonce'] }));
    expect(a).toEqual(b);
  });
});

describe('R-9.1 its form', () => {
  it('R-9.1 key, digest and fingerprint', () => {
    const { key, paramsDigest, fingerprint } = callKey(base);
    expect(key).toMatch(/^sw1:[0-9a-f]{64}$/);
    expect(paramsDigest).toBe(createHash('sha256').update('{"to":"ada"}').digest('hex'));
    expect(fingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(key.slice(4)).toMatch(new RegExp(`^${fingerprint}`));
  });

  it('R-9.1 keys stay the same from release to release: records of yesterday must be found', () => {
    expect(keyOf()).toBe('sw1:e4c0bbbe655d9b421a29303f801ed962e6c824239d795dbe03ccbb7809c0ffc2');
    expect(keyOf({ idempotencyKey: 'order-7' })).toBe(
      'sw1:4ca1ffa9d48bc09a8b5e2a573bec5604867f84906ab6c85c70df6eef00ef86cd',
    );
    expect(keyOf({ scope: 'global', tenantId: undefined })).toBe(
      'sw1:b58bbcffdfa8890693d109bc17656e55c884e6b023274bbf819b525c0217a8a4',
    );
  });

  it('R-9.1 and show nothing of what they are made of', () => {
    const { idempotencyKey, ...printed } = callKey({
      ...base,
      idempotencyKey: 'order-7',
      params: { token: 'hunter2' },
    });
    expect(idempotencyKey).toBe('order-7');
    for (const secret of ['order-7', 'hunter2', 'ada', 's1', 'a1', 't1', 'mail'])
      expect(JSON.stringify({ ...printed, source: '', scope: '' }).replaceAll(/sw1:|[0-9a-f]{16,}/g, '')).not.toContain(
        secret,
      );
  });

  it.each([
    ['namespace', 1],
    ['toolName', undefined],
    ['toolName', null],
    ['sessionKey', null],
    ['actorId', 7],
    ['tenantId', {}],
    ['idempotencyKey', ''],
    ['idempotencyKey', 'x'.repeat(513)],
    ['idempotencyKey', null],
    ['hookKey', ''],
    ['hookKey', 5],
    ['scope', 'tenant'],
  ] as const)('R-9.1 %s: %s is refused', (name, value) => {
    expect(() => keyOf({ [name]: value })).toThrow(RangeError);
    expect(() => keyOf({ [name]: value })).toThrow(name);
  });

  it('R-9.1 params that are no JSON are the caller’s mistake', () => {
    expect(() => keyOf({ params: { at: new Date(0) } })).toThrow(
      expect.objectContaining({ kind: 'invalid_parameters' }),
    );
    expect(() => keyOf({ params: { at: new Date(0) }, idempotencyKey: 'k' })).toThrow('$.at');
  });
});

describe('SHA-256', () => {
  it('R-9.1 is the same in a browser and on Node', () => {
    const host = hostSha256();
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 200 }),
          fc.nat({ max: 300 }).map((length) => 'é'.repeat(length)),
        ),
        (text) => {
          const expected = createHash('sha256').update(text).digest('hex');
          expect(portableSha256(text)).toBe(expected);
          expect(sha256(text)).toBe(expected);
          expect(host?.(text)).toBe(expected);
        },
      ),
    );
  });

  it('R-9.1 the portable one, at every length up to three blocks and at a million', () => {
    for (let length = 0; length <= 192; length++)
      expect(portableSha256('a'.repeat(length))).toBe(createHash('sha256').update('a'.repeat(length)).digest('hex'));
    // FIPS 180-4's own long example.
    expect(portableSha256('a'.repeat(1_000_000))).toBe(
      'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0',
    );
  });

  it('R-9.1 a host without one leaves it to the portable one', () => {
    expect(hostSha256({})).toBeUndefined();
    expect(hostSha256({ getBuiltinModule: () => undefined })).toBeUndefined();
    expect(hostSha256({ getBuiltinModule: () => ({}) })).toBeUndefined();
    expect(portableSha256('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
