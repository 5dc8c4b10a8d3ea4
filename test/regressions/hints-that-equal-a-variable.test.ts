// Was: a `Retry-After` that a manifest's variable happened to equal, or to be part of the name of, was lost with it.
// Now: headers keep their names, and hints their values.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isToolExecutionError, type ToolExecutionError } from '../../src/contract/tool-error.ts';
import { oneTool, restServer, type RestServer } from '../providers/rest/kit.ts';

describe('R-2.4 R-11.4 an answer that a variable happens to be like', () => {
  let server: RestServer;
  beforeAll(async () => {
    server = await restServer((_, response) => {
      response.writeHead(429, { 'retry-after': '3600', 'content-type': 'application/json' });
      response.end(JSON.stringify({ message: 'tenant "87654321"', tenant: 87_654_321 }));
    });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const refused = async (value: string): Promise<ToolExecutionError> => {
    const entry = { url: '/x', headers: { 'x-page': '${env:PAGE}' } };
    await using one = oneTool(server.url, entry, { env: { PAGE: value } });
    const error: unknown = await one.call({}).catch((thrown: unknown) => thrown);
    if (!isToolExecutionError(error)) throw new Error('it was not refused');
    return error;
  };

  it.each(['3600', 'retry', 'after', 'retry-after'])('R-2.4 %s: when to ask again is still known', async (value) => {
    expect((await refused(value)).retryAfterMs).toBe(3_600_000);
  });

  it('R-11.4 a number in an error is taken out as the text beside it is', async () => {
    expect(JSON.stringify((await refused('87654321')).cause)).not.toContain('87654321');
  });
});
