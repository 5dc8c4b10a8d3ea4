import { connect } from 'node:net';
import { createSpillway, tool, type DedupeStore, type Spillway, type SpillwayOptions } from 'spillway';
import { adminHandler, type AdminHandler, type AdminOptions, type AdminRefusal } from 'spillway/gateway/admin';
import { memoryStore } from 'spillway/stores/memory';

export const TOKEN = 'a-token-of-our-own-0123456789';
export const PATH = '/debug/tool-reliability';

/** A layer with two tools of one server, one of its own, and one without a breaker. */
export function layerOf(options: SpillwayOptions = {}): Spillway {
  const named = (name: string): ReturnType<typeof tool> =>
    tool({ name, policy: { retry: { maxAttempts: 1 } }, execute: () => `secret result of ${name}` });
  return createSpillway({
    tools: [
      named('search'),
      { ...named('read'), dependency: 'files' },
      { ...named('write'), dependency: 'files' },
      { ...named('bare'), policy: { breaker: false } },
    ],
    breakerKey: ({ dependency, name }) => dependency ?? name,
    ...options,
  });
}

export interface Asked {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
}

/** A page, what it refused, and short ways to ask it. */
export interface Page {
  readonly spillway: Spillway;
  readonly store: DedupeStore;
  readonly admin: AdminHandler;
  readonly refusals: AdminRefusal[];
  ask(init?: RequestInit, path?: string): Promise<Asked>;
  get(): Promise<Asked>;
  order(body: unknown): Promise<Asked>;
}

export const withToken = { authorization: `Bearer ${TOKEN}` };

export async function read(response: Response): Promise<Asked> {
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>,
  };
}

export function page(options: AdminOptions = {}, layer: SpillwayOptions = {}): Page {
  const store = memoryStore();
  const spillway = layerOf({ store, ...layer });
  const refusals: AdminRefusal[] = [];
  const admin = adminHandler(spillway, { token: TOKEN, onRefused: (refusal) => refusals.push(refusal), ...options });
  const ask: Page['ask'] = async (init = {}, path = PATH) =>
    read(await admin.fetch(new Request(`http://localhost${path}`, init)));
  return {
    spillway,
    store,
    admin,
    refusals,
    ask,
    get: () => ask({ headers: withToken }),
    order: (body) =>
      ask({
        method: 'POST',
        headers: { ...withToken, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  };
}

/** Sends bytes as they are; gives what came until the server ended the connection, or until `enough` says so. */
export function raw(url: string, bytes: string, enough: (received: string) => boolean = () => false): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let received = '';
    const socket = connect({ host: hostname, port: Number(port) });
    const end = (): void => {
      socket.destroy();
      resolve(received);
    };
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
      if (enough(received)) end();
    });
    socket.on('error', end).on('close', end);
    socket.write(bytes, 'latin1');
  });
}

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
