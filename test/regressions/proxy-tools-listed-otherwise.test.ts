// Was: all connections shared one list, and the last that was told decided: a payment that one server had listed as
// reading only was repeated at another, and tools that nobody listed had one key together.
// Now: each connection has its own list, a tool that is mutating for one is so for all, and a name is a tool's own.
import { expect, it } from 'vitest';
import { Catalog } from '../../src/mcp-proxy/catalog.ts';

const catalog = (): Catalog =>
  new Catalog({
    server: 'bank',
    nameOf: (tool) => tool,
    policyOf: (tool) => ({ policy: tool === 'slow' ? { timeoutMs: 7 } : {}, checkInput: true }),
    unusable: () => undefined,
  });

const listed = (name: string, readOnlyHint: boolean) => ({
  name,
  inputSchema: { type: 'object' },
  annotations: { readOnlyHint },
});

it('R-2.5 a tool is mutating for all connections once it was listed so, whatever is listed before or later', () => {
  const all = catalog();
  const [one, two] = [all.listing(), all.listing()];
  one.update([listed('pay', true)]);
  expect(one.of('pay').policy?.effects).toBe('read');
  two.update([listed('pay', false)]);
  expect([one.of('pay').policy?.effects, two.of('pay').policy?.effects]).toEqual(['mutating', 'mutating']);
  one.update([listed('pay', true)]);
  expect(one.of('pay').policy?.effects).toBe('mutating');
  expect(all.tools.map(({ policy }) => policy?.effects)).toEqual(['mutating']);
});

it('R-9.1 a tool has its name, and so its keys and its policy, whether or not it is listed', () => {
  const all = catalog();
  const [one, two] = [all.listing(), all.listing()];
  one.update([listed('pay', false), listed('slow', false)]);
  expect([one.has('pay'), two.has('pay')]).toEqual([true, false]);
  expect([two.of('pay').name, two.of('refund').name]).toEqual(['pay', 'refund']);
  expect(two.of('slow').policy).toEqual({ effects: 'mutating', timeoutMs: 7 });
});

it('R-2.5 a tool that is listed twice, once as reading only, is mutating', () => {
  const listing = catalog().listing();
  listing.update([listed('pay', true), listed('pay', false)]);
  expect(listing.of('pay').policy?.effects).toBe('mutating');
});

it('R-16.4 clients cannot fill the layer with names that no server lists', () => {
  const listing = catalog().listing();
  for (let place = 0; place < 1_000; place++) listing.of(`made-up-${place}`);
  expect(() => listing.of('one too many')).toThrow('The server lists no tool one too many');
  expect(listing.of('made-up-7').name).toBe('made-up-7');
});
