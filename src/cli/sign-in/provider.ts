import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import type { Fetch, SendsItself } from '../../providers/mcp/sign-in.ts';
import type { SignIn, SignInFile } from './file.ts';
import { answered, isRenewal, renewed } from './renewal.ts';

/** A client that the authorization server knows already; without one, it is asked to register us. */
export interface KnownClient {
  readonly clientId: string;
  readonly clientSecret?: string;
  /** The only authorization server that may be given the secret. */
  readonly issuer?: string;
}

/** What a provider has in common with and without a person. */
export interface SignInOptions {
  readonly file: SignInFile;
  readonly known: KnownClient | undefined;
  readonly scope: string | undefined;
  readonly redirectUrl: string;
}

type InvalidatedScope = Parameters<NonNullable<OAuthClientProvider['invalidateCredentials']>>[0];

const informationOf = ({ clientId, clientSecret, issuer }: KnownClient): OAuthClientInformationMixed => ({
  client_id: clientId,
  ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
  ...(issuer === undefined ? {} : { issuer }),
});

/** The SDK's provider over a file: what it is given by an authorization server is kept there, and nowhere else. */
abstract class FileProvider implements OAuthClientProvider {
  protected readonly options: SignInOptions;

  constructor(options: SignInOptions) {
    this.options = options;
  }

  /**
   * Where the entry names an issuer, no other authorization server is asked for anything, nor shown to anybody.
   * @throws Error where the server names another one
   */
  async saveDiscoveryState({ authorizationServerUrl }: { readonly authorizationServerUrl: string }): Promise<void> {
    const issuer = this.options.known?.issuer;
    if (issuer === undefined || URL.parse(issuer)?.href === URL.parse(authorizationServerUrl)?.href) return;
    throw new Error('the server names another authorization server than the issuer of its entry');
  }

  abstract redirectToAuthorization(authorizationUrl: URL): void | Promise<void>;
  abstract saveCodeVerifier(codeVerifier: string): void;
  abstract codeVerifier(): string;

  get redirectUrl(): string {
    return this.options.redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { known, scope, redirectUrl } = this.options;
    return {
      client_name: 'spillway',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: known?.clientSecret === undefined ? 'none' : 'client_secret_basic',
      ...(scope === undefined ? {} : { scope }),
    };
  }

  async clientInformation(): Promise<OAuthClientInformationMixed | undefined> {
    const { known, file } = this.options;
    return known === undefined ? (await file.read())?.client : informationOf(known);
  }

  async saveClientInformation(client: OAuthClientInformationMixed): Promise<void> {
    // The file holds no secret of one that the host names. Not every server repeats where it sends the browser back.
    if (this.options.known === undefined) await this.keep({ client: { redirect_uris: [this.redirectUrl], ...client } });
  }

  async tokens(): Promise<OAuthTokens | undefined> {
    return (await this.options.file.read())?.tokens;
  }

  async saveTokens(tokens: OAuthTokens): Promise<void> {
    await this.keep({ tokens });
  }

  async invalidateCredentials(scope: InvalidatedScope): Promise<void> {
    const { file } = this.options;
    await file.alone(async () => {
      const kept = await file.read();
      if (kept === undefined) return;
      const { client, tokens } = kept;
      await file.write({
        ...(client === undefined || ['all', 'client'].includes(scope) ? {} : { client }),
        ...(tokens === undefined || ['all', 'tokens'].includes(scope) ? {} : { tokens }),
      });
    });
  }

  protected async keep(change: Partial<Pick<SignIn, 'client' | 'tokens'>>): Promise<void> {
    const { file } = this.options;
    await file.alone(async () => {
      const { url: _url, failing: _failing, ...kept } = (await file.read()) ?? { url: '' };
      await file.write({ ...kept, ...change });
    });
  }
}

/** Where a server says which authorization server it trusts. */
const WHOM = '/.well-known/oauth-protected-resource';

/** Uses a sign-in that a person has made, and has it renewed; where that is over, a person has to make it again. */
export class KeptSignIn extends FileProvider implements SendsItself {
  readonly #needed: () => Error;
  /** Why the server could not say, when it was asked last, which authorization server it trusts. */
  #unsaid: Error | undefined;

