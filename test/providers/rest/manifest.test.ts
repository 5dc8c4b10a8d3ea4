import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RestManifestError, readRestManifest, restProvider, type RestManifest } from '../../../src/providers/rest.ts';

const HEAD = 'name: api\nbase_url: https://api.example.com/v1\n';
const tool = (...lines: readonly string[]): string =>
  `${HEAD}tools:\n  - id: t\n${lines.map((line) => `    ${line}\n`).join('')}`;

const WRONG: readonly { readonly what: string; readonly manifest: string; readonly says: RegExp }[] = [
  { what: 'an empty file', manifest: '', says: /^1:1: the manifest: is empty; it needs name, base_url and tools/ },
  { what: 'a list', manifest: '- a', says: /1:1: the manifest: must be a mapping, not a list/ },
  { what: 'no tools', manifest: HEAD, says: /tools: is missing; it is a list/ },
  {
    what: 'an empty list of tools',
    manifest: `${HEAD}tools: []`,
    says: /3:\d+: tools: must have at least 1 entries, not 0/,
  },
  {
    what: 'a misspelt key',
    manifest: tool('url: /x', 'methd: GET'),
    says: /6:\d+: tools\[0\]\.methd: there is no such key here; there is id, description, method,/,
  },
  {
    what: 'a misspelt key further in',
    manifest: tool('url: /x', 'retry_policy: { attempts: 3 }'),
    says: /tools\[0\]\.retry_policy\.attempts: there is no such key here; there is strategy,/,
  },
  {
    what: 'an unknown method',
    manifest: tool('url: /x', 'method: FETCH'),
    says: /tools\[0\]\.method: must be one of GET, HEAD, POST, PUT, PATCH, DELETE, not "FETCH"/,
  },
  {
    what: 'a number for a text',
    manifest: tool('url: 7'),
    says: /5:10: tools\[0\]\.url: must be a text, not 7; put it in quotes/,
  },
  {
    what: 'a negative timeout',
    manifest: tool('url: /x', 'timeout_ms: -1'),
    says: /tools\[0\]\.timeout_ms: must be above 0, not -1/,
  },
  {
    what: 'an id with a dot',
    manifest: `${HEAD}tools: [{ id: a.b, url: /x }]`,
    says: /tools\[0\]\.id: must be made of letters, digits, _ and - only/,
  },
  {
    what: 'an id twice',
    manifest: `${HEAD}tools: [{ id: a, url: /x }, { id: a, url: /y }]`,
    says: /tools\[1\]\.id: tools\[0\] has the id a already; give one of them another/,
  },
  {
    what: 'a base that is no URL',
    manifest: 'name: a\nbase_url: api.example.com\ntools: [{ id: a, url: /x }]',
    says: /2:11: base_url: must be a URL with scheme and host/,
  },
  {
    what: 'a base that is a file',
    manifest: 'name: a\nbase_url: file:///etc\ntools: [{ id: a, url: /x }]',
    says: /base_url: must begin with https:\/\/ or http:\/\/, not file:/,
  },
  {
    what: 'a base with a password',
    manifest: 'name: a\nbase_url: https://u:hunter2@api.example.com\ntools: [{ id: a, url: /x }]',
    says: /base_url: must hold no user and no password; send them in a header/,
  },
  {
    what: 'a base with a query',
    manifest: 'name: a\nbase_url: https://api.example.com?key=1\ntools: [{ id: a, url: /x }]',
    says: /base_url: must end before \? and #/,
  },
  {
    what: 'a URL of another host',
    manifest: tool('url: https://evil.example/x'),
    says: /5:10: tools\[0\]\.url: must begin with one \/, and go on behind base_url/,
  },
  {
    what: 'a URL that climbs',
    manifest: tool('url: /a/../b'),
    says: /tools\[0\]\.url: must hold no \. or \.\. between slashes/,
  },
  {
    what: 'a schema that is none',
    manifest: tool('url: /x', 'input: { type: thing }'),
    says: /tools\[0\]\.input: must have type: object/,
  },
  {
    what: 'a schema with a misspelt keyword',
    manifest: tool('url: /x', 'input: { type: object, propertys: {} }'),
    says: /tools\[0\]\.input: the JSON Schema cannot be used: strict mode: unknown keyword: "propertys"/,
  },
  {
    what: 'a schema from elsewhere',
    manifest: tool(
      'url: "/x{?a}"',
      'input: { type: object, properties: { a: { $ref: "http://evil.example/s.json" } } }',
    ),
    says: /tools\[0\]\.input: the JSON Schema cannot be used: can't resolve reference/,
  },
  {
    what: 'an unknown format',
    manifest: tool('url: "/x{?a}"', 'input: { type: object, properties: { a: { type: string, format: colour } } }'),
    says: /unknown format "colour"/,
  },
  {
    what: 'a path of what the input lacks',
    manifest: tool('url: /x/{id}', 'input: { type: object, properties: {} }'),
    says: /tools\[0\]\.input\.properties: has no property id, which url, headers or body use; add it/,
  },
  {
    what: 'a path of what may be left out',
    manifest: tool('url: /x/{id}', 'input: { type: object, properties: { id: {} } }'),
    says: /tools\[0\]\.input\.required: must list id: it stands in the path/,
  },
  {
    what: 'an input that goes nowhere',
    manifest: tool('url: /x', 'input: { type: object, properties: { page: {} } }'),
    says: /tools\[0\]\.input\.properties\.page: is used nowhere; write it into url, as \{\?page\}/,
  },
  { what: 'a body of a GET', manifest: tool('url: /x', 'body: { a: 1 }'), says: /tools\[0\]\.body: GET takes no body/ },
  {
    what: 'a form that is a text',
    manifest: tool('url: /x', 'method: POST', 'body_type: form', 'body: "${a}"'),
    says: /tools\[0\]\.body: must be a mapping of fields, since body_type is form/,
  },
  {
    what: 'a reference that is none',
    manifest: tool('url: /x', 'method: POST', 'body: { a: "${a b}" }'),
    says: /tools\[0\]\.body: \$\{a b\} is no reference; write \$\{name\}/,
  },
  {
    what: 'a reference without its end',
    manifest: tool('url: /x', 'headers: { X-A: "${a" }'),
    says: /tools\[0\]\.headers\["X-A"\]: \$\{a is no reference|\$\{a\} is no reference/,
  },
  {
    what: 'a secret in a body',
    manifest: tool('url: /x', 'method: POST', 'body: { key: "${env:KEY}" }'),
    says: /tools\[0\]\.body: \$\{env:KEY\} may stand in headers only/,
  },
  {
    what: 'a header with a line break',
    manifest: tool('url: /x', 'headers: { X-A: "a\\r\\nX-B: b" }'),
    says: /tools\[0\]\.headers\["X-A"\]: must hold printable ASCII only, no line breaks/,
  },
  {
    what: 'a header’s name with a colon',
    manifest: tool('url: /x', 'headers: { "X-A:": b }'),
    says: /tools\[0\]\.headers\["X-A:"\]: the name must be the name of a header/,
  },
  {
    what: 'a header that is the connection’s',
    manifest: tool('url: /x', 'headers: { Host: evil.example }'),
    says: /tools\[0\]\.headers\.Host: Host is sent by the provider itself; leave it out/,
  },
  {
    what: 'a header twice',
    manifest: tool('url: /x', 'headers: { X-A: 1, x-a: 2 }').replaceAll(/: (\d)/g, ': "$1"'),
    says: /x-a"\]: is there twice, in another case/,
  },
  {
    what: 'a key in the place of a secret',
    manifest: tool('url: /x', 'method: POST', 'idempotency_header: Authorization'),
    says: /idempotency_header: authorization is in use for something else; name another header/,
  },
  {
    what: 'a part of a text',
    manifest: tool('url: /x', 'response: { as: text, at: a.b }'),
    says: /tools\[0\]\.response\.at: finds a part of JSON, so it cannot stand beside as: text/,
  },
  {
    what: 'a part that is no path',
    manifest: tool('url: /x', 'response: { at: "a..b" }'),
    says: /tools\[0\]\.response\.at: must be a JSON pointer/,
  },
  {
    what: 'a pointer with a wrong escape',
    manifest: tool('url: /x', 'response: { at: "/a~b" }'),
    says: /tools\[0\]\.response\.at: has a ~ that is no escape/,
  },
  {
    what: 'an answer’s schema that is none',
    manifest: tool('url: /x', 'response_schema: { type: thing }'),
    says: /tools\[0\]\.response_schema: the JSON Schema cannot be used/,
  },
  {
    what: 'a breaker that measures more than its window',
    manifest: tool('url: /x', 'circuit_breaker: { window_size: 5, minimum_calls: 9 }'),
    says: /tools\[0\]\.circuit_breaker: minimum_calls must be an integer from 1 to window_size/,
  },
  {
    what: 'a breaker that is on',
    manifest: tool('url: /x', 'circuit_breaker: true'),
    says: /tools\[0\]\.circuit_breaker: must be a mapping, or false, not true/,
  },
  {
    what: 'an alternative that is not there',
    manifest: tool('url: /x', 'alternatives: [backup]'),
    says: /tools\[0\]\.alternatives\[0\]: there is no tool backup in this manifest/,
  },
  {
    what: 'an alternative that is itself',
    manifest: tool('url: /x', 'alternatives: [api.t]'),
    says: /alternatives\[0\]: t cannot be its own alternative/,
  },
  { what: 'broken YAML', manifest: 'name: [', says: /1:\d+: the manifest: is not YAML/ },
  { what: 'two documents', manifest: '---\na: 1\n---\nb: 1\n', says: /holds more than one document/ },
  {
    what: 'a key twice',
    manifest: `${HEAD}name: b\n`,
    says: /3:1: name: the key "name" is there twice; remove one of them/,
  },
  { what: 'a tag', manifest: 'name: !!js/function "x"', says: /tags \(!\.\.\.\) are not understood/ },
  {
    what: 'an alias',
    manifest: 'name: &a x\nbase_url: *a\n',
    says: /2:11: base_url: aliases \(\*name\) are not understood in a manifest/,
  },
  {
    what: 'a bomb',
    manifest: `a: &a [${'x,'.repeat(99)}]\nb: &b [${'*a,'.repeat(99)}]\nc: [${'*b,'.repeat(99)}]`,
    says: /aliases/,
  },
  { what: 'a deep nest', manifest: `a: ${'['.repeat(5_000)}`, says: /nested too deeply; the limit is 64 levels/ },
  {
    what: 'a text that is too long',
    manifest: `# ${'x'.repeat(1_048_576)}`,
    says: /is longer than 1048576 characters/,
  },
];

describe('R-12.2 a manifest is refused, naming place, rule and remedy:', () => {
  it.each(WRONG)('$what', ({ manifest, says }) => {
    expect(() => readRestManifest(manifest)).toThrow(says);
    expect(() => readRestManifest(manifest)).toThrow(RestManifestError);
    expect(() => readRestManifest(manifest)).not.toThrow(/hunter2/);
  });

  it('a variable that is not set, or that no header can hold, never showing its value', () => {
    const manifest = readRestManifest(
      `${HEAD}headers: { authorization: "Bearer \${env:TOKEN}" }\ntools: [{ id: t, url: /x }]`,
    );
    expect(() => restProvider(manifest)).toThrow(
      /^headers\.authorization: \$\{env:TOKEN\} is not set; give it in the option env: \{ TOKEN: \.\.\. \}/,
    );
    expect(() => restProvider(manifest, { env: { TOKEN: 'hunter2\n' } })).toThrow(
      /^headers\.authorization: \$\{env:TOKEN\} must hold printable ASCII only, no line breaks/,
    );
    expect(() => restProvider(manifest, { env: { TOKEN: 'hunter2\n' } })).not.toThrow(/hunter2/);
    expect(restProvider(manifest, { env: { TOKEN: 'hunter2' } }).name).toBe('api');
  });

  it('an object that is none, as YAML that is none', () => {
    for (const value of [undefined, null, 'name: api', [], 3, { name: 'api' }])
      expect(() => restProvider(value as unknown as RestManifest)).toThrow(RestManifestError);
    expect(() => readRestManifest({} as unknown as string)).toThrow(
      /must be a string, not object; restProvider takes a manifest that is an object/,
    );
  });

  it('ten problems at a time, and says how many more there are', () => {
    const tools = Array.from({ length: 30 }, (_, index) => ({ id: `t${index}`, url: 'x' }));
    expect(() => restProvider({ name: 'api', base_url: 'https://api.example.com', tools })).toThrow(
      /\n\.\.\. and 20 more$/,
    );
  });

  it('20,000 keys without taking quadratic time', () => {
    const before = process.cpuUsage();
    expect(() => readRestManifest(Array.from({ length: 20_000 }, (_, index) => `k${index}: v\n`).join(''))).toThrow(
      /there is no such key here/,
    );
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(6_000);
  });
});

it('options are checked: name, rule and value', () => {
  const manifest = { name: 'api', base_url: 'https://api.example.com', tools: [{ id: 't', url: '/x' }] };
  expect(() => restProvider(manifest, { allowed: [] } as never)).toThrow(
    /^restProvider has no option "allowed"; it takes env, allow/,
  );
  expect(() => restProvider(manifest, { maxResponseBytes: 0 })).toThrow(
    /^maxResponseBytes must be an integer from 1 to/,
  );
});

it('a manifest of every kind of key is read from YAML, and is the same as JSON', () => {
  const yaml = readFileSync(new URL('manifest.yaml', import.meta.url), 'utf8');
  const manifest = readRestManifest(yaml);
  expect(readRestManifest(JSON.stringify(manifest))).toEqual(manifest);
  expect(restProvider(manifest, { env: { GITHUB_TOKEN: 'x' } }).tools.map(({ name }) => name)).toEqual([
    'github.get_issue',
    'github.create_issue',
    'github.search_code',
  ]);
});
