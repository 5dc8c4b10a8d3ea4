import type { EventStore } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { Message } from '../message.ts';

/** What a client may miss of a session and still be told: enough for a cut connection, not for a day. */
const EVENTS_MAX = 1_000;
const CHARS_MAX = 16 * 1024 * 1024;

interface SentMessage {
  readonly stream: string;
  readonly message: Message;
  readonly chars: number;
}

/** What a session has sent, so that a client whose stream was cut gets the rest of it. */
export function eventStore(): EventStore {
  const kept = new Map<string, SentMessage>();
  let chars = 0;
  let last = 0;
  const forgetOldest = (): void => {
    for (const [id, { chars: length }] of kept) {
      if (kept.size <= EVENTS_MAX && chars <= CHARS_MAX) return;
      kept.delete(id);
      chars -= length;
    }
  };
  return {
    storeEvent: (stream, message) => {
      const id = `${++last}`;
      const { length } = JSON.stringify(message);
      kept.set(id, { stream, message, chars: length });
      chars += length;
      forgetOldest();
      return Promise.resolve(id);
    },
    getStreamIdForEventId: (id) => Promise.resolve(kept.get(id)?.stream),
    replayEventsAfter: async (lastId, { send }) => {
      const stream = kept.get(lastId)?.stream ?? '';
      for (const [id, event] of kept) {
        // The first event of a stream says nothing: it is there to have an id.
        if (Number(id) <= Number(lastId) || event.stream !== stream || !('jsonrpc' in event.message)) continue;
        await send(id, event.message);
      }
      return stream;
    },
  };
}
