import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import type { McpProvider } from '../../../src/providers/mcp.ts';
import { httpServer, type HttpServer } from './http-server.ts';
import { context, failure, run } from '../support.ts';

/**
 * A client that has a token, and gets the next one when it is refused; without a refresh token a person would have to
 * sign in.
 */
class Signer implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:9/back';
  readonly clientMetadata = { redirect_uris: [this.redirectUrl] };
  token = 'token-1';
  refresh: string | undefined = 'refresh-1';
  sentAway = 0;

  clientInformation = (): { client_id: string } => ({ client_id: 'spillway' });
  tokens = (): { access_token: string; token_type: string; refresh_token?: string } => ({
    access_token: this.token,
    token_type: 'Bearer',
    ...(this.refresh === undefined ? {} : { refresh_token: this.refresh }),
  });
  saveTokens = ({ access_token }: { access_token: string }): void => void (this.token = access_token);
  redirectToAuthorization = (): void => void this.sentAway++;
  saveCodeVerifier = (): void => undefined;
  codeVerifier = (): string => 'verifier';
}

describe('a server that asks for a sign-in', () => {
  let server: HttpServer;
  let valid = 'token-1';
  let tokenStatus = 200;
  let signer: Signer;
  let provider: McpProvider;
  beforeEach(async () => {
    valid = 'token-1';
    tokenStatus = 200;
    signer = new Signer();
    server = await httpServer();
    const { origin } = new URL(server.url);
    server.intercept = ({ url = '', headers }, response) => {
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
          code_challenge_methods_supported: ['S256'],
        });
      if (url.includes('.well-known')) return json(404, {});
      if (url === '/token')
        return json(
          tokenStatus,
          tokenStatus === 200 ? { access_token: valid, token_type: 'Bearer' } : { error: 'server_error' },
        );
      return headers['authorization'] === `Bearer ${valid}` ? false : json(401, {});
    };
    provider = await mcpHttpProvider({ name: 'box', url: server.url, authProvider: signer });
  });
  afterEach(async () => {
    await provider.close();
    await server[Symbol.asyncDispose]();
  });

  it('in mid-session: the SDK gets a new token, and the call is sent again, once', async () => {
    valid = 'token-2';
    expect(await run(provider, 'box.echo', { text: 'x' })).toBe('x');
    expect(signer.token).toBe('token-2');
    expect(server.calls).toHaveLength(1);
  });

  it('a call canceled while its token is asked for is not sent', async () => {
    let give: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      Object.assign(signer, {
        tokens: async () => {
          resolve();
          await new Promise<void>((given) => (give = given));
          return { access_token: valid, token_type: 'Bearer' };
        },
      });
    });
    const controller = new AbortController();
    const work = failure(run(provider, 'box.echo', { text: 'x' }, context(controller.signal)));
    await asked;
    Object.assign(signer, { tokens: () => ({ access_token: valid, token_type: 'Bearer' }) });
    controller.abort();
    expect(await work).toMatchObject({ kind: 'canceled' });
    give();
    expect(await run(provider, 'box.echo', { text: 'after' })).toBe('after');
    expect(server.calls).toHaveLength(1);
  });

  it('that only a person can make: permanent, not executed', async () => {
    valid = 'token-2';
    signer.refresh = undefined;
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({
      kind: 'execution_error',
      executed: false,
      uncertain: false,
      classification: 'permanent',
    });
    expect(signer.sentAway).toBe(1);
    expect(server.calls).toEqual([]);
  });

  it('whose token is refused all the same: permanent, not executed', async () => {
    signer.saveTokens = () => undefined;
    valid = 'token-2';
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({
      kind: 'execution_error',
      status: 401,
      executed: false,
      classification: 'permanent',
    });
    expect(server.calls).toEqual([]);
  });
});
