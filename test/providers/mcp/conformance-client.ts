import { requestJwtAuthorizationGrant } from '@modelcontextprotocol/client';
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider, PrivateKeyJwtProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import { createSpillway } from '../../../src/spillway.ts';

/** The client that the conformance suite starts, with the address of its server: our provider, under a layer. */
const [, , url = ''] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario = '', MCP_CONFORMANCE_CONTEXT: given = '{}' } = process.env;
const context = JSON.parse(given) as Readonly<Record<string, string>>;
const of = (name: string): string => context[name] ?? '';

const CALLS: Readonly<Record<string, readonly [tool: string, input: object]>> = {
  tools_call: ['add_numbers', { a: 5, b: 3 }],
  'sse-retry': ['test_reconnection', {}],
  'elicitation-sep1034-client-defaults': ['test_client_elicitation_defaults', {}],
};

/** A host whose person signs in at once: the pages of the suite redirect to the code. */
class Signer implements OAuthClientProvider {
  readonly redirectUrl = 'http://localhost:3000/callback';
  readonly clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  readonly clientMetadata: OAuthClientMetadata = { client_name: 'spillway', redirect_uris: [this.redirectUrl] };
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier = '';

  constructor(client?: OAuthClientInformationMixed) {
    this.#client = client;
  }
  clientInformation = (): OAuthClientInformationMixed | undefined => this.#client;
  saveClientInformation = (client: OAuthClientInformationMixed): void => void (this.#client = client);
  tokens = (): OAuthTokens | undefined => this.#tokens;
  saveTokens = (tokens: OAuthTokens): void => void (this.#tokens = tokens);
  redirectToAuthorization = (): void => undefined;
  saveCodeVerifier = (verifier: string): void => void (this.#verifier = verifier);
  codeVerifier = (): string => this.#verifier;
}

// The suite names no issuer to expect.
/* oxlint-disable typescript/no-deprecated */
const credentials = { clientId: of('client_id'), clientSecret: of('client_secret') };
/** Signs in with what a company's own identity provider grants. */
const companySigner = (): OAuthClientProvider => {
  let found: OAuthDiscoveryState | undefined;
  return Object.assign(new ClientCredentialsProvider(credentials), {
    saveDiscoveryState: (state: OAuthDiscoveryState): void => void (found = state),
    prepareTokenRequest: async (): Promise<URLSearchParams> => {
      const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
        tokenEndpoint: of('idp_token_endpoint'),
        audience: String(found?.authorizationServerMetadata?.issuer),
        resource: String(found?.resourceMetadata?.resource),
        idToken: of('idp_id_token'),
        clientId: of('idp_client_id'),
      });
      return new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: jwtAuthGrant,
      });
    },
  });
};

const signerOf = (name: string): OAuthClientProvider => {
  if (name === 'auth/client-credentials-jwt')
    return new PrivateKeyJwtProvider({
      clientId: of('client_id'),
      privateKey: of('private_key_pem'),
      algorithm: context['signing_algorithm'] ?? 'ES256',
    });
  if (name === 'auth/client-credentials-basic') return new ClientCredentialsProvider(credentials);
  if (name.startsWith('auth/cross-app-access')) return companySigner();
  if (name === 'auth/pre-registration')
    return new Signer({ client_id: of('client_id'), client_secret: of('client_secret') });
  return new Signer();
};

const codeBehind = async (address: URL): Promise<string> => {
  const { headers } = await fetch(address, { redirect: 'manual' });
  return new URL(headers.get('location') ?? '').searchParams.get('code') ?? '';
};

const authProvider = scenario.startsWith('auth/') ? signerOf(scenario) : undefined;
const provider = await mcpHttpProvider({
  name: 'suite',
  url,
  handlers: { elicit: () => ({ action: 'accept', content: {} }) },
  ...(authProvider === undefined ? {} : { authProvider, authorizationCode: codeBehind }),
});
const spillway = createSpillway({ providers: [provider] });
const [toolName, input] = CALLS[scenario] ?? ['test-tool', {}];
if (provider.tools.some(({ name }) => name === `suite.${toolName}`)) {
  const { error, output } = await spillway.execute({ toolName: `suite.${toolName}`, input });
  process.stdout.write(`${JSON.stringify(error ?? output)}\n`);
}
await spillway.close();