  /** @param needed the error that says who has to do what */
  constructor(options: SignInOptions, needed: () => Error) {
    super(options);
    this.#needed = needed;
  }

  /** The SDK asks for it first: without a sign-in nothing is registered, and nobody is asked. */
  async discoveryState(): Promise<undefined> {
    if ((await this.options.file.read())?.tokens === undefined) throw this.#needed();
  }

  /**
   * Where the server cannot say whom it trusts, the SDK takes it to be itself, and would have a person sign in there.
   * @throws PassingFailure where that is not whom it trusted before
   */
  override async saveDiscoveryState(found: { readonly authorizationServerUrl: string }): Promise<void> {
    await super.saveDiscoveryState(found);
    const issuer = (await this.options.file.read())?.tokens?.issuer;
    const isAnother = issuer !== undefined && URL.parse(issuer)?.href !== URL.parse(found.authorizationServerUrl)?.href;
    if (isAnother && this.#unsaid !== undefined) throw this.#unsaid;
  }

  /** Of the SDK's requests the one that renews is made here, so that what it gives is kept before anybody else asks. */
  async sendSignIn(send: Fetch, url: string | URL, init: RequestInit): Promise<Response> {
    if (isRenewal(init)) return renewed(this.options.file, send, url, init);
    if (init.method === 'DELETE') return send(url, init);
    const asksWhom = String(url).includes(WHOM);
    if (asksWhom) this.#unsaid = undefined;
    try {
      return await answered(send, url, init);
    } catch (error) {
      if (asksWhom && error instanceof Error) this.#unsaid = error;
      throw error;
    }
  }

  /** They are kept already, where nobody has forgotten them since; whose they are may not have been known before. */
  override async saveTokens(tokens: OAuthTokens): Promise<void> {
    const { file } = this.options;
    await file.alone(async () => {
      const kept = await file.read();
      if (kept?.tokens?.access_token !== tokens.access_token || kept.tokens.issuer !== undefined) return;
      const { url: _url, ...rest } = kept;
      await file.write({ ...rest, tokens });
    });
  }

  override async invalidateCredentials(scope: InvalidatedScope): Promise<void> {
    // A refused renewal has taken the tokens away already, and a person may have signed in since.
    if (scope === 'tokens') return;
    // A client that the host names is not ours to forget, and its tokens are good: its secret may be wrong.
    if (this.options.known === undefined) await super.invalidateCredentials(scope);
  }

  redirectToAuthorization(): void {
    throw this.#needed();
  }

  saveCodeVerifier(): void {
    // Nobody will come back with a code.
  }

  codeVerifier(): string {
    throw this.#needed();
  }
}

/** Is there while a person signs in: it starts without tokens, and holds what proves that the code is theirs. */
export class PersonSignIn extends FileProvider {
  readonly #state: string;
  #verifier = '';
  #isSignedIn = false;

  /** @param state what the browser has to come back with */
  constructor(options: SignInOptions, state: string) {
    super(options);
    this.#state = state;
  }

  get isSignedIn(): boolean {
    return this.#isSignedIn;
  }

  state(): string {
    return this.#state;
  }

  /** A client whose address is another one would be refused: it is registered anew. */
  override async clientInformation(): Promise<OAuthClientInformationMixed | undefined> {
    const client = await super.clientInformation();
    const given: unknown = client === undefined ? undefined : Reflect.get(client, 'redirect_uris');
    const isElsewhere = this.options.known === undefined && Array.isArray(given) && !given.includes(this.redirectUrl);
    return isElsewhere ? undefined : client;
  }

  override async tokens(): Promise<OAuthTokens | undefined> {
    return this.#isSignedIn ? super.tokens() : undefined;
  }

  override async saveTokens(tokens: OAuthTokens): Promise<void> {
    await super.saveTokens(tokens);
    this.#isSignedIn = true;
  }

  redirectToAuthorization(): void {
    // The transport hands the address on to whoever waits for the person.
  }

  saveCodeVerifier(codeVerifier: string): void {
    this.#verifier = codeVerifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** Nothing but what a person has to do: the SDK knows it for the refusal that it is. */
export const signInNeeded = (origin: string, how: string): Error =>
  new UnauthorizedError(`${origin} asks for a person to sign in: ${how}`);
