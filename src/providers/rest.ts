import type { IncomingMessage } from 'node:http';
import * as core from 'zod/v4/core';
import type { ToolProvider } from '../contract/provider.ts';
import type { RestManifest } from '../contract/formats/rest-manifest.ts';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { ToolContext } from '../contract/tool.ts';
import { toToolError } from '../errors/read-error.ts';
import { mcpAborted } from '../errors/mcp.ts';
import { checkKeys, checkNumber, checkOneOf, integer } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { createConnections, exchange, type Connections, type RestRequest } from './rest/exchange.ts';
import { contextHeaders, filledHeaders } from './rest/headers.ts';
import { compiledManifest } from './rest/manifest.ts';
import { refusal } from './rest/refusal.ts';
import type { RestOperation } from './rest/operation.ts';
import { guardedOperations, toolOf } from './rest/tool.ts';
import { ENCODINGS, partAt, readResponseBody, unusable, valueOfBody } from './rest/response.ts';
import { targetGuard, type Resolve, type TargetGuard } from './rest/target.ts';
import { redactor, retold, type Telling } from './rest/telling.ts';
import { invalidInput, type RestInput } from './rest/url.ts';
import { checkOwnTools, type OwnTools } from './own-tools.ts';

export {
  restManifestSchema,
  type RestManifest,
  type RestMethod,
  type RestResponseEntry,
  type RestToolEntry,
} from '../contract/formats/rest-manifest.ts';
export type { OwnTool, OwnTools } from './own-tools.ts';
export { RestManifestError, readRestManifest } from './rest/manifest.ts';

/** What a tool's whole output may be; more is for a file, not for a model. */
const RESPONSE_BYTES = 8 * 1024 * 1024;
const KEYS = ['env', 'allow', 'lookup', 'ca', 'maxResponseBytes', 'show', 'tools', 'runtime'];

/** What the manifest's requests may use and reach. */
export interface RestProviderOptions {
  /**
   * The variables that `${env:NAME}` in headers stands for, such as `process.env`. Default: none; the environment
   * itself is never read.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Targets that may be reached though they are not public: `host`, `host:port` or a CIDR range. Default: none. */
  readonly allow?: readonly string[];
  /** Gives all addresses of a host, every one of which is checked. Default: the system's resolver. */
  readonly lookup?: Resolve;
  /** Certificates to trust instead of the machine's own, in PEM. Default: the machine's. */
  readonly ca?: string | readonly string[];
  /** The largest body taken, in bytes, before and after decoding. Default 8 MiB. */
  readonly maxResponseBytes?: number;
  /**
   * `errors`: a model is shown what the API answers to a failed request, without what looks like a secret, cut, and
   * marked as the tool's. For single tools the manifest says it. Default: only what happened, and whether trying again
   * can help.
   */
  readonly show?: 'errors';
  /**
   * What you know of single tools, by their ids in the manifest: `{ get_issue: { policy: { timeoutMs: 5_000 } } }`.
   * Default: only what the manifest says of them.
   */
  readonly tools?: OwnTools;
  /**
   * The wall clock that an HTTP date in `Retry-After` is compared with, and the timer for reading an error's body.
   * Default: the machine's.
   */
  readonly runtime?: Runtime;
}

/** What the calls of a provider share. */
interface Shared extends Telling {
  /** An answer without credentials. */
  readonly shown: Telling['redact'];
  readonly guard: TargetGuard;
  readonly connections: Connections;
  readonly maxBytes: number;
}

const checkedInput = ({ input: schema }: RestOperation, input: unknown): RestInput => {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data as RestInput;
  const [first] = parsed.error.issues;
  throw invalidInput(
    first === undefined || first.path.length === 0 ? 'the value' : core.toDotPath(first.path),
    parsed.error.issues.map(({ message }) => message).join('; '),
  );
};

const requestOf = (operation: RestOperation, input: RestInput, context: ToolContext): RestRequest => {
  const { base, method, forStrangers } = operation;
  // Put together as text: a URL resolved against another would read //host or ../ in it.
  const prefix = `${base.origin}${base.pathname.replace(/\/+$/, '')}`;
  const url = new URL(`${prefix}${operation.url.expand(input)}`);
  if (url.origin !== base.origin || !url.href.startsWith(`${prefix}/`))
    throw invalidInput('the value', 'leads out of the path of this tool');
  const body = operation.body?.fill(input);
  const headers = {
    accept: operation.as === 'text' ? '*/*' : 'application/json, text/*;q=0.5, */*;q=0.1',
    'accept-encoding': ENCODINGS,
    'user-agent': 'spillway',
    ...(body === undefined ? {} : { 'content-type': body.contentType }),
    ...filledHeaders(operation.headers, input),
    ...contextHeaders(context, operation.idempotencyHeader),
  };
  return { method, url, headers, forStrangers, body };
};

