// Was: a person's answers were part of the key, so that the same answer in another order made the call again, and a
// long state of the server made it impossible. Now: a round is its state and the questions that are answered.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folder } from '../cli/support.ts';
import { NODE, ROOT } from '../mcp-proxy/kit.ts';
import { behind, rawServer } from '../mcp-proxy/wire-kit.ts';

const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
};

it('R-9.1 R-16.5 a round that is answered again, in whatever way, is made once', async () => {
  using files = folder();
  const trace = join(files.path, 'trace.ndjson');
  const server = rawServer(behind([NODE, join(ROOT, 'test/mcp-proxy/modern-server.ts'), 'stdio'], '--trace', trace));
  const meta = { ...MODERN, 'spillway/idempotencyKey': 'deploy-1' };
  const input = { name: 'deploy', arguments: { to: 'x' }, _meta: meta };
  const deploy = (more: object) => server.ask('tools/call', { ...input, ...more });
  const answered = (content: object, requestState = 'kept'): object => ({
    requestState,
    inputResponses: { sure: { action: 'accept', content } },
  });
  expect(await deploy({})).toMatchObject({ result: { resultType: 'input_required' } });
  const done = { result: { content: [{ text: 'deployed to x' }] } };
  expect(await deploy(answered({ sure: true, note: 'a' }))).toMatchObject(done);
  expect(await deploy(answered({ note: 'a', sure: true }))).toMatchObject(done);
  expect(await deploy(answered({ sure: true, note: 'b' }))).toMatchObject(done);
  expect(await deploy(answered({ sure: true }, 's'.repeat(600)))).toMatchObject(done);
  await server.end();
  const attempts = readFileSync(trace, 'utf8').match(/"type":"attempt_started"/g);
  // The question, the answer to it, and the one in another state.
  expect(attempts).toHaveLength(3);
});
