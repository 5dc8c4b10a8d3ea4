import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Runtime } from '../contract/runtime.ts';
import { checkKeys } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { CLIENT_INFO, mcpConnection, type McpSession } from './mcp/client.ts';
import { capabilitiesOf, checkHandlers, type McpHandlers } from './mcp/host/handlers.ts';
import { hearServer } from './mcp/host/hear-server.ts';
import { HttpTransport } from './mcp/http-transport.ts';
import { mcpOutputValidator } from './mcp/output.ts';
import { Waits } from './mcp/waits.ts';
import { mcpProvider, type McpConnection, type McpProvider, type OwnTools } from './mcp.ts';

export type { McpHandlers, McpRoot } from './mcp/host/handlers.ts';

/** Which MCP server is connected to, and how. */
export interface McpHttpOptions {
  /** The provider's name; its tools are called `name.tool`. */
  readonly name: string;
  /** The server's endpoint, `http:` or `https:`. Redirects are followed within its origin only. */
  readonly url: string | URL;
  /** Headers sent with every request, such as `authorization`. No error shows them. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs in with OAuth where the server asks for it: the SDK's `OAuthClientProvider`. */
  readonly authProvider?: OAuthClientProvider;
  /** Limit on connecting and listing the tools, in milliseconds. Default 30,000. */
  readonly connectTimeoutMs?: number;
  /**
   * Has a person sign in at the address that the authorization server gave, and gives the code that it sent back: what
   * follows a sign-in that `authProvider` could not do by itself. Give `connectTimeoutMs` the time that a person takes.
   * Default: the call, or the connection, fails with `not signed in`.
   */
  readonly authorizationCode?: (authorizationUrl: URL) => string | Promise<string>;
  /** What a model is shown of a failure, as in `McpProviderOptions`. */
  readonly show?: 'errors';
  /**
   * What the host answers when the server asks a person, a model, or for its folders. Default: nothing, and the server
   * may list fewer tools.
   */
  readonly handlers?: McpHandlers;
  /** What you know of single tools, as in `McpProviderOptions`. */
  readonly tools?: OwnTools;
  /** Clock and timers of the connection. Default: the machine's. */
  readonly runtime?: Runtime;
}

const OF_SIGN_IN = ['authProvider', 'authorizationCode'];
const OPTION_KEYS = [
  'name',
  'url',
  'headers',
  ...OF_SIGN_IN,
  'connectTimeoutMs',
  'show',
  'handlers',
  'tools',
  'runtime',
];

/** Neither the address nor a header is shown: both can hold a secret. */
const urlOf = (url: unknown): URL => {
  const parsed = typeof url === 'string' || url instanceof URL ? URL.parse(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new RangeError('url must be an absolute http: or https: URL');
  if (parsed.username !== '' || parsed.password !== '')
    throw new RangeError('url must not hold a user name or a password; put them in headers, as authorization');
  return parsed;
};

const checkHeaders = (headers: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(headers)) {
    try {
      if (typeof value !== 'string') throw new TypeError('not a string');
      new Headers().append(name, value);
    } catch {
      throw new RangeError(
        `headers must be names and texts that HTTP allows; ${JSON.stringify(name.slice(0, 64))} is not`,
      );
    }
  }
};

const checkOptions = (options: McpHttpOptions): void => {
  checkKeys('mcpHttpProvider', options, OPTION_KEYS);
  const { handlers = {}, authorizationCode, authProvider } = options;
  checkHandlers('mcpHttpProvider', handlers);
  if (authorizationCode !== undefined && authProvider === undefined)
    throw new RangeError('authorizationCode is for an authProvider, which is not given; give both, or neither');
};

/**
 * The tools of an MCP server over Streamable HTTP, with the client of `@modelcontextprotocol/sdk` 1.x (an optional peer
 * dependency); a client of `@modelcontextprotocol/client` 2.x goes to `mcpProvider` instead. See there for how calls
 * fail and connections come back.
 *
 * A status in answer to a call is what `toToolError` makes of it, `Retry-After` included: not executed for a 4xx,
 * uncertain for a 5xx. A session that the server has forgotten (404, or 400 with the SDK's code -32000) fails the call
 * with `transport_error`, not executed, and the next one starts a new session. A call's stream that is cut is taken up
 * again where the server numbers its events: at once or when the server says, and a second later; otherwise, or if that
 * fails, the call fails with `transport_error`, uncertain. An aborted call is canceled at the server and lets go of its
 * stream; others are not touched. `close()` ends the session.
 *
 * @throws RangeError for an option out of its range; `transport_error`, not executed, when the server cannot be
 * connected
 *
 * @example const search = await mcpHttpProvider({ name: 'search', url: 'https://mcp.example.com/mcp', headers: {
 * authorization: 'Bearer ...' } }); const spillway = createSpillway({ providers: [search] });
 */
export async function mcpHttpProvider(options: McpHttpOptions): Promise<McpProvider> {
  checkOptions(options);
  const { name, headers = {}, authProvider, connectTimeoutMs, show, runtime = liveRuntime } = options;
  const { handlers = {}, tools, authorizationCode } = options;
  const url = urlOf(options.url);
  checkHeaders(headers);
  const waits = new Waits();

  const connect = async (signal: AbortSignal): Promise<McpConnection> => {
    const transport = new HttpTransport({ url, headers, authProvider, authorizationCode, runtime });
    const end = (): Promise<void> => transport.end();
    // Given up while it lists its tools: nothing else would end that request.
    signal.addEventListener('abort', () => void end(), { once: true });
    const capabilities = capabilitiesOf(handlers);
    const client = new Client(CLIENT_INFO, { jsonSchemaValidator: mcpOutputValidator, capabilities });
    const heard = hearServer(client, handlers, waits);
    try {
      await client.connect(transport, { signal, timeout: 2 ** 31 - 1 });
      const session = (): McpSession => ({
        transport: 'tcp',
        ...(transport.sessionId === undefined ? {} : { id: transport.sessionId }),
      });
      const connection = mcpConnection(client);
      void connection.closed.then(() => heard.unsubscribe());
      return { ...connection, close: end, session };
    } catch (error) {
      heard.unsubscribe();
      await end();
      throw error;
    }
  };

  return mcpProvider({
    name,
    connect,
    runtime,
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(show === undefined ? {} : { show }),
    ...(tools === undefined ? {} : { tools }),
    waiting: () => waits.begin(),
  });
}
