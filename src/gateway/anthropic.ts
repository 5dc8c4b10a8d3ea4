import { requestOf, responseOf } from './wire/exchange.ts';
import { Gateway, inners } from './anthropic/gateway.ts';
import { gatewaySettings, type AnthropicGatewayOptions } from './anthropic/options.ts';
import type { GatewayMetrics } from './anthropic/report.ts';

export type { AnthropicGatewayOptions, GatewayLimits } from './anthropic/options.ts';
export type { RateLimit } from './wire/limits.ts';
export type { GatewayLogger, GatewayMetrics } from './anthropic/report.ts';
export { malformedTable } from './anthropic/shapes.ts';
export {
  GATEWAY_ERROR_MEANINGS,
  gatewayErrorTable,
  type GatewayErrorKind,
  type GatewayErrorMeaning,
  type GatewayLogLevel,
} from './wire/error.ts';
export {
  conversationClient,
  type ConversationClient,
  type ConversationClientOptions,
  type StatePolicy,
} from './conversation/client.ts';
export { memoryConversationState, type MemoryConversationOptions } from './conversation/memory.ts';
export type { ConversationRecord, ConversationState } from './conversation/conversation.ts';

/** An endpoint that Claude clients can point at. */
export interface AnthropicGateway {
  /** Answers a request; never rejects. It needs no `this`. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Counters and errors, for Prometheus. */
  readonly metrics: GatewayMetrics;
  /** Turns that run now. */
  readonly running: number;
  /**
   * Lets no further request in, and resolves when what runs has ended. What runs longer than `graceMs` is harvested:
   * its tools are canceled, finished results are stored, and its client is told to ask again.
   */
  drain(graceMs?: number): Promise<void>;
}

/** How long what runs may go on when the gateway is shut down. */
const GRACE_MS = 30_000;

/**
 * An Anthropic-compatible endpoint in front of an upstream: `POST /v1/messages`, streaming or not, runs the calls of
 * its own tools as turns of the layer, in parallel and under a deadline, and sends the results upstream, until the
 * model has no more of them; the client's own calls go to the client. All other paths pass.
 *
 * A failed tool is a `tool_result` with `is_error: true`. Malformed requests are refused before the upstream sees them.
 * Headers, betas, unknown fields and blocks pass untouched, and so does the upstream's answer where no tool of the
 * gateway is in it, byte for byte. While tools run, a streaming client gets pings. `usage` is the sum of all steps.
 * What the client does not see is kept in `state`, by the ids of its calls, and put back when it answers them. A
 * request that fails after tools have run goes on from there when it is sent again within ten minutes.
 *
 * @param options upstream, tools, state and limits
 * @throws RangeError for an option out of its range
 *
 * @example const gateway = anthropicGateway({ upstream: 'https://api.anthropic.com', tools, spillway: createSpillway({
 * tools }) }); const response = await gateway.fetch(new Request('http://127.0.0.1/v1/models'));
 */
export function anthropicGateway(options: AnthropicGatewayOptions): AnthropicGateway {
  const inner = new Gateway(gatewaySettings(options));
  const gateway: AnthropicGateway = {
    fetch: async (request) => responseOf(await inner.answer(requestOf(request))),
    metrics: inner.report.metrics,
    get running() {
      return inner.gate.running;
    },
    drain: (graceMs = GRACE_MS) => inner.gate.drain(graceMs),
  };
  inners.set(gateway, inner);
  return gateway;
}
