import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { gatewayErrorTable, malformedTable } from '../../src/gateway/anthropic.ts';

const readme = readFileSync(join(import.meta.dirname, '../../src/gateway/README.md'), 'utf8');

it('R-13.5 the page has the table of errors that the code has', () => {
  expect(readme).toContain(gatewayErrorTable().trim());
});

it('R-13.3 the page has the table of malformed shapes that the code has', () => {
  expect(readme).toContain(malformedTable().trim());
});
