import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Dice } from '../../simulation/dice.ts';

/** A transfer as it is sent. */
export interface Sent extends Transfer {
  /** When, by the machine's wall clock. */
  readonly sentAtMs: number;
}

export interface Transfer {
  readonly from: number;
  readonly to: number;
  readonly amount: number;
}

/** What it does with a transfer beside making it. */
export type Trouble = 'none' | 'slow' | 'busy' | 'lost_before' | 'lost_after' | 'broken_after' | 'late';

const TROUBLES: readonly Trouble[] = ['slow', 'busy', 'lost_before', 'lost_after', 'broken_after', 'late'];
/** A late transfer is made this long after its caller has gone, at most: within the `settleMs` of the callers. */
export const LATE_MAX_MS = 200;
/**
 * How long after it was sent a transfer can still be booked, by what it is reached with. A server for each request of
 * MCP is slow: on a busy machine a transfer lies there for a while after its caller has gone.
 */
export const SETTLE_MS = { http: 600, mcp: 3_000 } as const;
export const ACCOUNTS = 10;
export const OPENING = 1_000_000;

/** What it says of a transfer; `gone`: nothing, nobody would hear it. */
type Said = 'booked' | 'stale' | 'refused' | 'busy' | 'broken' | 'gone';
const STATUSES = { booked: 200, stale: 409, refused: 422, busy: 503, broken: 500 } as const;

/** What a model reads of it. */
const WORDS = {
  stale: 'A newer request for this transfer was seen',
  refused: 'Insufficient funds',
  busy: 'The bank is busy, try again later',
  broken: 'Something went wrong',
} as const;

const TRANSFER = {
  reference: z.string(),
  from: z.number(),
  to: z.number(),
  amount: z.number(),
  sentAtMs: z.optional(z.number()),
};

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text);
};

/**
 * A bank over HTTP and over MCP. It checks no key: what is sent twice is booked twice. It has a place to look
 * whether a key was booked, and refuses a request whose fence is older than one that it has seen for the key.
 */
export class Bank {
  readonly accounts: number[] = Array.from({ length: ACCOUNTS }, () => OPENING);
  /** What was booked under each key. */
  readonly booked: Map<string, Transfer[]> = new Map<string, Transfer[]>();
  readonly troubles: Map<Trouble, number> = new Map<Trouble, number>();
  /** Requests refused for their fence. */
  stale: number = 0;
  /** Requests that were too old. */
  expired: number = 0;
  #working = 0;
  readonly #fences = new Map<string, number>();
  readonly #dice: Dice;
  readonly #rate: number;
  readonly #withinMs: number;
  readonly #server: Server;

  /**
   * @param rate the share of transfers that something goes wrong with
   * @param withinMs books nothing that was sent longer ago: on a machine that stands still a request may lie there for
   * longer than any caller can wait
   */
  constructor(seed: number, rate: number, withinMs: number) {
    this.#dice = new Dice(seed);
    this.#rate = rate;
    this.#withinMs = withinMs;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Once nothing that it was asked for is still to be booked. */
  async quiet(): Promise<void> {
    while (this.#working > 0) await sleep(LATE_MAX_MS);
  }

  /** Whether a request is newer than all that were seen of its key. */
  #admits(key: string, fence: number): boolean {
    const last = this.#fences.get(key) ?? 0;
    if (fence < last) {
      this.stale++;
      return false;
    }
    this.#fences.set(key, fence);
    return true;
  }

  /** Books it, where that was not asked for too long ago; gives whether it has. */
  #book(key: string, { from, to, amount, sentAtMs }: Sent): boolean {
    if (Date.now() - sentAtMs > this.#withinMs) {
      this.expired++;
      return false;
    }
    this.accounts[from] = (this.accounts[from] ?? 0) - amount;
    this.accounts[to] = (this.accounts[to] ?? 0) + amount;
    this.booked.set(key, [...(this.booked.get(key) ?? []), { from, to, amount }]);
    return true;
  }

