// Was: under load, workerd reset connections between conversations (and a bare worker's, too): it closes one whose next
// request it has not read within 5 s, or whose first it has not within 15 s, however busy it is; and so does Node's
// server with those of workerd.
// Now: 1,000 conversations are held at once, each request on a connection of its own; and what workerd does is shown of
// a bare worker, which cannot change it.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { asked, mine, until } from '../gateway/kit.ts';
import { said, use, wholeOf, type Reply } from '../gateway/upstream.ts';
import { bareWorker, workerIn, type RunningWorker } from '../gateway/workerd.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

const CONVERSATIONS = 1_000;
/** Begun or let go on together: nothing waits so long to be read that it is given up. */
const TOGETHER = 50;
const WITHIN_MS = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'spillway-workerd-'));
let worker: RunningWorker;
let upstream: Server;
/** First requests that wait for their answer, by conversation. */
const held = new Map<string, () => void>();
let heldAtOnce = 0;
/** What came back of what the client does not see, by conversation. */
const restored = new Map<string, string>();

const give = (response: ServerResponse, reply: Reply): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(wholeOf(reply));

/** Each conversation has ids of its own: what is of another would be seen. */
const answer = (text: string, response: ServerResponse): void => {
  const { messages } = JSON.parse(text) as { readonly messages: ReadonlyArray<{ readonly content: unknown }> };
  const id = String(messages[0]?.content);
  if (messages.length === 1) {
    held.set(id, () =>
      give(response, {
        blocks: [use('toolu_m', 'mine'), use('toolu_g', 'math_add', { a: Number(id), b: 0 })],
        stop: 'tool_use',
      }),
    );
    heldAtOnce = Math.max(heldAtOnce, held.size);
    return;
  }
  restored.set(id, JSON.stringify(messages.at(-1)?.content));
  give(response, { blocks: [said(`Done ${id}`)] });
};

beforeAll(async () => {
  upstream = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming
      .on('data', (piece: Buffer) => pieces.push(piece))
      .on('end', () => answer(Buffer.concat(pieces).toString(), response));
  });
  // As the API's own: a connection is not closed while the worker may still ask on it.
  upstream.keepAliveTimeout = WITHIN_MS;
  await new Promise<void>((resolve) => {
    upstream.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve);
  });
  const start = await workerIn(folder);
  worker = await start(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
}, SIDE_INSTALL_TIMEOUT_MS);
afterAll(async () => {
  await worker.dispose();
  upstream.close().closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

/** Asks on a connection of its own, once. */
const post = (body: unknown): Promise<{ readonly content: unknown }> =>
  new Promise((resolve, reject) => {
    const sent = request(`${worker.url}/v1/messages`, { method: 'POST', agent: false }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (piece: string) => (text += piece))
        .on('error', reject);
      response.on('end', () =>
        response.statusCode === 200 ? resolve(JSON.parse(text) as { content: unknown }) : reject(new Error(text)),
      );
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });

const converse = async (id: string): Promise<unknown> => {
  const first = { ...asked, tools: [mine], messages: [{ role: 'user', content: id }] };
  const { content } = await post(first);
  const result = { type: 'tool_result', tool_use_id: 'toolu_m', content: `mine ${id}` };
  return (
    await post({
      ...first,
      messages: [...first.messages, { role: 'assistant', content }, { role: 'user', content: [result] }],
    })
  ).content;
};

it(
  'R-13.4 workerd holds 1,000 conversations at once, none is reset, and each gets back what is its own',
  async () => {
    const ids = Array.from({ length: CONVERSATIONS }, (_, n) => String(n));
    const groups = Array.from({ length: CONVERSATIONS / TOGETHER }, (_, at) =>
      ids.slice(at * TOGETHER, (at + 1) * TOGETHER),
    );
    const ended: Array<Promise<unknown>> = [];
    for (const group of groups) {
      ended.push(...group.map(converse));
      // A rejection is heard of at the end.
      for (const one of ended.slice(-TOGETHER)) one.catch(() => undefined);
      await until(() => held.size === ended.length, WITHIN_MS);
    }
    expect(heldAtOnce).toBe(CONVERSATIONS);
    for (const [at, group] of groups.entries()) {
      for (const id of group) held.get(id)?.();
      await Promise.all(ended.slice(at * TOGETHER, (at + 1) * TOGETHER));
    }
    expect(await Promise.all(ended)).toStrictEqual(ids.map((id) => [said(`Done ${id}`)]));
    const results = (id: string): object[] => [
      { type: 'tool_result', tool_use_id: 'toolu_m', content: `mine ${id}` },
      { type: 'tool_result', tool_use_id: 'toolu_g', content: `sum ${id}` },
    ];
    expect(ids.map((id) => restored.get(id))).toStrictEqual(ids.map((id) => JSON.stringify(results(id))));
  },
  WITHIN_MS,
);

/** What workerd answers on a connection that is kept, and how long it keeps it after its last byte. */
const keptFor = (url: URL, asked: string): Promise<{ readonly head: string; readonly ms: number }> =>
  new Promise((resolve, reject) => {
    let head = '';
    let quietSinceMs = performance.now();
    const socket = connect(Number(url.port), url.hostname, () => {
      quietSinceMs = performance.now();
      socket.write(asked);
    });
    socket.setEncoding('utf8').on('error', reject);
    socket.on('data', (text: string) => {
      head += text;
      quietSinceMs = performance.now();
    });
    socket.on('end', () => {
      socket.end();
      resolve({ head, ms: performance.now() - quietSinceMs });
    });
  });

it(
  'R-13.4 workerd ends a connection that waits by its own clock, and tells no client what a worker says of that',
  async () => {
    const bare = await bareWorker();
    try {
      const url = new URL(bare.url);
      const [kept, unread] = await Promise.all([
        keptFor(url, 'GET / HTTP/1.1\r\nhost: worker\r\n\r\n'),
        keptFor(url, 'GET / HTTP/1.1\r\n'),
      ]);
      expect(kept.head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(kept.head).toMatch(/x-said: yes/i);
      expect(kept.head).not.toMatch(/^(?:connection|keep-alive):/im);
      // 5 s and 15 s; this process may read late, by which what it measures is less.
      expect(kept.ms).toBeGreaterThan(2_500);
      expect(unread.ms).toBeGreaterThan(10_000);
    } finally {
      await bare.dispose();
    }
  },
  WITHIN_MS,
);
