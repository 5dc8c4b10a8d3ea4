import { concatMap, defer, from, switchMap } from 'rxjs';
import { fromOutput } from '../operators/work/output.ts';
import { checkNumber, integer } from '../policy/check.ts';
import { toAnthropic } from './anthropic/messages.ts';
import { AnthropicReader } from './anthropic/stream.ts';
import type { AgentModel, ModelTool } from './model.ts';
import { WireIds, WireNames } from './wire/names.ts';

/** Anthropic's own limit. */
const TOOL_NAME_MAX = 128;

interface AnthropicRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: unknown[];
  readonly stream: true;
}

/** What is used of Anthropic's client: `new Anthropic()`, or its `beta`. */
export interface AnthropicClientLike {
  /** The Messages API. */
  readonly messages: {
    /** Sends a request. Gives an async iterable of the API's raw stream events; rejects with the client's own error. */
    create(
      body: AnthropicRequest,
      options?: {
        /** Ends the request and its stream. */
        readonly signal?: AbortSignal;
        /** Always 0: the run retries, so the client must not. */
        readonly maxRetries?: number;
      },
    ): PromiseLike<unknown>;
  };
}

/**
 * What goes into each request: everything that the Messages API takes except `messages` and `stream`, such as
 * `thinking`, `temperature`, `tool_choice` and `metadata`.
 */
export interface AnthropicModelParams {
  /** The name of the model, such as `claude-sonnet-4-5`. It must not be empty. */
  readonly model: string;
  /**
   * The most tokens that one answer may have, from 1; the API has no default for it. An answer cut off by it ends the
   * run with the reason `output_tokens`.
   */
  readonly max_tokens: number;
  /** The system prompt, as the API takes it; a run's own `system` is sent instead where there is one. */
  readonly system?: unknown;
  /** Tools in the API's form, such as those that the provider runs itself; the tools of the run are appended. */
  readonly tools?: readonly unknown[];
  readonly [param: string]: unknown;
}

const TAKEN = ['messages', 'stream'];

const wireTool = (
  { name, description, inputSchema }: ModelTool,
  names: WireNames,
): Readonly<Record<string, unknown>> => ({
  name: names.wire(name),
  ...(description === undefined || description === '' ? {} : { description }),
  input_schema: inputSchema,
});

/**
 * A model of Anthropic's Messages API, through the user's own client, streaming.
 *
 * Thinking and blocks of unknown kinds are kept in the messages and given back untouched. Tool results become one user
 * message right after their calls. Names of tools that the API would refuse are changed on the wire and back:
 * `files.read` is `files_read` there. The client's own retries are off for these requests: `modelRetry` of the run sees
 * every failure and decides.
 *
 * @param client Anthropic's client, or anything with `messages.create` that streams raw events
 * @param params the model's name, `max_tokens`, and what else the request shall have
 * @throws RangeError for parameters that cannot be
 *
 * @example const client: AnthropicClientLike = { messages: { create: () => Promise.reject(new Error('offline')) } };
 * const model = anthropicModel(client, { model: 'claude-sonnet-4-5', max_tokens: 4_096, cache_control: { type:
 * 'ephemeral' } });
 */
export function anthropicModel(client: AnthropicClientLike, params: AnthropicModelParams): AgentModel {
  if (typeof client?.messages?.create !== 'function')
    throw new RangeError('client must have messages.create, as the client of @anthropic-ai/sdk has');
  if (typeof params.model !== 'string' || params.model === '')
    throw new RangeError(`model must be the name of a model, not ${JSON.stringify(params.model)}`);
  checkNumber('max_tokens', params.max_tokens, integer(1, Number.MAX_SAFE_INTEGER));
  for (const name of TAKEN) if (name in params) throw new RangeError(`${name} cannot be given: the run decides it`);
  if (params.tools !== undefined && !Array.isArray(params.tools))
    throw new RangeError(`tools must be a list, not ${typeof params.tools}`);
  return (messages, tools, { signal, system }) =>
    defer(() => {
      const names = new WireNames(TOOL_NAME_MAX);
      const wireTools = [...(params.tools ?? []), ...tools.map((tool) => wireTool(tool, names))];
      const body = {
        ...params,
        ...(system === undefined || system === '' ? {} : { system }),
        messages: [...toAnthropic(messages, names, new WireIds())],
        ...(wireTools.length === 0 ? {} : { tools: wireTools }),
        stream: true as const,
      };
      const reader = new AnthropicReader(names);
      return from(client.messages.create(body, { signal, maxRetries: 0 })).pipe(
        switchMap((stream) => fromOutput(stream as AsyncIterable<unknown>)),
        concatMap((event) => reader.read(event)),
      );
    });
}
