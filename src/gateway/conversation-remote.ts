import { ToolExecutionError } from '../contract/tool-error.ts';
import { httpThrown } from '../errors/http.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../policy/check.ts';
import {
  CONVERSATION_TTL_MS,
  retrieveAnswerSchema,
  type ConversationRecord,
  type ConversationState,
} from './conversation/conversation.ts';

/** What is used of a Durable Object's stub. */
export interface DurableObjectStubLike {
  /** Sends a request to the object. Rejects when the object cannot be reached. */
  fetch(
    url: string,
    init: {
      /** Both paths take `POST` alone. */
      readonly method: 'POST';
      /** JSON. */
      readonly body: string;
      /** `content-type: application/json`. */
      readonly headers: Readonly<Record<string, string>>;
    },
  ): Promise<Response>;
}

/** What is used of a binding to Durable Objects. */
export interface DurableObjectNamespaceLike<Id = unknown> {
  /** The id of the object of that name, the same each time. */
  idFromName(name: string): Id;
  /** The stub by which that object is asked. */
  get(id: Id): DurableObjectStubLike;
}

/** How long records are kept, and over how many objects they are spread. */
export interface DurableObjectConversationOptions {
  /** How long a record is kept after it was stored, in milliseconds. Default 86,400,000: a day. */
  readonly ttlMs?: number;
  /**
   * How many objects the records of one scope are spread over, 1 to 1,024: one object answers some hundred requests a
   * second. Default 16. A record is found only with the number it was stored with.
   */
  readonly shards?: number;
}

const SHARDS = 16;
/** Keys end in a hash: its last digits are as good as any. */
const DIGITS = 4;

/**
 * Conversation state in Durable Objects of the class `ConversationStateDO`.
 *
 * @param namespace the worker's binding, `env.CONVERSATION_STATE`
 * @param options how long, and over how many objects
 * @throws RangeError for an option out of its range
 *
 * @example
 * const gatewayOf = (env: { readonly STATE: DurableObjectNamespaceLike }) =>
 *   anthropicGateway({ upstream: 'https://api.anthropic.com', state: durableObjectConversationState(env.STATE) });
 */
export function durableObjectConversationState<Id>(
  namespace: DurableObjectNamespaceLike<Id>,
  options: DurableObjectConversationOptions = {},
): ConversationState {
  checkKeys('durableObjectConversationState', options, ['ttlMs', 'shards']);
  const { ttlMs = CONVERSATION_TTL_MS, shards = SHARDS } = options;
  checkNumber('ttlMs', ttlMs, positiveDuration);
  checkNumber('shards', shards, integer(1, 1_024));
  if (typeof namespace?.idFromName !== 'function' || typeof namespace.get !== 'function')
    throw new RangeError('namespace must be a binding to Durable Objects, with idFromName() and get()');
  const nameOf = (key: string): string =>
    `${key.slice(0, Math.max(0, key.indexOf(':')))}:${(Number.parseInt(key.slice(-DIGITS), 16) || 0) % shards}`;
  const ask = async (name: string, path: string, body: unknown): Promise<unknown> => {
    const stub = namespace.get(namespace.idFromName(name));
    const response = await stub.fetch(`https://conversation-state${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });
    if (!response.ok) throw httpThrown(response);
    return response.json();
  };
  return {
    store: async (key, record) => {
      await ask(nameOf(key), '/store', { key, record, ttlMs });
    },
    retrieve: async (keys) => {
      const byName = new Map<string, string[]>();
      for (const key of keys) {
        const name = nameOf(key);
        const list = byName.get(name);
        if (list === undefined) byName.set(name, [key]);
        else list.push(key);
      }
      const answers = await Promise.all(
        [...byName].map(async ([name, list]): Promise<Array<[string, ConversationRecord]>> => {
          const parsed = retrieveAnswerSchema.safeParse(await ask(name, '/retrieve', { keys: list }));
          if (!parsed.success)
            throw new ToolExecutionError('execution_error', 'the conversation state answered what cannot be read', {
              classification: 'permanent',
            });
          return Object.entries(parsed.data.records);
        }),
      );
      return new Map(answers.flat());
    },
  };
}