  #trouble(): Trouble {
    if (!this.#dice.chance(this.#rate)) return 'none';
    return TROUBLES[this.#dice.int(0, TROUBLES.length - 1)] ?? 'none';
  }

  /** Whether a key was booked; `undefined` where nobody hears it. */
  #look(key: string, response: ServerResponse): boolean | undefined {
    if (!this.#dice.chance(this.#rate / 4)) return this.booked.has(key);
    response.destroy();
    return undefined;
  }

  /** What it says of a transfer; `gone` where nobody hears it. */
  async #transfer(key: string, fence: number, transfer: Sent, response: ServerResponse): Promise<Said> {
    this.#working++;
    try {
      return await this.#made(key, fence, transfer, response);
    } finally {
      this.#working--;
    }
  }

  async #made(key: string, fence: number, transfer: Sent, response: ServerResponse): Promise<Said> {
    if (!this.#admits(key, fence)) return 'stale';
    const trouble = this.#trouble();
    this.troubles.set(trouble, (this.troubles.get(trouble) ?? 0) + 1);
    if (transfer.amount > OPENING) return 'refused';
    if (trouble === 'busy') return 'busy';
    if (trouble === 'lost_before') return this.#hangUp(response);
    if (trouble === 'slow') await sleep(30 + this.#dice.int(0, 60 - 1));
    if (trouble === 'late') {
      // Nobody waits any more when it is booked.
      await new Promise((resolve) => response.once('close', resolve));
      await sleep(this.#dice.int(0, LATE_MAX_MS - 1));
      if (fence < (this.#fences.get(key) ?? 0)) this.stale++;
      else this.#book(key, transfer);
      return 'gone';
    }
    if (!this.#book(key, transfer)) return this.#hangUp(response);
    if (trouble === 'lost_after') return this.#hangUp(response);
    return trouble === 'broken_after' ? 'broken' : 'booked';
  }

  #hangUp(response: ServerResponse): 'gone' {
    response.destroy();
    return 'gone';
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const say = (status: number, body: unknown): void => void response.writeHead(status).end(JSON.stringify(body));
    if (request.url === '/mcp') return this.#overMcp(request, response);
    const key = String(request.headers['x-key']);
    const fence = Number(request.headers['x-fence']);
    if (request.url === '/transfer') {
      const said = await this.#transfer(key, fence, (await bodyOf(request)) as Sent, response);
      if (said !== 'gone') say(STATUSES[said], said === 'booked' ? { receipt: `r-${key}` } : { error: said });
      return;
    }
    if (request.url !== '/verify') return say(404, {});
    // By the fence it has just seen nothing older can be booked any more.
    if (!this.#admits(key, fence)) return say(STATUSES.stale, { error: 'stale' });
    const booked = this.#look(key, response);
    if (booked !== undefined) say(STATUSES.booked, { booked, receipt: `r-${key}` });
  }

  /** Each request has a server of its own, which tells its troubles by that request's connection. */
  async #overMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const server = new McpServer({ name: 'bank', version: '0' });
    const text = (said: string): { type: 'text'; text: string } => ({ type: 'text', text: said });
    server.registerTool(
      'transfer',
      { inputSchema: TRANSFER },
      async ({ reference, sentAtMs = 0, ...transfer }, { _meta: meta }) => {
        const sent = { ...transfer, sentAtMs };
        const said = await this.#transfer(reference, Number(meta?.['spillway/fence']), sent, response);
        if (said === 'gone') return new Promise(() => undefined);
        return said === 'booked'
          ? { content: [text(`r-${reference}`)] }
          : { content: [text(WORDS[said])], isError: true };
      },
    );
    server.registerTool(
      'list_transfers',
      { inputSchema: { reference: z.string() }, annotations: { readOnlyHint: true } },
      async ({ reference }) => {
        const booked = this.#look(reference, response);
        if (booked === undefined) return new Promise(() => undefined);
        const transfers = booked ? [{ reference, receipt: `r-${reference}` }] : [];
        return { content: [text(JSON.stringify({ transfers }))] };
      },
    );
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.once('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response, await bodyOf(request));
  }
}
