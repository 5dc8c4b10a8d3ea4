import { ToolExecutionError } from '../../contract/tool-error.ts';
import { httpThrown } from '../../errors/http.ts';
import { read } from '../../errors/structure.ts';

/** What a refusal says of itself is short; no more of it is read. */
const REFUSAL_BYTES_MAX = 4_096;

const startOf = async (response: Response): Promise<string> => {
  const reader = response.body?.getReader();
  if (reader === undefined) return '';
  const decoder = new TextDecoder();
  let text = '';
  let left = REFUSAL_BYTES_MAX;
  while (left > 0) {
    const { value, done } = await reader.read();
    if (done) break;
    left -= value.length;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
};

/** The SDK's own sentences: `No valid session ID provided`, `Server not initialized`. */
const OF_SESSION = /session|not initialized/i;

const refusesSession = (text: string): boolean => {
  try {
    const error = read(JSON.parse(text), 'error');
    return read(error, 'code') === -32_000 && OF_SESSION.test(String(read(error, 'message')));
  } catch {
    return false;
  }
};

/**
 * Whether a refusal, inside a session, says that there is no such session: 404 by the protocol. Servers written after
 * the SDK's examples answer 400 with its code -32000 instead, and say so: others use that code for anything.
 */
export async function speaksOfSession(response: Response): Promise<boolean> {
  if (response.status === 404) {
    await response.body?.cancel();
    return true;
  }
  return response.status === 400 && refusesSession(await startOf(response.clone()));
}

/**
 * The error of a message that was answered with a status. A 4xx came before any tool ran; a 5xx may come from a proxy
 * that had passed the message on, so the tool may have run.
 */
export async function refusedBy(response: Response, wallNow: () => number): Promise<ToolExecutionError> {
  await response.body?.cancel();
  const { kind, message, code, status, retryAfterMs, classification } = httpThrown(response, wallNow);
  const refused = response.status < 500 && response.status !== 408;
  return new ToolExecutionError(kind, message, {
    code,
    status,
    retryAfterMs,
    classification,
    executed: !refused,
    uncertain: !refused,
  });
}

/** The error of a message that the server sent elsewhere, or to sign in, and that got no further. */
export function turnedAway(thrown: unknown, withStatus: number): ToolExecutionError {
  const { kind, message, code, status, retryAfterMs, classification } = httpThrown(thrown);
  const redirected = withStatus < 400;
  return new ToolExecutionError(kind, message, {
    code,
    status,
    retryAfterMs,
    executed: false,
    classification: redirected ? 'permanent' : classification,
    cause: thrown,
  });
}

/** The same answer, with word of the end of its body, however it ends. */
export function watched(response: Response, ended: () => void): Response {
  const reader = response.body?.getReader();
  if (reader === undefined) return response;
  let isOver = false;
  // A read may be pending when it is canceled, and ends by that as well.
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    ended();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { value, done } = await reader.read();
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel: async (reason) => {
        end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
