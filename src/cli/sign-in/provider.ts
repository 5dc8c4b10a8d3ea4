import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import type { SignIn, SignInFile } from './file.ts';

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
  /** The tokens that this process has used last: another one may have had them renewed since. */
  #used: string | undefined;

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
    await this.options.file.letGo();
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
    const tokens = (await this.options.file.read())?.tokens;
    this.#used = tokens?.access_token;
    return tokens;
  }

  async saveTokens(tokens: OAuthTokens): Promise<void> {
    await this.keep({ tokens });
  }

  async invalidateCredentials(scope: InvalidatedScope): Promise<void> {
    const kept = await this.options.file.read();
    if (kept === undefined) return;
    const { client, tokens } = kept;
    const isOurs = tokens?.access_token === this.#used;
    const without = {
      tokens: scope === 'all' || (scope === 'tokens' && isOurs),
      client: ['all', 'client'].includes(scope),
    };
    await this.options.file.write({
      ...(client === undefined || without.client ? {} : { client }),
      ...(tokens === undefined || without.tokens ? {} : { tokens }),
    });
  }

  protected async keep(change: Partial<Pick<SignIn, 'client' | 'tokens'>>): Promise<void> {
    const { url: _url, ...kept } = (await this.options.file.read()) ?? { url: '' };
    await this.options.file.write({ ...kept, ...change });
  }
}

/** Uses a sign-in that a person has made, and has it renewed; where that is over, a person has to make it again. */
export class KeptSignIn extends FileProvider {
  readonly #needed: () => Error;

  /** @param needed the error that says who has to do what */
  constructor(options: SignInOptions, needed: () => Error) {
    super(options);
    this.#needed = needed;
  }

  /** The SDK asks for it first: without a sign-in nothing is registered, and nobody is asked. */
  async discoveryState(): Promise<undefined> {
    const { file } = this.options;
    if ((await file.read())?.tokens === undefined) throw this.#needed();
    await file.hold();
  }

  override async saveTokens(tokens: OAuthTokens): Promise<void> {
    await super.saveTokens(tokens);
    await this.options.file.letGo();
  }

  override async invalidateCredentials(scope: InvalidatedScope): Promise<void> {
    await super.invalidateCredentials(scope);
    // The SDK begins anew.
    await this.options.file.letGo();
  }

  async redirectToAuthorization(): Promise<void> {
    await this.options.file.letGo();
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
