import { expect, it, vi } from 'vitest';
import type * as hashing from '../../../src/policy/key/sha256.ts';
import { page, withToken, TOKEN } from './kit.ts';

const hashed = vi.hoisted((): string[] => []);
vi.mock('../../../src/policy/key/sha256.ts', async (original) => {
  const real = await original<typeof hashing>();
  return {
    ...real,
    sha256: (text: string) => {
      hashed.push(text);
      return real.sha256(text);
    },
  };
});

it('R-11.3 a token is judged by its digest, in as many steps whatever it is', async () => {
  const { ask } = page();
  const seen: Array<readonly [status: number, digests: readonly string[], characters: number]> = [];
  for (const shown of [
    TOKEN,
    `${TOKEN.slice(0, -1)}X`,
    `X${TOKEN.slice(1)}`,
    TOKEN.slice(0, 16),
    'x',
    'x'.repeat(5_000),
  ]) {
    hashed.length = 0;
    let characters = 0;
    const real = String.prototype.charCodeAt;
    const spy = vi.spyOn(String.prototype, 'charCodeAt').mockImplementation(function count(this: string, at: number) {
      if (/^[\da-f]{64}$/.test(this)) characters++;
      return real.call(this, at);
    });
    const { status } = await ask({ headers: { ...withToken, authorization: `Bearer ${shown}` } });
    spy.mockRestore();
    seen.push([status, [...hashed], characters]);
    expect(hashed).toEqual([shown]);
  }
  expect(seen.map(([status]) => status)).toEqual([200, 401, 401, 401, 401, 401]);
  for (const [, , characters] of seen) expect(characters).toBe(128);
});
