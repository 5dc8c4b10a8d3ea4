import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSpillway, tool, type Spillway, type TraceEvent } from 'spillway';
import { serveInspector, serveTraceFile, type InspectorServer } from 'spillway/inspect';
import { afterAll, describe, expect, it } from 'vitest';
import { raw, statusOf } from '../gateway/admin/kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'spillway-inspector-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CALL = { source: 'call', toolName: 'search' };
const HEADER = '{"format":1,"source":"sink","type":"file_started"}';

const layer = (): Spillway =>
  createSpillway({ tools: [tool({ name: 'search', policy: { effects: 'read' }, execute: () => 'found' })] });

interface Message {
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** Reads messages of the stream until there are enough. */
async function messages(
  { url, token }: InspectorServer,
  enough: (all: readonly Message[]) => boolean,
  lastId?: string,
): Promise<Message[]> {
  const response = await fetch(`${url}/events`, {
    headers: { authorization: `Bearer ${token}`, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
  });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const all: Message[] = [];
  let rest = '';
  while (!enough(all)) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const field = (name: string): string[] =>
        part.split('\n').flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []));
      all.push({ id: field('id')[0] ?? '', name: field('event')[0] ?? '', data: field('data').join('\n') });
    }
  }
  await reader.cancel();
  return all;
}

const eventsOf = (all: readonly Message[]): TraceEvent[] =>
  all.flatMap(({ name, data }) =>
    name === 'lines'
      ? data
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as TraceEvent)
      : [],
  );
const settledCalls = (all: readonly Message[]): number =>
  eventsOf(all).filter(({ source, type }) => source === 'call' && type === 'settled').length;

describe('SEE-7 the server of an inspector', () => {
  it.each([
    ['no token', '/', {}],
    ['a wrong token', '/', { Authorization: 'Bearer wrong-wrong-wrong-wrong' }],
    ['a wrong token in the address', '/?token=wrong-wrong-wrong-wrong', {}],
    ['a wrong token, for events', '/events?token=wrong', {}],
    ['a wrong token, for the script', '/inspect.js', {}],
    ['a wrong token, for what is handed on', '/share/perfetto?token=x', {}],
    ['a strange Host', '/', { Host: 'evil.example', Authorization: 'OURS' }],
    ['a strange Origin', '/', { Origin: 'https://evil.example', Authorization: 'OURS' }],
    ['the origin of another port', '/', { Origin: 'http://127.0.0.1:1', Authorization: 'OURS' }],
  ])('SEE-7 refuses %s by 403, and tells it', async (_, path, headers) => {
    const refused: number[] = [];
    const server = await serveInspector(layer(), { onRefused: ({ status }) => refused.push(status) });
    try {
      const { host } = new URL(server.url);
      const given = { Host: host, ...headers };
      const lines = Object.entries(given).map(
        ([name, value]) => `${name}: ${value === 'OURS' ? `Bearer ${server.token}` : value}\r\n`,
      );
      const answer = await raw(server.url, `GET ${path} HTTP/1.1\r\n${lines.join('')}Connection: close\r\n\r\n`);
      expect(statusOf(answer)).toBe(403);
      expect(answer).not.toContain(server.token);
      expect(refused).toHaveLength(1);
    } finally {
      await server.close();
    }
  });

  it('SEE-7 listens at loopback alone, can only be read, and lets the page load nothing of others', async () => {
    const server = await serveInspector(layer());
    try {
      expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
      const page = await fetch(server.page);
      expect(page.status).toBe(200);
      expect(page.headers.get('content-security-policy')).toContain("default-src 'self'");
      expect(page.headers.get('content-security-policy')).not.toContain('unsafe');
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(page.headers.get('referrer-policy')).toBe('no-referrer');
      const order = await fetch(server.page, { method: 'POST' });
      expect([order.status, order.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect((await fetch(`${server.url}/nothing?token=${server.token}`)).status).toBe(404);
    } finally {
      await server.close();
    }
    await expect(serveInspector(layer(), { host: '0.0.0.0' })).rejects.toThrow('token of your own');
  });

  it('SEE-7 a client that comes back with its last id misses nothing, and hears nothing twice', async () => {
    const spillway = layer();
    const server = await serveInspector(spillway);
    try {
      await spillway.execute({ toolName: 'search' });
      const first = await messages(server, (all) => settledCalls(all) === 1);
      const lastId = first.findLast(({ id }) => id !== '')?.id;
      await spillway.execute({ toolName: 'search' });
      await spillway.execute({ toolName: 'search' });
      const second = await messages(server, (all) => settledCalls(all) === 2, lastId);
      const seqs = [...eventsOf(first), ...eventsOf(second)].map(({ seq }) => seq);
      // The first event, of the layer, has the number of the one before it.
      expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => index));
      const whole = await messages(server, (all) => settledCalls(all) === 3);
      expect(eventsOf(whole).map(({ seq }) => seq)).toEqual(seqs);
      // An id of another process, however small: what it told is forgotten, and all that is kept is told.
      for (const strange of [
        '999999',
        '0-2',
        `${'0'.repeat(16)}-3`,
        lastId?.replace(/^./, (first) => (first === '0' ? '1' : '0')),
      ]) {
        const anew = await messages(server, (all) => settledCalls(all) === 3, strange);
        expect(anew.map(({ name }) => name).filter((name) => name === 'anew')).toHaveLength(1);
        expect(eventsOf(anew)).toHaveLength(seqs.length);
      }
      expect([...first, ...second, ...whole].some(({ name }) => name === 'anew')).toBe(false);
    } finally {
      await server.close();
    }
  });

  it('SEE-7 the stream ends with the layer, and with the server', async () => {
    const spillway = layer();
    const server = await serveInspector(spillway);
    await spillway.close();
    const all = await messages(server, () => false);
    expect(all.at(-1)?.name).toBe('end');
    await server.close();
    await expect(fetch(server.page)).rejects.toThrow('fetch failed');
  });

  it('SEE-7 a file is followed as it grows: what is torn waits for its end, what is no event is left out', async () => {
    const file = join(folder, 'grows.ndjson');
    const line = (seq: number, message = ''): string =>
      `${JSON.stringify({ seq, atMs: seq, ...CALL, callId: `c${seq}`, type: 'escalated', message, choices: [] })}\n`;
    writeFileSync(file, `${HEADER}\nnonsense\n${line(1, 'password=hunter2hunter2')}${line(2).slice(0, 20)}`);
    const server = await serveTraceFile(file);
    try {
      const first = await messages(server, (all) => eventsOf(all).length === 1);
      expect(first.map(({ data }) => data).join('')).not.toContain('hunter2');
      const rest = messages(server, (all) => eventsOf(all).length === 3);
      appendFileSync(file, `${line(2).slice(20)}${line(3)}`);
      expect(eventsOf(await rest).map(({ seq }) => seq)).toEqual([1, 2, 3]);
      const lastId = first.findLast(({ id }) => id !== '')?.id;
      const back = await messages(server, (all) => eventsOf(all).length === 2, lastId);
      expect(eventsOf(back).map(({ seq }) => seq)).toEqual([2, 3]);
    } finally {
      await server.close();
    }
    await expect(serveTraceFile(join(folder, 'none.ndjson'))).rejects.toThrow('ENOENT');
  });
});
