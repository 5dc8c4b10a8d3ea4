import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseMcp } from '../../src/cli/arguments/mcp.ts';
import { configured, type Configured } from '../../src/cli/mcp/servers.ts';
import { folder } from '../cli/support.ts';
import { httpServer, type HttpServer } from '../providers/mcp/http-server.ts';
import { proxied, textOf } from './kit.ts';

let server: HttpServer;
/** Who asked for a token, and for what. */
let signIns: string[];
beforeEach(async () => {
  server = await httpServer();
  signIns = [];
  const { origin } = new URL(server.url);
  server.intercept = (request, response) => {
    const { url = '', headers } = request;
    const json = (status: number, body: unknown): true => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      return true;
    };
    if (url.includes('oauth-authorization-server'))
      return json(200, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        response_types_supported: ['code'],
        grant_types_supported: ['client_credentials'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      });
    if (url.includes('.well-known')) return json(404, {});
    if (url === '/token') {
      const [, basic = ''] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? [];
      const who = Buffer.from(basic, 'base64').toString();
      signIns.push(who);
      return who === 'spillway:a-secret'
        ? json(200, { access_token: 'right', token_type: 'Bearer' })
        : json(401, { error: 'invalid_client' });
    }
    return headers.authorization === 'Bearer right' ? false : json(401, {});
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await server[Symbol.asyncDispose]();
});

const read = async (entry: string): Promise<Configured> => {
  using files = folder();
  const parsed = parseMcp(['--config', files.write('guards.yaml', `servers:\n  box: ${entry}\n`)]);
  if (parsed === undefined) throw new TypeError('it asked for help');
  return await configured(parsed);
};

const echoed = async (entry: string): Promise<string> => {
  const { servers } = (await read(entry)).proxy;
  await using it = await proxied(servers);
  return textOf(await it.call('echo', { text: 'x' }));
};

describe('R-16.8 a server over HTTP that wants to know who asks', () => {
  it('R-16.8 gets headers whose values are in variables', async () => {
    vi.stubEnv('BOX_AUTHORIZATION', 'Bearer right');
    expect(await echoed(`{ url: "${server.url}", headers_from_env: { authorization: BOX_AUTHORIZATION } }`)).toBe('x');
  });

  it('R-16.8 a variable that is not set, or cannot be sent, is told by its name alone', async () => {
    const entry = `{ url: "${server.url}", headers_from_env: { authorization: BOX_AUTHORIZATION } }`;
    await expect(read(entry)).rejects.toThrow(
      /headers_from_env.authorization: the variable BOX_AUTHORIZATION is not set/,
    );
    vi.stubEnv('BOX_AUTHORIZATION', 'sk-canary\nb: c');
    await expect(read(entry)).rejects.toThrow(/^(?!.*sk-canary).*holds what HTTP does not allow/s);
  });

  it('R-16.8 gets a token by OAuth’s client credentials, from its own issuer only', async () => {
    vi.stubEnv('BOX_SECRET', 'a-secret');
    const { origin } = new URL(server.url);
    const entry = (issuer: string): string =>
      `{ url: "${server.url}", oauth: { client_id: spillway, client_secret_env: BOX_SECRET, issuer: "${issuer}" } }`;
    expect(await echoed(entry(origin))).toBe('x');
    expect(signIns).toEqual(['spillway:a-secret']);
    await expect(echoed(entry('https://auth.example'))).rejects.toThrow(/cannot be reached/);
    expect(signIns).toHaveLength(1);
  });

  it('R-16.8 none of it is for a server that is started', async () => {
    await expect(read('{ command: x, headers_from_env: { a: B } }')).rejects.toThrow(
      /can be given to a server over HTTP only/,
    );
  });
});
