import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../../simulation/dice.ts';
import { ACCOUNTS, Bank, OPENING } from './bank.ts';
import type { Order, Receipt, Task } from './worker.ts';

export interface BankSoak {
  readonly transfers: number;
  readonly seed: number;
  /** A folder of its own. */
  readonly folder: string;
  /** Default: HTTP. */
  readonly over?: Task['over'];
  /** A client library of Redis, with the socket of a server, which it has to itself. Default: SQLite in the folder. */
  readonly redis?: { readonly kind: Exclude<Task['kind'], 'sqlite'>; readonly path: string };
  readonly workers?: number;
  readonly atOnce?: number;
  /** Milliseconds between two kills or stops, on average. */
  readonly everyMs?: number;
  /** The share of transfers that something goes wrong with. */
  readonly rate?: number;
}

export interface BankReport {
  readonly problems: readonly string[];
  readonly kills: number;
  readonly stops: number;
  readonly stale: number;
  readonly succeeded: number;
  readonly verified: number;
  readonly failed: number;
  readonly troubles: Readonly<Record<string, number>>;
  readonly seconds: number;
}

/** A stop is longer than a lease. */
const STOP_MS = 2_200;
const REFUSED_EVERY = 50;
const GIVE_UP_MS = 60_000;
/** How often a host asks again about what is uncertain. */
const TRIES_MAX = 50;
const AGAIN_AFTER_MS = 300;

/** One process that makes transfers, replaced by another when it dies. */
class Worker {
  readonly #task: Task;
  readonly #told: (receipt: Receipt) => void;
  #child: ChildProcess;
  /** It can be asked: a busy machine starts a process slowly, and one that is killed before that shows nothing. */
  ready: Promise<void> = Promise.resolve();
  #ready: () => void = () => undefined;
  readonly orders: Map<string, Order> = new Map<string, Order>();

  constructor(task: Task, told: (receipt: Receipt) => void) {
    this.#task = task;
    this.#told = told;
    this.#child = this.#start();
  }

