import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../../simulation/dice.ts';

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
export const ACCOUNTS = 10;
export const OPENING = 1_000_000;

const HANDLERS: Readonly<Record<string, 'transfer' | 'verify'>> = { '/transfer': 'transfer', '/verify': 'verify' };

const bodyOf = async (request: IncomingMessage): Promise<Transfer> => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as Transfer;
};

/**
 * A bank over HTTP. It checks no key: what is sent twice is booked twice. It has a place to look whether a key was
 * booked, and refuses a request whose fence is older than one that it has seen for the key.
 */
export class Bank {
  readonly accounts: number[] = Array.from({ length: ACCOUNTS }, () => OPENING);
  /** How often each key was booked. */
  readonly booked: Map<string, number> = new Map<string, number>();
  readonly troubles: Map<Trouble, number> = new Map<Trouble, number>();
  /** Requests refused for their fence. */
  stale: number = 0;
  readonly #fences = new Map<string, number>();
  readonly #dice: Dice;
  readonly #rate: number;
  readonly #server: Server;

  /** @param rate the share of transfers that something goes wrong with */
  constructor(seed: number, rate: number) {
    this.#dice = new Dice(seed);
    this.#rate = rate;
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

  get total(): number {
    return this.accounts.reduce((sum, account) => sum + account, 0);
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

  #book(key: string, { from, to, amount }: Transfer): void {
    this.accounts[from] = (this.accounts[from] ?? 0) - amount;
    this.accounts[to] = (this.accounts[to] ?? 0) + amount;
    this.booked.set(key, (this.booked.get(key) ?? 0) + 1);
  }

  #trouble(): Trouble {
    if (!this.#dice.chance(this.#rate)) return 'none';
    return TROUBLES[this.#dice.int(0, TROUBLES.length - 1)] ?? 'none';
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const say = (status: number, body: unknown): void => void response.writeHead(status).end(JSON.stringify(body));
    const key = String(request.headers['x-key']);
    const fence = Number(request.headers['x-fence']);
    const asked = HANDLERS[request.url ?? ''];
    if (asked === undefined) return say(404, {});
    const transfer = asked === 'transfer' ? await bodyOf(request) : undefined;
    if (!this.#admits(key, fence)) return say(409, { error: 'a newer request of this key was seen' });
    if (transfer === undefined) {
      // It looks; and by the fence it has just seen nothing older can be booked any more.
      if (this.#dice.chance(this.#rate / 4)) return void response.destroy();
      return say(200, { booked: this.booked.has(key), receipt: `r-${key}` });
    }
    const trouble = this.#trouble();
    this.troubles.set(trouble, (this.troubles.get(trouble) ?? 0) + 1);
    if (transfer.amount > OPENING) return say(422, { error: 'too much' });
    if (trouble === 'busy') return say(503, { error: 'busy' });
    if (trouble === 'lost_before') return void response.destroy();
    if (trouble === 'slow') await sleep(30 + this.#dice.int(0, 60 - 1));
    if (trouble === 'late') {
      // Nobody waits any more when it is booked.
      await new Promise((resolve) => response.once('close', resolve));
      await sleep(this.#dice.int(0, LATE_MAX_MS - 1));
      if (fence < (this.#fences.get(key) ?? 0)) return void this.stale++;
      return this.#book(key, transfer);
    }
    this.#book(key, transfer);
    if (trouble === 'lost_after') return void response.destroy();
    if (trouble === 'broken_after') return say(500, { error: 'it broke off' });
    return say(200, { receipt: `r-${key}` });
  }
}
