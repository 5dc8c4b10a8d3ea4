import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type { OAuthRegisteredClientsStore } from '@modelcontextprotocol/sdk/server/auth/clients.js';
import { InvalidGrantError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import type { AuthorizationParams, OAuthServerProvider } from '@modelcontextprotocol/sdk/server/auth/provider.js';
import { mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import type { OAuthClientInformationFull, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { httpServer, type HttpServer } from '../providers/mcp/http-server.ts';

/** In every token: nothing of one may be told anywhere. */
export const TOKEN_CANARY = 'tok3n-canary-77b1';
export const SECRET_CANARY = 's3cret-canary-2c90';

/** The SDK's authorization server is of its own express, which has no types here. */
const express = createRequire(import.meta.resolve('@modelcontextprotocol/sdk/server/auth/router.js'))(
  'express',
) as () => RequestListener & { use(router: unknown): void };

/** What becomes of a request instead of its answer; `next` gives it that. */
export type Fate = (response: ServerResponse, next: () => void) => unknown;

/** What an authorization server remembers of a person whom it sent back. */
interface Asked {
  readonly client: OAuthClientInformationFull;
  readonly params: AuthorizationParams;
}

/** A person who always says yes, or never does, and tokens that are good until they are not. */
class Authority implements OAuthServerProvider {
  readonly clients: Map<string, OAuthClientInformationFull> = new Map();
  readonly codes: Map<string, Asked> = new Map();
  readonly access: Set<string> = new Set();
  readonly refresh: Set<string> = new Set();
  /** What it was asked for, in order. */
  readonly asked: string[] = [];
  says: 'yes' | 'no' = 'yes';

  readonly clientsStore: OAuthRegisteredClientsStore = {
    getClient: (id) => this.clients.get(id),
    registerClient: (client) => {
      this.asked.push('register');
      const whole = { ...client, client_id: randomUUID(), client_id_issued_at: 0 };
      this.clients.set(whole.client_id, whole);
      return whole;
    },
  };

  async authorize(
    client: OAuthClientInformationFull,
    params: AuthorizationParams,
    response: { redirect(url: string): void },
  ): Promise<void> {
    this.asked.push('authorize');
    const back = new URL(params.redirectUri);
    if (params.state !== undefined) back.searchParams.set('state', params.state);
    if (this.says === 'no') back.searchParams.set('error', 'access_denied');
    else {
      const code = randomUUID();
      this.codes.set(code, { client, params });
      back.searchParams.set('code', code);
    }
    response.redirect(back.href);
  }

  async challengeForAuthorizationCode(_client: OAuthClientInformationFull, code: string): Promise<string> {
    return this.codes.get(code)?.params.codeChallenge ?? '';
  }

  async exchangeAuthorizationCode(
    client: OAuthClientInformationFull,
    code: string,
    _verifier?: string,
    redirectUri?: string,
  ): Promise<OAuthTokens> {
    this.asked.push('code');
    const asked = this.codes.get(code);
    this.codes.delete(code);
    if (asked?.client.client_id !== client.client_id || asked.params.redirectUri !== redirectUri)
      throw new InvalidGrantError('no such code');
    return this.#tokens();
  }

  async exchangeRefreshToken(_client: OAuthClientInformationFull, token: string): Promise<OAuthTokens> {
    this.asked.push('refresh');
    // Each is good once: one that comes again was stolen, and ends all.
    if (!this.refresh.delete(token)) {
      this.refresh.clear();
      this.access.clear();
      throw new InvalidGrantError('no such refresh token');
    }
    return this.#tokens();
  }

  verifyAccessToken(): Promise<never> {
    return Promise.reject(new Error('nobody asks this'));
  }

  #tokens(): OAuthTokens {
    const access_token = `${TOKEN_CANARY}-${randomUUID()}`;
    const refresh_token = `${TOKEN_CANARY}-${randomUUID()}`;
    this.access.add(access_token);
    this.refresh.add(refresh_token);
    return { access_token, token_type: 'bearer', expires_in: 3_600, refresh_token };
  }
}

/** An MCP server over HTTP whose callers have to be signed in, and the authorization server that it trusts. */
export interface SignInServer extends AsyncDisposable {
  readonly server: HttpServer;
  readonly authority: Authority;
  readonly issuer: string;
  /** By the path of a request, to either server. */
  readonly fates: Map<string, Fate>;
  /** Where the server says whom it trusts. */
  readonly metadata: string;
}

export async function signInServer(): Promise<SignInServer> {
  const authority = new Authority();
  const app = express();
  const authorization = createServer(app);
  await new Promise<void>((resolve) => authorization.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(authorization.address() as AddressInfo).port}/`;
  const fates = new Map<string, Fate>();
  app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    const fate = fates.get(request.url ?? '');
    if (fate === undefined) next();
    else fate(response, next);
  });
  app.use(mcpAuthRouter({ provider: authority, issuerUrl: new URL(issuer), scopesSupported: ['mcp:tools'] }));
  const server = await httpServer();
  const { origin, pathname } = new URL(server.url);
  const metadata = `/.well-known/oauth-protected-resource${pathname}`;
  server.intercept = ({ url, headers }, response) => {
    if (url === metadata) {
      const tell = (): void =>
        void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ resource: server.url, authorization_servers: [issuer] }));
      (fates.get(metadata) ?? tell)(response, tell);
      return true;
    }
    const [, token = ''] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
    if (authority.access.has(token)) return false;
    // It repeats what it was sent, as some do.
    response
      .writeHead(401, {
        'content-type': 'application/json',
        'www-authenticate': `Bearer resource_metadata="${origin}${metadata}"`,
      })
      .end(JSON.stringify({ error: 'invalid_token', error_description: `not ${token}` }));
    return true;
  };
  return {
    server,
    authority,
    issuer,
    fates,
    metadata,
    [Symbol.asyncDispose]: async () => {
      authorization.closeAllConnections();
      await new Promise((resolve) => authorization.close(resolve));
      await server[Symbol.asyncDispose]();
    },
  };
}
