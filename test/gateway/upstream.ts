import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { streamed, violations, type Block, type WireRequest } from '../agent/messages-server.ts';
import { bodyOf, scriptedServer } from '../errors/scripted-server.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One answer of the upstream, whole or streamed as the request asks. */
export interface Reply {
  readonly blocks?: readonly Block[];
  readonly stop?: string;
  readonly usage?: Fields;
  /** Instead: an error, or any answer to the byte. */
  readonly status?: number;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string>;
  /** The stream breaks after this many events; with `error`, it ends with that event. */
  readonly breaksAfter?: number;
  readonly error?: Fields;
  /** Between the events of a stream. */
  readonly everyMs?: number;
  /** Before the answer begins: a time, or what is waited for. */
  readonly delayMs?: number;
  readonly after?: Promise<unknown>;
}

export interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: WireRequest;
}

export interface TestUpstream {
  readonly url: string;
  readonly asked: Asked[];
  /** What the Messages API would have refused. */
  readonly faults: string[];
  /** Answers whose connection the gateway closed before their end. */
  readonly dropped: number;
  answer(script: (asked: Asked, place: number) => Reply): void;
  close(): Promise<void>;
}

export const use = (id: string, name: string, input: unknown = {}): Block => ({ type: 'tool_use', id, name, input });
export const said = (text: string): Block => ({ type: 'text', text });
export const thought = (thinking: string): Block => ({ type: 'thinking', thinking, signature: `sig-${thinking}` });

const sse = (event: Fields): string => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;

/** What the upstream streams for a reply, to the byte. */
export const streamOf = ({ blocks = [said('Hello')], stop = 'end_turn' }: Reply): string =>
  streamed(blocks, stop).map(sse).join('');
export const wholeOf = (
  { blocks = [said('Hello')], stop = 'end_turn', usage = { input_tokens: 11, output_tokens: 7 } }: Reply,
  id = 'msg_1',
): string =>
  JSON.stringify({
    id,
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: blocks,
    stop_reason: stop,
    stop_sequence: null,
    usage,
  });

const send = async (reply: Reply, wantsStream: boolean, response: ServerResponse): Promise<void> => {
  if (reply.delayMs !== undefined) await sleep(reply.delayMs);
  await reply.after;
  const headers = { 'request-id': 'req_upstream', ...reply.headers };
  if (reply.body !== undefined || reply.status !== undefined) {
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...headers }).end(reply.body ?? '{}');
    return;
  }
  if (!wantsStream) {
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(wholeOf(reply));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
  const events = streamed(reply.blocks ?? [said('Hello')], reply.stop ?? 'end_turn');
  const shown = reply.breaksAfter === undefined ? events : events.slice(0, reply.breaksAfter);
  for (const event of shown) {
    if (response.destroyed) return;
    response.write(sse(event));
    if (reply.everyMs !== undefined) await sleep(reply.everyMs);
  }
  if (reply.error !== undefined) response.end(sse({ type: 'error', error: reply.error }));
  else if (reply.breaksAfter === undefined) response.end();
  else
    response.write('event: content_block_delta\ndata: {"type":"cont', () => setTimeout(() => response.destroy(), 20));
};

/** A server in the place of Anthropic's: it checks what it is asked, and answers as it is told. */
export async function testUpstream(): Promise<TestUpstream> {
  const server = await scriptedServer();
  const asked: Asked[] = [];
  const faults: string[] = [];
  let dropped = 0;
  return {
    url: server.url,
    asked,
    faults,
    get dropped() {
      return dropped;
    },
    answer: (script) => {
      asked.length = 0;
      faults.length = 0;
      dropped = 0;
      server.script((request: IncomingMessage, response) => {
        const text = bodyOf(request);
        let body: WireRequest = { messages: [] };
        if (text.startsWith('{')) body = JSON.parse(text) as WireRequest;
        const one = { url: request.url ?? '', method: request.method ?? '', headers: request.headers, text, body };
        const place = asked.push(one) - 1;
        if (one.url === '/v1/messages') faults.push(...violations(body).map((fault) => `request ${place}: ${fault}`));
        response.on('close', () => {
          if (!response.writableFinished) dropped++;
        });
        send(script(one, place), body['stream'] === true, response).catch(() => response.destroy());
      });
    },
    close: () => server.close(),
  };
}