  #start(): ChildProcess {
    this.ready = new Promise((resolve) => (this.#ready = resolve));
    const child = fork(join(import.meta.dirname, 'worker.ts'), [JSON.stringify(this.#task)], { stdio: 'inherit' });
    child.on('message', (message: Receipt | { readonly ready: true }) => {
      if ('ready' in message) {
        this.#ready();
        for (const order of this.orders.values()) child.send(order);
      } else if (this.orders.delete(message.key)) this.#told(message);
    });
    return child;
  }

  give(order: Order): void {
    this.orders.set(order.key, order);
    if (this.#child.connected) this.#child.send(order, () => undefined);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    this.#child = this.#start();
  }

  /** It stands still for longer than its leases; what it was asked for is asked of another meanwhile. */
  async stop(other: Worker): Promise<void> {
    this.#child.kill('SIGSTOP');
    for (const order of this.orders.values()) other.give(order);
    await sleep(STOP_MS);
    this.#child.kill('SIGCONT');
  }

  async end(): Promise<void> {
    const child = this.#child;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    await gone;
  }
}

const orderOf = (n: number, dice: Dice): Order => {
  const from = dice.int(0, ACCOUNTS - 1);
  const amount = n % REFUSED_EVERY === REFUSED_EVERY - 1 ? OPENING * 2 : 1 + dice.int(0, 100 - 1);
  return { key: `t${n}`, transfer: { from, to: (from + 1 + dice.int(0, ACCOUNTS - 1 - 1)) % ACCOUNTS, amount } };
};

/** Whether a host has to ask again to know. */
const isOpen = ({ uncertain, again }: Receipt): boolean => uncertain || again;

/** What of all that was told does not agree with the bank's books. */
const problemsOf = (bank: Bank, receipts: ReadonlyMap<string, readonly Receipt[]>, transfers: number): string[] => {
  const problems: string[] = [];
  if (bank.total !== ACCOUNTS * OPENING) problems.push(`there is ${bank.total} in place of ${ACCOUNTS * OPENING}`);
  for (let n = 0; n < transfers; n++) {
    const key = `t${n}`;
    const count = bank.booked.get(key) ?? 0;
    if (count > 1) problems.push(`${key} was booked ${count} times`);
    const told = receipts.get(key) ?? [];
    if (told.length === 0) problems.push(`${key} was never told`);
    for (const { status, uncertain, again, verified, error } of told) {
      const words = `${key}: ${status} ${verified ?? ''} ${error ?? ''}`;
      if (status === 'success' && count !== 1) problems.push(`${words}, and is booked ${count} times`);
      const isClaim = verified === 'not_done' || !(uncertain || again);
      if (status !== 'success' && isClaim && count !== 0) problems.push(`${words}, told as undone, and is booked`);
    }
    if (told.length > 0 && told.every(isOpen)) problems.push(`${key} was left uncertain`);
  }
  return problems;
};

/** Transfers by several processes that are killed and stopped, at a bank that loses answers and acts late. */
export const bankSoak = async (options: BankSoak): Promise<BankReport> => {
  const { transfers, seed, folder, workers: count = 3, atOnce = 10, everyMs = 500, rate = 0.3 } = options;
  const { over = 'http', redis } = options;
  const startedMs = performance.now();
  const dice = new Dice(seed);
  const bank = new Bank(seed + 1, rate);
  const port = await bank.listen();
  const receipts = new Map<string, Receipt[]>();
  const orders = Array.from({ length: transfers }, (_, n) => orderOf(n, dice));
  const byKey = new Map(orders.map((order) => [order.key, order]));
  let next = 0;
  const give = (worker: Worker, order = orders[next++]): void => {
    if (order !== undefined) worker.give(order);
  };
  const told = (worker: Worker, receipt: Receipt): void => {
    const known = [...(receipts.get(receipt.key) ?? []), receipt];
    receipts.set(receipt.key, known);
    // What is uncertain is asked for again under its key, as a host would.
    if (isOpen(receipt) && known.length < TRIES_MAX)
      setTimeout(() => give(worker, byKey.get(receipt.key)), AGAIN_AFTER_MS);
    else give(worker);
  };
  const place = redis ?? { kind: 'sqlite', path: join(folder, 'calls.db') };
  const task: Task = { port, over, kind: place.kind, store: place.path };
  const workers: Worker[] = Array.from(
    { length: count },
    (_, index) => new Worker(task, (receipt) => told(workers[index] as Worker, receipt)),
  );
  for (const worker of workers) for (let n = 0; n < atOnce; n++) give(worker);
  let kills = 0;
  let stops = 0;
  const lastMs = (): number => performance.now() - startedMs;
  let progressMs = lastMs();
  let done = 0;
  const settled = (): number => [...receipts.values()].filter((all) => !all.every(isOpen)).length;
  const pending = (): number => transfers - settled() + workers.reduce((sum, { orders: all }) => sum + all.size, 0);
  while (pending() > 0 && lastMs() - progressMs < GIVE_UP_MS) {
    await Promise.all(workers.map(({ ready }) => ready));
    await sleep(everyMs * (0.5 + dice.unit()));
    if (receipts.size !== done) progressMs = lastMs();
    done = receipts.size;
    // The end is left in peace, so that what was interrupted can be settled.
    if (next >= transfers && receipts.size >= transfers) continue;
    const place = dice.int(0, count - 1);
    const victim = workers[place] as Worker;
    if (dice.chance(0.6)) {
      kills++;
      await victim.kill();
    } else {
      stops++;
      await victim.stop(workers[(place + 1) % count] as Worker);
    }
  }
  // A late effect may still be on its way.
  await sleep(600);
  const problems = problemsOf(bank, receipts, transfers);
  await Promise.all(workers.map((worker) => worker.end()));
  await bank.close();
  const last = [...receipts.values()].map((all) => all.findLast((one) => !isOpen(one)));
  return {
    problems,
    kills,
    stops,
    stale: bank.stale,
    succeeded: last.filter((one) => one?.status === 'success').length,
    verified: last.filter((one) => one?.verified === 'done').length,
    failed: last.filter((one) => one !== undefined && one.status !== 'success').length,
    troubles: Object.fromEntries(bank.troubles),
    seconds: Math.round((performance.now() - startedMs) / 1_000),
  };
};
