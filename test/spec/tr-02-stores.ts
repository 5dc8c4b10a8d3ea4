import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import {
  createSpillway,
  tool,
  type DedupeStore,
  type Spillway,
  type SpillwayOptions,
  type ToolCallEnvelope,
  type ToolContext,
  type ToolPolicy,
  type TraceEvent,
} from 'spillway';
import type { DedupeRecord } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { redisStore } from 'spillway/stores/redis';
import { sqliteStore } from 'spillway/stores/sqlite';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

/** A store, empty at first, as several processes see it. */
export interface Place {
  /** The view of one more process; of memory, which has no other, the same one. */
  open(): Promise<DedupeStore>;
}

export type PlaceOf = () => Promise<Place>;

/** Memory, a SQLite file and a real Redis, which is started for the file of tests that calls this. */
export function places(): ReadonlyArray<readonly [string, PlaceOf]> {
  let server: RedisServer | undefined;
  let used = 0;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());
  const closed = (store: DedupeStore): DedupeStore => {
    onTestFinished(async () => store.close?.());
    return store;
  };
  return [
    [
      'memory',
      async () => {
        const store = closed(memoryStore());
        return { open: async () => store };
      },
    ],
    [
      'sqlite',
      async () => {
        const folder = mkdtempSync(join(tmpdir(), 'spillway-dedupe-'));
        onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
        return { open: async () => closed(sqliteStore(join(folder, 'calls.db'))) };
      },
    ],
    [
      'redis',
      async () => {
        const prefix = `place${++used}:`;
        const open = async (): Promise<DedupeStore> => {
          if (server === undefined) throw new Error('the server has not been started');
          const [, connect] = CLIENTS[used % CLIENTS.length] ?? CLIENTS[0] ?? [];
          if (connect === undefined) throw new Error('there is no client library');
          const [main, second] = [await connect(at(server)), await connect(at(server))];
          onTestFinished(async () => {
            await main.close();
            await second.close();
          });
          return closed(redisStore(main.client, { prefix, subscriber: second.client }));
        };
        return { open };
      },
    ],
  ];
}

export type Execute = (input: unknown, context: ToolContext) => unknown;

/** A layer with one tool, `t`, that is tried once; and what it told. */
export interface Watched {
  readonly layer: Spillway;
  readonly events: TraceEvent[];
  /** The steps of the key's life that were told, in order. */
  readonly steps: () => string[];
  readonly call: (parts?: Asked) => Promise<Awaited<ReturnType<Spillway['execute']>>>;
}

export interface Asked {
  readonly key?: string;
  readonly params?: Record<string, unknown>;
  readonly mode?: ToolCallEnvelope['transport']['dedupeMode'];
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
  readonly namespace?: string;
  readonly toolName?: string;
  readonly signal?: AbortSignal;
}

let requests = 0;

export const asked = ({
  key = 'k',
  params = {},
  mode = 'enforced',
  session = 's',
  actor = 'ada',
  tenant,
  namespace = 'n',
  toolName = 't',
}: Asked = {}): ToolCallEnvelope => ({
  contractVersion: '1.1',
  requestId: `request-${++requests}`,
  toolName,
  toolNamespace: namespace,
  target: { sessionKey: session, actorId: actor, ...(tenant === undefined ? {} : { tenantId: tenant }) },
  payload: { version: '1.0', params, ...(key === '' ? {} : { idempotencyKey: key }) },
  transport: { dedupeMode: mode, retryBudget: { maxAttempts: 1, maxElapsedMs: 60_000 } },
  control: {},
  trace: {},
});

export function watched(
  store: DedupeStore,
  execute: Execute,
  policy: ToolPolicy = {},
  options: SpillwayOptions = {},
): Watched {
  const layer = createSpillway({ tools: [tool({ name: 't', policy, execute })], store, ...options });
  const events: TraceEvent[] = [];
  layer.trace$.subscribe((event) => events.push(event));
  return {
    layer,
    events,
    steps: () => events.flatMap((event) => (event.type === 'dedupe' ? [event.step] : [])),
    call: ({ signal, ...parts } = {}) => layer.execute(asked(parts), signal === undefined ? {} : { signal }),
  };
}

/** What the store holds of the tool `t`, or of another. */
export async function records(store: DedupeStore, toolName = 't'): Promise<DedupeRecord[]> {
  const found: DedupeRecord[] = [];
  for await (const record of store.byTool(toolName)) found.push(record);
  return found;
}

/** A promise that a test fulfils. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { opened: promise, open: resolve, fail: reject };
}
