// Was: a tool that only read when a call of it began, and did more by its next attempt, was called up to five times.
// Now: a further attempt is made where its server, asked anew, still says that it only reads, or the host says so.
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { createSpillway, tool, type Spillway, type SpillwayOptions, type ToolResultEnvelope } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { describe, expect, it, onTestFinished } from 'vitest';
import { McpToolList } from '../../src/providers/mcp/tool-list.ts';
import {
  mcpConnection,
  mcpProvider,
  type McpConnection,
  type McpProvider,
  type McpProviderOptions,
} from '../../src/providers/mcp.ts';

/** What a server does with its one tool, which cannot be reached at first, and says of it. */
interface Course {
  /** What it says of the tool in each list, the last one for ever. */
  readonly reads?: readonly boolean[];
  /** It lists no tool at all from the second list on. */
  readonly isGone?: boolean;
  /** It says that its tools are others: when it is called, or also whenever it is listed. */
  readonly tells?: 'called' | 'listed';
  /** It is another server after each call. */
  readonly restarts?: boolean;
  /** How long it takes to list its tools. */
  readonly listMs?: number;
  /** Its list cannot be had from the second one on. */
  readonly isUnlistable?: boolean;
  /** Which call is answered. Default: none. */
  readonly answersAt?: number;
}

const TOOL = 'look';
const UNREACHED = { content: [{ type: 'text', text: 'upstream connection reset by peer' }], isError: true };

class Acting {
  called = 0;
  listed = 0;
  readonly #course: Course;

  constructor(course: Course) {
    this.#course = course;
  }

  serve(): McpServer['server'] {
    const { reads = [true], isGone, tells, restarts, listMs, isUnlistable, answersAt } = this.#course;
    const capabilities = { tools: { listChanged: true } };
    const { server } = new McpServer({ name: 'acting', version: '0' }, { capabilities });
    server.setRequestHandler(ListToolsRequestSchema, async () => {
      const readOnlyHint = reads[Math.min(this.listed++, reads.length - 1)];
      if (listMs !== undefined) await sleep(listMs);
      if (tells === 'listed') await server.sendToolListChanged();
      if (isUnlistable === true && this.listed > 1) throw new Error('no list now');
      const listed = { name: TOOL, inputSchema: { type: 'object' as const }, annotations: { readOnlyHint } };
      return { tools: isGone === true && this.listed > 1 ? [] : [listed] };
    });
    server.setRequestHandler(CallToolRequestSchema, async () => {
      this.called++;
      if (tells !== undefined) await server.sendToolListChanged();
      if (restarts === true) await server.close();
      return this.called === answersAt ? { content: [{ type: 'text', text: 'fine' }] } : UNREACHED;
    });
    return server;
  }

  async client(isSecond = false): Promise<Client> {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const made = isSecond ? new Client2({ name: 'c', version: '0' }) : new Client({ name: 'c', version: '0' });
    const client = made as Client;
    await Promise.all([client.connect(near), this.serve().connect(far)]);
    return client;
  }

  async connect(isSecond: boolean): Promise<McpConnection> {
    return mcpConnection(await this.client(isSecond));
  }
}

const SOON = { maxAttempts: 5, initialDelayMs: 1, maxDelayMs: 10 };

interface Scene {
  readonly acting: Acting;
  readonly provider: McpProvider;
  readonly layerOf: (options?: SpillwayOptions) => Spillway;
}

const scene = async (course: Course, isSecond = false, options: Partial<McpProviderOptions> = {}): Promise<Scene> => {
  const acting = new Acting(course);
  const provider = await mcpProvider({ name: 'box', connect: () => acting.connect(isSecond), ...options });
  onTestFinished(() => provider.close());
  const layerOf = (more: SpillwayOptions = {}): Spillway => {
    const layer = createSpillway({ tools: [...provider.tools], defaults: { retry: SOON }, ...more });
    onTestFinished(() => layer.close());
    return layer;
  };
  return { acting, provider, layerOf };
};

const looked = (layer: Spillway): Promise<ToolResultEnvelope> => layer.execute({ toolName: `box.${TOOL}` });

