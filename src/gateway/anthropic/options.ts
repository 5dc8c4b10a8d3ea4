import type { AgentLayer } from '../../agent/loop/tool-step.ts';
import type { RetryPolicy } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { PlanOptions } from '../../contract/turn.ts';
import { retryPolicy } from '../../policy/retry/backoff.ts';
import {
  checkKeys,
  checkNumber,
  checkOneOf,
  given,
  integer,
  integerOrInfinity,
  positiveDuration,
} from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import { fetchTransport, type FetchLike } from '../wire/fetch.ts';
import type { HeaderList, HeaderReader } from '../wire/headers.ts';
import type { RateLimit } from '../wire/limits.ts';
import type { GatewayLogger } from './report.ts';
import { STEP_RETRY, type Transport } from '../wire/upstream.ts';
import type { ConversationClientOptions } from '../conversation/client.ts';
import type { ConversationState } from '../conversation/conversation.ts';
import { memoryConversationState } from '../conversation/memory.ts';

/**
 * What one request, and all together, may take. A limit out of its range is a `RangeError` when the gateway is made.
 */
export interface GatewayLimits {
  /** Bytes of a request's body. Default 33,554,432: 32 MB, Anthropic's own limit. */
  readonly maxBodyBytes: number;
  /** How long a body may take to arrive, in milliseconds. Default 60,000; then the answer is 408. */
  readonly bodyTimeoutMs: number;
  /** How deep a body may be nested, 8 to 512. Default 64, as everywhere; then the answer is 400. */
  readonly maxDepth: number;
  /** The most blocks of one message, of one tool result, or of `system`. Default 4,096. */
  readonly maxBlocks: number;
  /** How many requests of `/v1/messages` may run at a time; a further one gets 529. Default 1,000. */
  readonly maxTurns: number;
  /** How often one API key may ask; a request that shows several keys counts for each. Default: no limit. */
  readonly rate?: RateLimit;
  /**
   * How many calls of the gateway's tools one step may make; further ones are answered with `limit_exceeded`. Default
   * 32.
   */
  readonly toolCallsPerStep: number;
  /** How many answers of the upstream one request may take; in the last one the model may call no tool. Default 25. */
  readonly steps: number;
  /** Characters of one tool result that the model is shown; `Infinity` shows all. Default 200,000. */
  readonly outputChars: number;
}

