import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { createSpillway, type ToolEvent } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { describe, expect, it } from 'vitest';
import { BEHAVIOUR, CANARY, nothingSeen, type Seen } from './frameworks/kit.ts';
import { connected, connected2 } from './frameworks/mcp.ts';

interface AnyClient {
  listTools(): Promise<{ readonly tools: readonly object[] }>;
  close(): Promise<void>;
  call(name: string, input?: Record<string, unknown>, options?: object): Promise<unknown>;
}
const GENERATIONS: ReadonlyArray<
  readonly [string, (seen: Seen, options?: Parameters<typeof guardClient>[1]) => Promise<AnyClient>]
> = [
  [
    '1.x',
    async (seen, options) => {
      const client = guardClient(await connected(seen), options);
      return {
        listTools: () => client.listTools(),
        close: () => client.close(),
        call: (name, input = {}, more) => client.callTool({ name, arguments: input }, undefined, more),
      };
    },
  ],
  [
    '2.x',
    async (seen, options) => {
      const client = guardClient(await connected2(seen), options);
      return {
        listTools: () => client.listTools(),
        close: () => client.close(),
        call: (name, input = {}, more) => client.callTool({ name, arguments: input }, more),
      };
    },
  ],
];
const once = { defaults: { retry: { maxAttempts: 1 } } };
const failure = (text: string): object => ({ isError: true, content: [{ type: 'text', text }] });

describe.each(GENERATIONS)('guardClient with the SDK %s', (_generation, connect) => {
  it('R-12.2 a result is the server’s own, and other methods are the client’s', async () => {
    const client = await connect(nothingSeen());
    expect(await client.call('good')).toMatchObject({ content: [{ type: 'text', text: 'fine' }] });
    expect((await client.listTools()).tools.length).toBe(Object.keys(BEHAVIOUR).length);
  });

  it('R-12.4 a failed tool is a result with `isError` and nothing of what it threw', async () => {
    const client = await connect(nothingSeen(), once);
    expect(await client.call('bad')).toEqual(
      failure(
        'The tool ran and failed. It may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
      ),
    );
    expect(JSON.stringify(await client.call('worded'))).not.toContain(CANARY);
  });

  it('R-12.4 what does not fit is named, and an unknown tool is said to be none; neither ran', async () => {
    const seen = nothingSeen();
    const client = await connect(seen, once);
    expect(JSON.stringify(await client.call('strict', { n: 'one' }))).toContain(
      'The input is malformed: n: must be number',
    );
    expect(JSON.stringify(await client.call('nope'))).toContain('No tool of this name exists.');
    expect(seen.ran).toEqual([]);
  });

  it('R-4.1 R-4.2 the policy’s timeout gives a result, the caller’s abort throws; the server hears of both', async () => {
    const seen = nothingSeen();
    const client = await connect(seen, { defaults: { timeoutMs: 100 } });
    expect(await client.call('slow')).toEqual(
      failure(
        'The tool did not answer in time; it may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
      ),
    );
    await expect.poll(() => seen.signals.map(({ aborted }) => aborted)).toEqual([true]);
    const patient = await connect(seen, { defaults: { timeoutMs: 60_000 } });
    const controller = new AbortController();
    const canceled = patient.call('slow', {}, { signal: controller.signal }).catch((error: unknown) => error);
    await expect.poll(() => seen.signals.length).toBe(2);
    controller.abort();
    expect(await canceled).toMatchObject({ name: 'ToolFailure', kind: 'canceled' });
    await expect.poll(() => seen.signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });

  it('R-4.1 a timeout of the call’s own bounds each attempt', async () => {
    const client = await connect(nothingSeen(), once);
    expect(await client.call('slow', {}, { timeout: 50 })).toEqual(
      failure(
        'The tool did not answer in time; it may have taken effect. Check first whether it took effect. Only if it did not: you can try again.',
      ),
    );
  });

  it('R-3.8 a connection that is lost opens the breaker, and nothing ran', async () => {
    const client = await connect(nothingSeen(), {
      defaults: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } },
    });
    await client.close();
    expect(await client.call('good')).toEqual(
      failure(
        expect.stringMatching(
          /^The connection to the tool failed\. The tool did not run\. Try again in \d+ s, not before\.$/,
        ) as string,
      ),
    );
    expect(await client.call('good')).toEqual(
      failure(
        expect.stringMatching(
          /^The tool has failed repeatedly and is resting; it was not called\. Try again in \d+ s, not before\.$/,
        ) as string,
      ),
    );
  });
});

