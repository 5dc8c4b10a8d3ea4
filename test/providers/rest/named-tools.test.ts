import { expect, it } from 'vitest';
import { readRestManifest } from 'spillway/providers/rest';

const manifest = (...lines: readonly string[]): string =>
  ['name: bank', 'base_url: https://example.com', 'tools:', '  - id: list', '    url: /list', '  - id: pay']
    .concat(['url: /pay', 'method: POST', ...lines].map((line) => `    ${line}`))
    .join('\n');

it.each([
  ['verify: { tool: lst, done: { path: id } }', /tools\[1\]\.verify\.tool: there is no tool lst in this manifest/],
  ['verify: { tool: bank.lst, done: { path: id } }', /tools\[1\]\.verify\.tool: there is no tool lst/],
  ['verify: { tool: pay, done: { path: id } }', /tools\[1\]\.verify\.tool: pay does not only read, and so cannot look/],
  ['compensate: { tool: refnd }', /tools\[1\]\.compensate\.tool: there is no tool refnd in this manifest/],
])('R-18.1 R-18.3 a manifest whose tool names none that can do it is refused: %s', (line, says) => {
  expect(() => readRestManifest(manifest(line))).toThrow(says);
});

it.each([
  'verify: { tool: list, done: { path: id } }',
  'verify: { tool: bank.list, done: { path: id } }',
  'verify: { tool: other.list, done: { path: id } }',
  'compensate: { tool: list }',
  'compensate: false',
])('R-18.1 R-18.3 one that names its own, or those of others, is read: %s', (line) => {
  expect(readRestManifest(manifest(line)).tools.map(({ id }) => id)).toEqual(['list', 'pay']);
});
