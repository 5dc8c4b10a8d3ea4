import { Agent, createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSpillway, tool } from '../../src/index.ts';
import { anthropicGateway } from '../../src/gateway/anthropic.ts';
import { serveAnthropicGateway } from '../../src/gateway/anthropic-server.ts';

// One part of the load test, each in a process of its own: `upstream`, `gateway URL`, `proxy URL`, or `client URL TURNS
// AT_ONCE tools|plain`. What it has to say goes to stdout as one line of JSON; the servers then stay until stdin is
// closed.

const [role, url = '', turns = '0', atOnce = '0', kind = 'plain'] = process.argv.slice(2);
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
const stay = (): void => {
  process.stdin.on('end', () => process.kill(process.pid)).resume();
};

const event = (fields: Readonly<Record<string, unknown>>): string =>
  `event: ${String(fields['type'])}\ndata: ${JSON.stringify(fields)}\n\n`;
const PIECES = 40;
const EVERY_MS = 30;
/** The same for all processes of a machine. */
const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;
const begin = event({
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  },
});
const end = (stop: string): string =>
  event({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 1 } }) +
  event({ type: 'message_stop' });
const block = (content: object, delta: object): string =>
  event({ type: 'content_block_start', index: 0, content_block: content }) +
  event({ type: 'content_block_delta', index: 0, delta }) +
  event({ type: 'content_block_stop', index: 0 });
const call =
  begin +
  block(
    { type: 'tool_use', id: 'toolu_1', name: 'echo', input: {} },
    { type: 'input_json_delta', partial_json: '{}' },
  ) +
  end('tool_use');

const piecemeal = (response: ServerResponse): void => {
  response.write(begin + event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }));
  let piece = 0;
  const step = (): void => {
    // The instant is in the text: whoever reads it knows how long it was on its way.
    response.write(
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${nowMs()} ` } }),
    );
    // As models write: now faster, now slower.
    if (++piece < PIECES) setTimeout(step, EVERY_MS * (0.5 + Math.random()));
    else response.end(event({ type: 'content_block_stop', index: 0 }) + end('end_turn'));
  };
  setTimeout(step, EVERY_MS * Math.random());
};

const serveUpstream = (): void => {
  const server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on('data', (piece: Buffer) => pieces.push(piece));
    incoming.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const text = Buffer.concat(pieces).toString();
      if (text.includes('"use_tools"') && !text.includes('tool_result')) response.end(call);
      else piecemeal(response);
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => say({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
  stay();
};

/** Asked by a line how it is. */
const answerQuestions = (running: () => number): void => {
  process.stdin.on('data', () => {
    globalThis.gc?.();
    globalThis.gc?.();
    const { user, system } = process.cpuUsage();
    say({ heapUsed: process.memoryUsage().heapUsed, cpuMs: (user + system) / 1_000, running: running() });
  });
  stay();
};

const serveGateway = async (): Promise<void> => {
  const echo = tool({ name: 'echo', execute: () => 'echo' });
  const gateway = anthropicGateway({ upstream: url, tools: [echo], spillway: createSpillway({ tools: [echo] }) });
  const server = await serveAnthropicGateway(gateway);
  say({ url: server.url });
  answerQuestions(() => gateway.running);
};

/** The least that can stand between a client and an upstream on Node. */
const serveProxy = (): void => {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, response) => {
    const sent = request(
      `${url}${incoming.url ?? ''}`,
      { method: 'POST', headers: incoming.headers, agent },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    incoming.pipe(sent);
  });
  server.listen(0, '127.0.0.1', () => say({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
  answerQuestions(() => 0);
};

const quantile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? NaN;

const runClient = async (): Promise<void> => {
  const agent = new Agent({ keepAlive: true, maxSockets: Number(atOnce) });
  const delays: number[] = [];
  const firsts: number[] = [];
  let whole = 0;
  const body = JSON.stringify({
    model: 'm',
    max_tokens: 10,
    stream: true,
    messages: [{ role: 'user', content: kind === 'tools' ? 'use_tools' : 'plain' }],
  });
  const turn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const askedMs = nowMs();
      const sent = request(
        `${url}/v1/messages`,
        { method: 'POST', agent, headers: { 'content-type': 'application/json', 'x-api-key': 'k' } },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.once('data', () => firsts.push(nowMs() - askedMs));
          response.on('data', (piece: string) => {
            const now = nowMs();
            for (const [, at] of piece.matchAll(/"text":"(\d+\.?\d*) "/g)) delays.push(now - Number(at));
            text += piece;
          });
          response.on('end', () => {
            if (
              text.endsWith('event: message_stop\ndata: {"type":"message_stop"}\n\n') &&
              text.split('text_delta').length - 1 === PIECES
            )
              whole++;
            resolve();
          });
          response.on('error', reject);
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  let left = Number(turns);
  const one = async (): Promise<void> => {
    await sleep(Math.random() * PIECES * EVERY_MS);
    while (left-- > 0) await turn();
  };
  await Promise.all(Array.from({ length: Number(atOnce) }, one));
  say({ whole, medianMs: quantile(delays, 0.5), p99Ms: quantile(delays, 0.99), firstMs: quantile(firsts, 0.5) });
  agent.destroy();
};

if (role === 'upstream') serveUpstream();
else if (role === 'gateway') await serveGateway();
else if (role === 'proxy') serveProxy();
else await runClient();