describe('guardClient', () => {
  it.each([
    ['once its server lists it as more', {}, 1],
    ['unless the host says that it only reads', { policies: { look: { effects: 'read' } } }, 3],
  ] as const)('R-2.5 a tool that only read is not called again %s', async (_case, options, expected) => {
    let acted = 0;
    const tools = [{ name: 'look', inputSchema: {}, annotations: { readOnlyHint: true } }];
    const failed = { isError: true, content: [{ type: 'text', text: 'upstream connection reset by peer' }] };
    const client = guardClient(
      {
        listTools: () => Promise.resolve({ tools }),
        callTool: async (_params: { name: string }): Promise<unknown> => {
          acted++;
          tools[0] = { name: 'look', inputSchema: {}, annotations: { readOnlyHint: false } };
          await client.listTools();
          return failed;
        },
      },
      { defaults: { retry: { maxAttempts: 3, initialDelayMs: 1, maxDelayMs: 1 } }, ...options },
    );
    await client.listTools();
    const result = await client.callTool({ name: 'look' });
    expect(JSON.stringify(result)).toContain('may have taken effect');
    expect(acted).toBe(expected);
  });

  it('R-12.2 it is a client to whoever looks: class, private fields, members set, methods that stay the same', async () => {
    class Fielded {
      readonly #connected = 'yes';
      note = '';
      get connected(): string {
        return this.#connected;
      }
      isConnected(): string {
        return this.#connected;
      }
      callTool(params: { name: string }): Promise<unknown> {
        return Promise.resolve([params, this.#connected]);
      }
    }
    const own = Object.freeze(new Fielded());
    const client = guardClient(own);
    expect(client).toBeInstanceOf(Fielded);
    expect([client.connected, client.isConnected(), 'callTool' in client, 'other' in client]).toEqual([
      'yes',
      'yes',
      true,
      false,
    ]);
    expect(client.isConnected).toBe(client.isConnected);
    expect(client.constructor).toBe(Fielded);
    expect(await client.callTool({ name: 't' })).toEqual([{ name: 't' }, 'yes']);
    const thawed = new Fielded();
    Object.assign(guardClient(thawed), { note: 'set' });
    expect(thawed.note).toBe('set');
  });

  it('R-4.3 progress reaches the caller and the layer', async () => {
    const client = {
      callTool: (_params: object, _schema: unknown, { onprogress }: { onprogress: (report: object) => void }) => {
        onprogress({ progress: 1, total: 2 });
        return Promise.resolve({ content: [] });
      },
    };
    const spillway = createSpillway();
    const events: unknown[] = [];
    spillway.trace$.subscribe(
      (event) => (event as ToolEvent).type === 'progress' && events.push((event as { report?: unknown }).report),
    );
    const reports: unknown[] = [];
    await guardClient(client, { spillway }).callTool({ name: 't' }, undefined, {
      onprogress: (report) => reports.push(report),
    });
    expect([events, reports]).toEqual([[{ progress: 1, total: 2 }], [{ progress: 1, total: 2 }]]);
  });

  it('R-2.9 what is no client is refused', () => {
    expect(() => guardClient({})).toThrow(/an MCP client with a callTool method, not one whose callTool is undefined/);
    expect(() => guardClient(new Client({ name: 'test', version: '0' }), { timeoutMs: 5 } as never)).toThrow(
      /has no option "timeoutMs"/,
    );
  });
});