const outputOf = async (
  operation: RestOperation,
  response: IncomingMessage,
  signal: AbortSignal,
  context: ToolContext,
  shared: Shared,
): Promise<unknown> => {
  const { as, at, checkOutput } = operation;
  const status = response.statusCode ?? 0;
  if (status < 200 || status >= 300) throw await refusal(operation, response, signal, shared);
  if (operation.method === 'HEAD') {
    response.resume();
    const { 'set-cookie': _, ...headers } = response.headers;
    return { status, headers };
  }
  const body = await readResponseBody(response, shared.maxBytes, signal, (progress) => context.progress(progress));
  const value = valueOfBody(body, response.headers['content-type'] ?? '', {
    as,
    structured: at.length > 0 || checkOutput !== undefined,
  });
  const output = partAt(value, at);
  if (output === undefined) throw unusable(`The answer has nothing at /${at.join('/')}`);
  const problem = checkOutput?.(output);
  if (problem !== undefined) throw unusable(`The answer does not fit response_schema: ${problem}`);
  return output;
};

const execute = async (
  operation: RestOperation,
  input: unknown,
  context: ToolContext,
  signal: AbortSignal,
  shared: Shared,
): Promise<unknown> => {
  const request = requestOf(operation, checkedInput(operation, input ?? {}), context);
  const response = await exchange(request, shared.connections, shared.guard, signal);
  try {
    return shared.shown(await outputOf(operation, response, signal, context, shared));
  } catch (error) {
    if (signal.aborted) throw mcpAborted(signal, true);
    if (error instanceof ToolExecutionError) throw error;
    const { message, code } = toToolError(error, 'http');
    throw new ToolExecutionError('transport_error', message, { code, uncertain: true, cause: error });
  }
};

const checkOptions = (options: RestProviderOptions): void => {
  checkKeys('restProvider', options, KEYS);
  const { allow, maxResponseBytes = RESPONSE_BYTES, show, tools: own = {} } = options;
  checkNumber('maxResponseBytes', maxResponseBytes, integer(1, 2 ** 30));
  if (show !== undefined) checkOneOf('show', show, ['errors']);
  checkOwnTools('restProvider', own);
  if (allow !== undefined && !Array.isArray(allow)) throw new RangeError('allow must be a list of hosts and ranges');
};

/**
 * The tools of an HTTP API, as a manifest describes them: `{ name, base_url, headers?, tools }`, an object or what
 * `readRestManifest` makes of YAML. Each tool is one request: a method, a URL template, headers and a body filled from
 * the input, and a way to read the answer.
 *
 * Input is checked against the tool's JSON Schema before anything is sent. An answered status of 400 or more is an
 * error with its status, code and `Retry-After`; a connection that was never made is `transport_error`, not executed;
 * one lost later is uncertain. An aborted signal ends the request and its connection at once. The attempt's
 * `traceparent`, `tracestate` and `baggage` are sent along, and its key in the tool's `idempotency_header`.
 *
 * Requests go to public addresses only, redirects included, unless `allow` names the target: loopback, private,
 * link-local and the like are refused with `not_permitted`. Every address of a host is checked, and the connection goes
 * to one that was.
 *
 * @throws RangeError for an option out of its range; RestManifestError that names each place, rule and remedy
 *
 * @example const weather = restProvider( { name: 'weather', base_url: 'https://api.example.com/v1', headers: {
 * 'x-api-key': '${env:WEATHER_KEY}' }, tools: [{ id: 'forecast', url: '/cities/{city}/forecast{?days}', timeout_ms:
 * 5_000 }] }, { env: { WEATHER_KEY: 'a secret' } }, ); const spillway = createSpillway({ providers: [weather] }); await
 * spillway.execute({ toolName: 'weather.forecast', input: { city: 'Oslo', days: 3 } });
 */
export function restProvider(manifest: RestManifest, options: RestProviderOptions = {}): ToolProvider {
  const { env = {}, allow, lookup, ca, maxResponseBytes = RESPONSE_BYTES, runtime = liveRuntime } = options;
  checkOptions(options);
  const {
    manifest: { name },
    operations,
    credentials,
    secrets,
  } = compiledManifest(manifest, env);
  const guarded = guardedOperations(name, operations, options);
  const guard = targetGuard({ ...(allow === undefined ? {} : { allow }), ...(lookup === undefined ? {} : { lookup }) });
  const shared: Shared = {
    guard,
    connections: createConnections(ca),
    maxBytes: maxResponseBytes,
    redact: redactor(secrets),
    shown: redactor(credentials),
    runtime,
  };
  const running = new Set<AbortController>();
  let closed = false;

  const run = async (operation: RestOperation, input: unknown, context: ToolContext): Promise<unknown> => {
    if (closed)
      throw new ToolExecutionError(
        'transport_error',
        `The REST provider ${name} was closed; it is not called any more`,
        { executed: false, classification: 'permanent' },
      );
    const controller = new AbortController();
    const { signal } = context;
    const abort = (): void => controller.abort(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort);
    running.add(controller);
    try {
      return await execute(operation, input, context, controller.signal, shared);
    } catch (error) {
      throw retold(error, shared.redact);
    } finally {
      running.delete(controller);
      signal.removeEventListener('abort', abort);
    }
  };

  return {
    name,
    tools: guarded.map((operation) => toolOf(operation, name, run)),
    close: async () => {
      closed = true;
      for (const controller of running)
        controller.abort(
          new ToolExecutionError('canceled', `The REST provider ${name} was closed during the call`, {
            executed: true,
            uncertain: true,
          }),
        );
      shared.connections.http.destroy();
      shared.connections.https.destroy();
    },
  };
}
