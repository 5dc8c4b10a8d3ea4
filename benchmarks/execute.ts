import {
  IdempotencyConfig,
  IdempotencyItemAlreadyExistsError,
  makeIdempotent,
} from '@aws-lambda-powertools/idempotency';
import { BasePersistenceLayer, type IdempotencyRecord } from '@aws-lambda-powertools/idempotency/persistence';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { createSpillway, tool } from '../src/index.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { added } from './guard.ts';
import { sideBySide, type Question } from './measure.ts';

const CALLS = 2_000;
const ROUNDS = 15;

/** Powertools over a Map, as its own tests have it. */
class MapLayer extends BasePersistenceLayer {
  readonly #records = new Map<string, IdempotencyRecord>();

  protected async _putRecord(record: IdempotencyRecord): Promise<void> {
    const held = this.#records.get(record.idempotencyKey);
    if (held !== undefined && !held.isExpired())
      throw new IdempotencyItemAlreadyExistsError(`${record.idempotencyKey} is held`, held);
    this.#records.set(record.idempotencyKey, record);
  }

  protected async _getRecord(key: string): Promise<IdempotencyRecord> {
    const record = this.#records.get(key);
    if (record === undefined) throw new Error(`nothing under ${key}`);
    return record;
  }

  protected async _updateRecord(record: IdempotencyRecord): Promise<void> {
    this.#records.set(record.idempotencyKey, record);
  }

  protected async _deleteRecord({ idempotencyKey }: IdempotencyRecord): Promise<void> {
    this.#records.delete(idempotencyKey);
  }
}

/** A client and a server of the MCP SDK in this process. */
const connectMcp = async (): Promise<{
  readonly call: (n: number) => Promise<number>;
  readonly close: () => Promise<void>;
}> => {
  const server = new McpServer({ name: 'bench', version: '0' });
  server.registerTool('echo', { inputSchema: { n: z.number() } }, async ({ n }) => ({
    content: [{ type: 'text', text: String(n) }],
  }));
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await server.connect(theirs);
  const client = new Client({ name: 'bench', version: '0' });
  await client.connect(ours);
  return {
    call: async (n) => {
      const { content } = (await client.callTool({ name: 'echo', arguments: { n } })) as {
        readonly content: ReadonlyArray<{ readonly text: string }>;
      };
      return Number(content[0]?.text);
    },
    close: () => client.close(),
  };
};

/** A payload of some 200 bytes, another for each `n`. */
const payloadOf = (n: number): { n: number; to: string; body: string; labels: { team: string; year: number } } => ({
  n,
  to: 'ada@example.com',
  body: 'Please find the numbers of the third quarter attached, and tell us by Friday what you think.',
  labels: { team: 'finance', year: 2026 },
});

/** What one call of `execute` costs, by itself and when it deduplicates. */
export async function benchmarkExecute(): Promise<Question> {
  const input = z.object({ n: z.number() });
  const plain = createSpillway({ tools: [tool({ name: 'echo', input, execute: async ({ n }) => n })] });
  let ran = 0;
  const run = async ({ n }: { n: number }): Promise<number> => {
    ran++;
    return n;
  };
  const full = z.object({
    n: z.number(),
    to: z.string(),
    body: z.string(),
    labels: z.object({ team: z.string(), year: z.number() }),
  });
  const deduping = createSpillway({ tools: [tool({ name: 'echo', input: full, execute: run })], store: memoryStore() });
  const config = new IdempotencyConfig({});
  // As in Lambda: it writes a warning at each call otherwise.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 300_000 } as Parameters<
    typeof config.registerLambdaContext
  >[0]);
  const powertools = makeIdempotent(run, { persistenceStore: new MapLayer(), config });
  const mcp = await connectMcp();
  let round = 0;
  const deduped = async (n: number, key: string): Promise<unknown> => {
    const { output, error } = await deduping.execute({
      toolName: 'echo',
      input: payloadOf(n),
      idempotencyKey: key,
      session: 'bench',
    });
    if (error !== undefined) throw new Error(error.message);
    return output?.content;
  };
  const fresh = (call: (n: number) => Promise<unknown>) => async (): Promise<void> => {
    round++;
    const before = ran;
    await added(CALLS, call)();
    if (ran - before !== CALLS) throw new Error('a new key did not run');
  };
  const replayed = (call: (n: number) => Promise<unknown>) => async (): Promise<void> => {
    await call(1);
    const before = ran;
    for (let n = 0; n < CALLS; n++) await call(1);
    if (ran !== before) throw new Error('a known key ran again');
  };
  const names = {
    plain: 'execute: validated, breaker, timeout, retry armed',
    deduped: 'execute, a new key each in the memory store',
    replayed: 'execute, replayed from the memory store',
    powertools: 'Powertools idempotency over a Map, a new payload each',
    powertoolsReplayed: 'Powertools idempotency over a Map, replayed',
    mcp: 'MCP round trip in memory',
  } as const;
  const { figures, us, ratio } = await sideBySide(
    {
      [names.plain]: added(
        CALLS,
        async (n) => (await plain.execute({ toolName: 'echo', input: { n } })).output?.content,
      ),
      [names.deduped]: fresh((n) => deduped(n, `${round}-${n}`)),
      [names.powertools]: fresh(async (n) => {
        const { n: given, ...rest } = payloadOf(n);
        return powertools({ n: given, ...rest, round } as never);
      }),
      [names.replayed]: replayed((n) => deduped(n, 'the same')),
      [names.powertoolsReplayed]: replayed((n) => powertools(payloadOf(n))),
      [names.mcp]: added(CALLS, mcp.call),
    },
    CALLS,
    ROUNDS,
  );
  await mcp.close();
  await Promise.all([plain.close(), deduping.close()]);
  return {
    question: 'What does a call through the whole layer cost?',
    figures,
    ratios: { 'replayed: execute / Powertools': ratio(names.replayed, names.powertoolsReplayed) },
    targets: [
      { name: 'execute', value: us(names.plain), limit: 7, unit: 'us' },
      { name: 'execute, deduping in memory', value: us(names.deduped), limit: 20, unit: 'us' },
      {
        name: 'execute deduping / Powertools idempotency',
        value: ratio(names.deduped, names.powertools),
        limit: 2.2,
        unit: 'x',
      },
      { name: 'execute / an in-memory MCP round trip', value: ratio(names.plain, names.mcp), limit: 0.1, unit: 'x' },
    ],
  };
}
