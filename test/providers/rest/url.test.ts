import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isToolExecutionError } from '../../../src/contract/tool-error.ts';
import { compiledManifest } from '../../../src/providers/rest/manifest.ts';
import { urlTemplate } from '../../../src/providers/rest/url.ts';

describe('R-12.2 a URL template', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['/a/{b}', { b: 'x' }, '/a/x'],
    ['/a/{b}.json', { b: 'x.y' }, '/a/x.y.json'],
    ['/a{?b}', {}, '/a'],
    ['/a{?b,c*}', { b: 1, c: [] }, '/a?b=1'],
    ['/a{?b*}', { b: ['x', 'y'] }, '/a?b=x&b=y'],
    ['/a{?b}', { b: ['x,y', 'z'] }, '/a?b=x%2Cy,z'],
    ['/a?v=1{&b}', { b: "it's (ok)*!" }, '/a?v=1&b=it%27s%20%28ok%29%2A%21'],
    ['/a?q={b}', { b: 'x&y=z#' }, '/a?q=x%26y%3Dz%23'],
    ['/a?q={b}', {}, '/a?q='],
    ['/a{?b}{&c}', { c: true }, '/a?c=true'],
  ])('%s with %o is %s', (template, input, url) => {
    expect(urlTemplate(template).expand(input)).toBe(url);
  });

  it.each<[string, RegExp]>([
    ['users', /must begin with one \//],
    ['//evil.example/x', /must begin with one \//],
    ['https://evil.example/', /must begin with one \//],
    ['/a/../b', /no \. or \.\./],
    ['/a/%2e%2E/b', /no \. or \.\./],
    ['/a/{b', /without its other half/],
    ['/a/b}', /without its other half/],
    ['/a b', /no spaces/],
    ['/a\\b', /no spaces, \\/],
    ['/a#b', /no spaces, \\ or #/],
    ['/a/%2{b}', /has a % that begins no escape; write %25/],
    ['/a/%zz', /has a % that begins no escape/],
    ['/{+path}', /\{\+path\} could leave its place in the path, so it is not supported; write \{path\}/],
    ['/{#path}', /could leave its place/],
    ['/{/path}', /could leave its place/],
    ['/{a b}', /must hold names made of letters/],
    ['/{}', /must hold names made of letters/],
    ['/{a,b}', /must hold names made of letters/],
    ['/a{?b}/c', /has text behind \{\?\.\.\.\}/],
    ['/a{?b}{c}', /stands behind a \{\?\.\.\.\}/],
  ])('%s is refused', (template, says) => {
    expect(() => urlTemplate(template)).toThrow(says);
    expect(() => urlTemplate(template)).toThrow(RangeError);
  });
});

const hostile = fc.constantFrom(
  '..',
  '.',
  '%2e%2e',
  '..%2f',
  '../',
  '/..',
  '..\\',
  '//',
  '/',
  '\\',
  '@',
  ':',
  '#',
  '?',
  '&',
  '=',
  '%',
  '%00',
  '\0',
  '\r\n',
  ' ',
  'http://evil.example',
  '@evil.example',
  '{b}',
  '${a}',
  '[::1]',
  '\ud800',
  'é',
  '\u2028',
  '.',
  '。',
  '．',
  '%252e',
);
const text = fc.oneof(
  fc.array(fc.oneof(hostile, fc.string({ maxLength: 3 })), { maxLength: 5 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const value = fc.oneof(
  text,
  fc.double(),
  fc.boolean(),
  fc.array(text, { maxLength: 3 }),
  fc.constant(null),
  fc.object({ maxDepth: 1, maxKeys: 2 }),
);
const template = fc.constantFrom(
  '/u/{a}',
  '/u/{a}/v/{b}',
  '/u/{a}{b}',
  '/u/.{a}',
  '/u/{a}.{b}',
  '/u/x{?a,b*}',
  '/u/{a}?x=1&y={b}',
  '/u/{a}?x=1{&b}',
  '/u/{a}{?b}',
);

describe('R-12.2 whatever the input', () => {
  it('host and path prefix stay the manifest’s, and the path has as many segments', () => {
    const property = fc.property(template, value, value, (template, a, b) => {
      const compiled = urlTemplate(template);
      let expanded: string;
      try {
        expanded = compiled.expand({ a, b });
      } catch (error) {
        if (!isToolExecutionError(error)) throw error;
        return error.kind === 'invalid_parameters' && !error.executed;
      }
      const url = new URL(`https://api.example.com/v1${expanded}`);
      const segments = template.replaceAll(/\?.*|\{\?.*/g, '').split('/').length;
      const values = [...url.searchParams.values()];
      return (
        url.origin === 'https://api.example.com' &&
        url.username === '' &&
        url.hash === '' &&
        url.pathname.startsWith('/v1/u/') &&
        url.pathname.split('/').length === segments + 1 &&
        `${url.pathname}${url.search}` === `/v1${expanded}` &&
        // The query has the names of the template, and each value comes back as it was.
        [...url.searchParams.keys()].every((name) => ['a', 'b', 'x', 'y'].includes(name)) &&
        (typeof b !== 'string' || !/\{\?b|\{&b|y=\{b/.test(template) || values.includes(b))
      );
    });
    fc.assert(property, { numRuns: 5_000 });
  });

  it('a header holds no line break and no other header', () => {
    const { operations } = compiledManifest(
      {
        name: 'api',
        base_url: 'https://api.example.com',
        tools: [{ id: 't', url: '/x', headers: { 'x-a': 'v ${a} ${b}' } }],
      },
      {},
    );
    const header = operations[0]?.headers[0]?.template;
    const property = fc.property(text, text, (a, b) => header?.fill({ a, b }) === `v ${a} ${b}`);
    fc.assert(property, { numRuns: 500 });
  });
});