describe.each([
  ['1', false],
  ['2', true],
])('with SDK %s', (_generation, isSecond) => {
  it.each<[string, Course]>([
    ['is listed as more once it is told', { reads: [true, false], tells: 'called' }],
    ['was listed as more in between', { reads: [true, false, true], tells: 'called' }],
    ['is not listed any more', { isGone: true, tells: 'called' }],
    ['is another server’s by then', { reads: [true, false], restarts: true }],
  ])('R-2.5 a tool that %s is called once, and may have taken effect', async (_what, course) => {
    const { acting, layerOf } = await scene(course, isSecond);
    expect(await looked(layerOf())).toMatchObject({
      status: 'error',
      error: {
        uncertain: true,
        modelText:
          'The tool was called, may have taken effect, and was not called again. Check first whether it took effect.',
      },
    });
    expect(acting.called).toBe(1);
  });

  it('R-2.5 one whose server says of itself that it changed whenever it is asked is tried again', async () => {
    const { acting, layerOf } = await scene({ tells: 'listed', answersAt: 3 }, isSecond);
    expect((await looked(layerOf())).status).toBe('success');
    expect(acting.called).toBe(3);
  });
});

it('R-2.5 a tool that was listed as more once stays it, whatever is listed later', () => {
  const list = new McpToolList('box', () => Promise.resolve());
  const effects = [true, false, true].map((readOnlyHint) => {
    list.update([{ name: TOOL, annotations: { readOnlyHint } }]);
    return list.tools.map(({ policy }) => policy?.effects);
  });
  expect(effects).toEqual([['read'], ['mutating'], ['mutating']]);
});

it('R-6.1 no alternative is called in the place of a tool that may have taken effect by now', async () => {
  const policy = { alternatives: ['other'] };
  const course = { reads: [true, false], tells: 'called' } as const;
  const { acting, provider, layerOf } = await scene(course, false, { tools: { [TOOL]: { policy } } });
  let paid = 0;
  const other = tool({ name: 'other', policy: { effects: 'mutating' }, execute: () => ++paid });
  expect((await looked(layerOf({ tools: [...provider.tools, other] }))).status).toBe('error');
  expect([acting.called, paid]).toEqual([1, 0]);
});

it('R-3.3 that a tool is not called again says nothing of its health', async () => {
  const { acting, layerOf } = await scene({ reads: [true, false], tells: 'called' });
  const layer = layerOf({ defaults: { retry: SOON, breaker: { failureThreshold: 3 } } });
  for (let call = 1; call <= 3; call++) await looked(layer);
  expect((await looked(layer)).status).toBe('circuit_open');
  expect(acting.called).toBe(3);
});

it('R-2.5 while its server does not list its tools, it is asked for them until the attempts are used up', async () => {
  const { acting, layerOf } = await scene({ tells: 'called', isUnlistable: true });
  const { error, status } = await looked(layerOf());
  expect([status, error?.uncertain, acting.called]).toEqual(['retry_exhausted', true, 1]);
  expect(error?.message).toBe('The server said that its tools changed, and does not list them');
});

describe('the host’s own word', () => {
  const course = { reads: [true, false], tells: 'called', answersAt: 3 } as const;

  it.each([
    ['reads', { effects: 'read' }],
    ['checks the key', { effects: 'mutating', enforcesKey: true }],
  ] as const)('R-2.5 goes before the server’s: a tool that %s is tried again', async (_what, policy) => {
    const { acting, provider, layerOf } = await scene(course);
    const tools = provider.tools.map((listed) => ({ ...listed, policy }));
    expect((await looked(layerOf({ tools }))).status).toBe('success');
    expect(acting.called).toBe(3);
  });

  it('R-2.5 also where the provider is given it, and its list cannot be had', async () => {
    const tools = { [TOOL]: { policy: { effects: 'read' } } } as const;
    const { acting, layerOf } = await scene({ ...course, isUnlistable: true }, false, { tools });
    expect((await looked(layerOf())).status).toBe('success');
    expect(acting.called).toBe(3);
  });
});

it('R-12.2 many that are tried again at once share one list', async () => {
  const { acting, layerOf } = await scene({ tells: 'called', listMs: 100 });
  const layer = layerOf({ defaults: { retry: { ...SOON, maxAttempts: 2 }, breaker: false } });
  await Promise.all(Array.from({ length: 50 }, () => looked(layer)));
  expect(acting.called).toBe(100);
  expect(acting.listed).toBeLessThan(20);
});

it.each([
  ['1', false],
  ['2', true],
])('R-2.5 a guarded client of SDK %s asks what it lists before it calls such a tool again', async (_name, isSecond) => {
  const acting = new Acting({ reads: [true, false] });
  const client = guardClient(await acting.client(isSecond), { defaults: { retry: SOON } });
  onTestFinished(() => client.close());
  await client.listTools();
  expect(await client.callTool({ name: TOOL, arguments: {} })).toMatchObject({ isError: true });
  expect(acting.called).toBe(1);
});
