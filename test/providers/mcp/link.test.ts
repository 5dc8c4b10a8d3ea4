import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import {
  mcpProvider,
  type McpConnection,
  type McpProvider,
  type McpProviderOptions,
} from '../../../src/providers/mcp.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { handClock } from '../../support.ts';
import { context, failure, run } from '../support.ts';

const open: McpProvider[] = [];
const provide = async (
  connect: McpProviderOptions['connect'],
  options: Partial<McpProviderOptions> = {},
): Promise<McpProvider> => {
  const provider = await mcpProvider({ name: 'box', connect, ...options });
  open.push(provider);
  return provider;
};
afterEach(() => Promise.all(open.splice(0).map((provider) => provider.close())));

/** A client that is scripted, and a connection that a test can end. */
const scripted = (answer: () => Promise<unknown>): McpConnection & { lose(reason?: unknown): void; closes: number } => {
  let lose: (reason?: unknown) => void = () => undefined;
  const closed = new Promise<unknown>((resolve) => {
    lose = resolve;
  });
  return {
    client: {
      listTools: () => Promise.resolve({ tools: [{ name: 'a', annotations: { readOnlyHint: true } }] }),
      callTool: answer,
    },
    closed,
    lose,
    closes: 0,
    close() {
      this.closes++;
      lose();
      return Promise.resolve();
    },
  };
};
const said = (text: string): unknown => ({ content: [{ type: 'text', text }] });
const forever = (): Promise<unknown> => new Promise(() => undefined);

describe('a connection that is lost', () => {
  it('every call in flight fails at once: transport_error, uncertain, with the reason', async () => {
    const connection = scripted(forever);
    const provider = await provide(() => Promise.resolve(connection));
    const calls = [failure(run(provider, 'box.a', {})), failure(run(provider, 'box.a', {}))];
    await sleep(1);
    connection.lose(new Error('the wire was cut'));
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject({
        kind: 'transport_error',
        executed: true,
        uncertain: true,
        message: 'The connection to the MCP server box was lost: the wire was cut',
      });
    }
    expect(connection.closes).toBe(1);
  });

  it('restarts with the backoff 0, 1, 2, 5, 10, 30, 60, 60 s; a call in between is refused, not executed, with the time left', async () => {
    const clock = handClock();
    const { runtime } = clock;
    let connects = 0;
    let reachable = true;
    const connection = scripted(forever);
    const connect = (): Promise<McpConnection> => (
      connects++,
      reachable ? Promise.resolve(connection) : Promise.reject(new Error('no route'))
    );
    const provider = await provide(connect, { runtime });
    reachable = false;
    connection.lose();
    await sleep(1);
    const waits: Array<number | undefined> = [];
    for (let round = 0; round < 8; round++) {
      const failed = await failure(run(provider, 'box.a', {}));
      expect(failed).toMatchObject({ kind: 'transport_error', executed: false, retryAfterMs: undefined });
      const refused = await failure(run(provider, 'box.a', {}));
      expect(refused).toMatchObject({ kind: 'transport_error', executed: false });
      waits.push(refused.retryAfterMs);
      clock.pass((refused.retryAfterMs ?? 0) - 1);
      expect((await failure(run(provider, 'box.a', {}))).retryAfterMs).toBe(1);
      clock.pass(1);
    }
    expect(waits).toEqual([1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 60_000, 60_000]);
    expect(connects).toBe(9);
  });

  it('a call that comes back makes its failures forgotten', async () => {
    const { runtime } = handClock();
    const connections: Array<ReturnType<typeof scripted>> = [];
    const provider = await provide(
      () => {
        const connection = scripted(() => Promise.resolve(said('x')));
        connections.push(connection);
        return Promise.resolve(connection);
      },
      { runtime },
    );
    for (let round = 0; round < 5; round++) {
      expect(await run(provider, 'box.a', {})).toBe('x');
      connections.at(-1)?.lose();
      await sleep(1);
    }
    expect(connections).toHaveLength(5);
  });

  it('calls that come while it connects share one attempt; each leaves at its own signal', async () => {
    let connects = 0;
    let arrive: (connection: McpConnection) => void = () => undefined;
    const first = scripted(forever);
    const provider = await provide(() =>
      ++connects === 1 ? Promise.resolve(first) : new Promise((resolve) => (arrive = resolve)),
    );
    first.lose();
    await sleep(1);
    const controller = new AbortController();
    const leaving = failure(run(provider, 'box.a', {}, context(controller.signal)));
    const staying = run(provider, 'box.a', {});
    await sleep(1);
    controller.abort();
    expect(await leaving).toMatchObject({ kind: 'canceled', executed: false, uncertain: false });
    arrive(scripted(() => Promise.resolve(said('x'))));
    expect(await staying).toBe('x');
    expect(connects).toBe(2);
  });

  it('the retries of a layer get over it', async () => {
    let connects = 0;
    const provider = await provide(() => {
      const number = ++connects;
      const connection = scripted(async () => {
        if (number > 1) return said('recovered');
        await sleep(5);
        connection.lose();
        return forever();
      });
      return Promise.resolve(connection);
    });
    const spillway = createSpillway({ providers: [provider], defaults: { retry: { initialDelayMs: 1 } } });
    expect(await spillway.execute({ toolName: 'box.a', input: {} })).toMatchObject({
      status: 'success',
      attempts: 2,
      output: { content: 'recovered' },
    });
    await spillway.close();
  });
});

describe('closing', () => {
  it('while it connects: the signal is aborted, and a connection that comes late is closed', async () => {
    let arrive: (connection: McpConnection) => void = () => undefined;
    let signal: AbortSignal | undefined;
    const [first, late] = [scripted(forever), scripted(forever)];
    const provider = await provide((given) =>
      signal === undefined
        ? ((signal = given), Promise.resolve(first))
        : ((signal = given), new Promise((resolve) => (arrive = resolve))),
    );
    first.lose();
    await sleep(1);
    const call = failure(run(provider, 'box.a', {}));
    await sleep(1);
    const closed = provider.close();
    expect(await call).toMatchObject({ kind: 'transport_error', executed: false, classification: 'permanent' });
    expect(signal?.aborted).toBe(true);
    arrive(late);
    await closed;
    expect(late.closes).toBe(1);
  });

  it('never connects again, and closes the connection once', async () => {
    let connects = 0;
    const connection = scripted(forever);
    const provider = await provide(() => (connects++, Promise.resolve(connection)));
    await provider.close();
    await provider.close();
    expect(await failure(run(provider, 'box.a', {}))).toMatchObject({ kind: 'transport_error', executed: false });
    expect([connects, connection.closes]).toEqual([1, 1]);
  });
});

describe('a connection that does not come', () => {
  it('is given up after connectTimeoutMs; one that comes later is closed', async () => {
    const clock = handClock();
    const { runtime } = clock;
    const late = scripted(forever);
    let arrive: (connection: McpConnection) => void = () => undefined;
    const work = failure(
      mcpProvider({
        name: 'late',
        connect: () => new Promise((resolve) => (arrive = resolve)),
        connectTimeoutMs: 500,
        runtime,
      }),
    );
    clock.pass(500);
    arrive(late);
    expect((await work).message).toBe(
      'The MCP server late could not be connected: No answer to initialize after 500ms',
    );
    expect(late.closes).toBe(1);
  });
});