/** What a gateway is made of: only `upstream` must be given. */
export interface AnthropicGatewayOptions {
  /**
   * Where the Messages API is, such as `https://api.anthropic.com`. A path in it is put before that of each request. It
   * must have no user, query or fragment.
   */
  readonly upstream: string | URL;
  /** The tools that run at the gateway. Default: none, and requests and answers pass byte for byte. */
  readonly tools?: readonly AnyTool[];
  /** The layer that runs the tools; `createSpillway` makes one. Required with `tools`. */
  readonly spillway?: AgentLayer;
  /** Where the messages are kept that clients do not see. Default: the memory of this process. */
  readonly state?: ConversationState;
  /**
   * How operations on the state are retried, and rested where it keeps failing. Default: 2 retries each, as
   * `conversationClient` has it.
   */
  readonly statePolicy?: Omit<ConversationClientOptions, 'runtime'>;
  /**
   * What becomes of a request that answers a call which the state does not know: `refuse` (default) answers 500
   * `api_error`, `pass` sends it on as it is.
   */
  readonly unknownCalls?: 'refuse' | 'pass';
  /** How the tool calls of one step run: `timeoutMs` (300,000), `onDeadline` (`detach`), `concurrency` (no limit). */
  readonly turn?: PlanOptions;
  /** What requests may take. Each limit has a default of its own. */
  readonly limits?: Partial<GatewayLimits>;
  /** How often a streaming client gets a `ping` while tools run, in milliseconds. Default 2,000. */
  readonly pingMs?: number;
  /**
   * How long the upstream may take to begin an answer, in milliseconds; then the answer is 504. Default 600,000, as
   * Anthropic's SDK has it.
   */
  readonly upstreamTimeoutMs?: number;
  /**
   * How requests after the first step of a turn are retried; the first step is the client's own to retry. Default: 3
   * attempts, 0.5 s doubling to 8 s.
   */
  readonly upstreamRetry?: Partial<RetryPolicy>;
  /**
   * Whose conversation a request is part of: state and rates never cross scopes. Default: a hash of its API key or
   * bearer token; one scope for all requests without either. Where one key stands for many people it has to name the
   * end user, by a header that your own server sets: what two of them say is told apart only by `system`,
   * `metadata.user_id`, the model and the messages. Where tokens are renewed within a conversation, name its owner by
   * something that stays.
   */
  readonly scope?: (headers: Headers) => string;
  /** Where errors are logged: a pino logger fits. Default: nowhere; `metrics` counts them all the same. */
  readonly logger?: GatewayLogger;
  /**
   * How the upstream is asked. Default: the platform's `fetch`; where `serveAnthropicGateway` serves the gateway,
   * Node's own HTTP client, which takes far less time for each event.
   */
  readonly fetch?: FetchLike;
  /** Clock, timers, randomness and ids. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** Options, checked and whole. */
export interface GatewaySettings extends Required<
  Omit<AnthropicGatewayOptions, 'upstream' | 'spillway' | 'logger' | 'limits' | 'upstreamRetry' | 'scope' | 'fetch'>
> {
  readonly upstream: URL;
  readonly spillway: AgentLayer | undefined;
  readonly logger: GatewayLogger | undefined;
  readonly limits: GatewayLimits;
  readonly upstreamRetry: RetryPolicy;
  readonly scope: (headers: HeaderList) => string;
  /** Whose requests are counted together: all that a request is counted for. */
  readonly rateScopes: (headers: HeaderList) => readonly string[];
  readonly transport: Transport;
  /** The transport is the caller's `fetch`. */
  readonly ownFetch: boolean;
}

const KEYS = [
  'upstream',
  'tools',
  'spillway',
  'state',
  'statePolicy',
  'unknownCalls',
  'turn',
  'limits',
  'pingMs',
  'upstreamTimeoutMs',
  'upstreamRetry',
  'scope',
  'logger',
  'fetch',
  'runtime',
];
const LIMITS: GatewayLimits = {
  maxBodyBytes: 33_554_432,
  bodyTimeoutMs: 60_000,
  maxDepth: 64,
  maxBlocks: 4_096,
  maxTurns: 1_000,
  toolCallsPerStep: 32,
  steps: 25,
  outputChars: 200_000,
};
const PING_MS = 2_000;
const UPSTREAM_TIMEOUT_MS = 600_000;
const COUNT_MAX = 1_000_000_000;

const urlOf = (upstream: string | URL): URL => {
  let url: URL;
  try {
    url = new URL(upstream);
  } catch {
    throw new RangeError(
      'upstream must be an address such as https://api.anthropic.com, not ' +
        JSON.stringify(String(upstream).slice(0, 64)),
    );
  }
  if (!/^https?:$/.test(url.protocol))
    throw new RangeError(`upstream must be an http or https address, not ${url.protocol}`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new RangeError('upstream must have no user, query or fragment; clients send their own key');
  return url;
};

const limitsOf = (options: Partial<GatewayLimits>): GatewayLimits => {
  checkKeys('limits', options, [...Object.keys(LIMITS), 'rate']);
  const limits = { ...LIMITS, ...given(options) };
  for (const name of ['maxBodyBytes', 'maxBlocks', 'maxTurns', 'toolCallsPerStep', 'steps'] as const)
    checkNumber(`limits.${name}`, limits[name], integer(1, COUNT_MAX));
  checkNumber('limits.bodyTimeoutMs', limits.bodyTimeoutMs, positiveDuration);
  checkNumber('limits.maxDepth', limits.maxDepth, integer(8, 512));
  checkNumber('limits.outputChars', limits.outputChars, integerOrInfinity(1, COUNT_MAX));
  if (limits.rate !== undefined) {
    checkKeys('limits.rate', limits.rate, ['requests', 'windowMs']);
    checkNumber('limits.rate.requests', limits.rate.requests, integer(1, COUNT_MAX));
    checkNumber('limits.rate.windowMs', limits.rate.windowMs, positiveDuration);
  }
  return limits;
};

/**
 * The keys that a request shows, whichever headers they are in, each once: no key gets another scope by being sent
 * twice, or beside a made-up one that the upstream passes over. They are hashed before they go anywhere.
 */
const keysOf = (headers: HeaderReader): readonly string[] => {
  const listed = (name: string): readonly string[] => headers.get(name)?.split(',') ?? [];
  const tokens = listed('authorization').map((value) => value.trim().replace(/^bearer\s+/i, ''));
  return [
    ...new Set([...listed('x-api-key'), ...tokens].map((key) => key.trim()).filter((key) => key !== '')),
  ].toSorted();
};

const scopesOf = (scope: AnthropicGatewayOptions['scope']): Pick<GatewaySettings, 'scope' | 'rateScopes'> => {
  if (scope !== undefined)
    return { scope: (headers) => scope(headers.toHeaders()), rateScopes: (headers) => [scope(headers.toHeaders())] };
  const rateScopes = (headers: HeaderReader): readonly string[] => {
    const keys = keysOf(headers);
    return keys.length === 0 ? [''] : keys;
  };
  return { scope: (headers) => keysOf(headers).join('\n'), rateScopes };
};

/** @throws RangeError for an option out of its range */
export function gatewaySettings(options: AnthropicGatewayOptions): GatewaySettings {
  checkKeys('anthropicGateway', options, KEYS);
  const {
    tools = [],
    spillway,
    runtime = liveRuntime,
    pingMs = PING_MS,
    upstreamTimeoutMs = UPSTREAM_TIMEOUT_MS,
    unknownCalls = 'refuse',
    scope,
    fetch: ownFetch,
  } = options;
  if (!Array.isArray(tools)) throw new RangeError(`tools must be a list, not ${typeof tools}`);
  if (tools.length > 0 && typeof spillway?.turn !== 'function')
    throw new RangeError('tools need a layer that runs them; give spillway: createSpillway({ tools })');
  if (new Set(tools.map(({ name }: AnyTool) => name)).size < tools.length)
    throw new RangeError('tools must have names of their own; two have the same');
  checkNumber('pingMs', pingMs, positiveDuration);
  checkNumber('upstreamTimeoutMs', upstreamTimeoutMs, positiveDuration);
  checkOneOf('unknownCalls', unknownCalls, ['refuse', 'pass']);
  if (scope !== undefined && typeof scope !== 'function')
    throw new RangeError(`scope must be a function of the request's headers, not ${typeof scope}`);
  return {
    upstream: urlOf(options.upstream),
    tools,
    spillway,
    state: options.state ?? memoryConversationState({ runtime }),
    statePolicy: options.statePolicy ?? {},
    unknownCalls,
    turn: options.turn ?? {},
    limits: limitsOf(options.limits ?? {}),
    pingMs,
    upstreamTimeoutMs,
    upstreamRetry: retryPolicy(options.upstreamRetry ?? {}, STEP_RETRY),
    ...scopesOf(scope),
    logger: options.logger,
    transport: fetchTransport(ownFetch ?? ((url, init) => fetch(url, init))),
    ownFetch: ownFetch !== undefined,
    runtime,
  };
}
