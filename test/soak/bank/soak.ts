import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Dice } from '../../simulation/dice.ts';
import { ACCOUNTS, Bank, OPENING, SETTLE_MS } from './bank.ts';
import type { Plant } from './plants.ts';
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
  /** All limits of time are so many times as long: for a machine that has much else to do. */
  readonly pace?: number;
  /** A mistake of the processes, which has to be found. */
  readonly plant?: Plant;
  /** Hears how far it has come. */
  readonly progress?: (line: string) => void;
}

export interface BankReport {
  readonly problems: readonly string[];
  readonly kills: number;
  readonly stops: number;
  /** Processes that died by themselves. */
  readonly deaths: number;
  readonly stale: number;
  /** Requests that lay at the bank for too long. */
  readonly expired: number;
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
  /** How often it died without being killed. */
  deaths: number = 0;

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
    // On a busy machine it may not have reached its bank in time.
    child.once('exit', () => {
      if (child !== this.#child || child.killed) return;
      this.deaths++;
      this.#child = this.#start();
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
    await sleep(STOP_MS * this.#task.pace);
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

/** What the bank refuses for certain. */
const isRefused = ({ transfer: { amount } }: Order): boolean => amount > OPENING;

/** What was told of one order, and does not agree with the bank's books. */
const orderProblems = (bank: Bank, order: Order, told: readonly Receipt[]): string[] => {
  const { key, transfer } = order;
  const booked = bank.booked.get(key) ?? [];
  const problems: string[] = [];
  if (booked.length > 1) problems.push(`${key} was booked ${booked.length} times`);
  if (booked.some((one) => !isDeepStrictEqual(one, transfer))) problems.push(`${key} was booked as something else`);
  if (told.length === 0) problems.push(`${key} was never told`);
  for (const { status, uncertain, again, verified, error, receipt } of told) {
    const words = `${key}: ${status} ${verified ?? ''} ${error ?? ''}`;
    if (status === 'success' && booked.length !== 1) problems.push(`${words}, and is booked ${booked.length} times`);
    if (status === 'success' && receipt !== `r-${key}`) problems.push(`${words}, with the receipt ${String(receipt)}`);
    const isClaim = verified === 'not_done' || !(uncertain || again);
    if (status !== 'success' && isClaim && booked.length > 0) problems.push(`${words}, told as undone, and is booked`);
  }
  if (told.length > 0 && told.every(isOpen))
    problems.push(
      `${key} was left uncertain, ${told.length} times: ${told.at(-1)?.error ?? ''} ${told.at(-1)?.verified ?? ''}`,
    );
  return problems;
};

/** More than a few of those that could be made were not: then nothing is proved by those that were. */
const FAILED_MAX = 0.05;

/** What of all that was told does not agree with the bank's books. */
const problemsOf = (bank: Bank, receipts: ReadonlyMap<string, readonly Receipt[]>, orders: readonly Order[]) => {
  const problems = orders.flatMap((order) => orderProblems(bank, order, receipts.get(order.key) ?? []));
  const isMade = ({ key }: Order): boolean => receipts.get(key)?.some(({ status }) => status === 'success') ?? false;
  const balances = Array.from({ length: ACCOUNTS }, () => OPENING);
  for (const {
    transfer: { from, to, amount },
  } of orders.filter(isMade)) {
    balances[from] = (balances[from] ?? 0) - amount;
    balances[to] = (balances[to] ?? 0) + amount;
  }
  if (!isDeepStrictEqual(balances, bank.accounts))
    problems.push(`the accounts have ${String(bank.accounts)}, by what was told ${String(balances)}`);
  const possible = orders.filter((order) => !isRefused(order));
  const failed = possible.filter((order) => !isMade(order)).length;
  if (failed > Math.max(1, possible.length * FAILED_MAX))
    problems.push(`${failed} of ${possible.length} were not made`);
  return problems;
};

/** Transfers by several processes that are killed and stopped, at a bank that loses answers and acts late. */
export const bankSoak = async (options: BankSoak): Promise<BankReport> => {
  const { transfers, seed, folder, workers: count = 3, atOnce = 10, everyMs = 500, rate = 0.3 } = options;
  const { over = 'http', redis, plant, pace = 1 } = options;
  const startedMs = performance.now();
  const dice = new Dice(seed);
  const bank = new Bank(seed + 1, rate, SETTLE_MS[over] * 0.9 * pace);
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
      setTimeout(() => give(worker, byKey.get(receipt.key)), AGAIN_AFTER_MS * pace);
    else give(worker);
  };
  const place = redis ?? { kind: 'sqlite', path: join(folder, 'calls.db') };
  const task: Task = {
    port,
    over,
    kind: place.kind,
    store: place.path,
    pace,
    ...(plant === undefined ? {} : { plant }),
  };
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
  const answers = (): number => [...receipts.values()].reduce((sum, all) => sum + all.length, 0);
  const settled = (): number => [...receipts.values()].filter((all) => !all.every(isOpen)).length;
  const pending = (): number => transfers - settled() + workers.reduce((sum, { orders: all }) => sum + all.size, 0);
  while (pending() > 0 && lastMs() - progressMs < GIVE_UP_MS * pace) {
    await Promise.race([Promise.all(workers.map(({ ready }) => ready)), sleep(GIVE_UP_MS * pace)]);
    await sleep(everyMs * pace * (0.5 + dice.unit()));
    if (answers() !== done) progressMs = lastMs();
    done = answers();
    options.progress?.(`${settled()} of ${transfers} settled, ${kills} kills, ${stops} stops`);
    // The end is left in peace: what takes longer than two kills are apart, as finding out does, would never settle.
    // A quick machine has given all out by then; one of its processes is killed or stopped all the same.
    if (next >= transfers && kills + stops > 0) continue;
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
  const hasGivenUp = pending() > 0;
  await Promise.all(workers.map((worker) => worker.end()));
  await bank.quiet();
  const problems = problemsOf(bank, receipts, orders);
  if (hasGivenUp) problems.push(`nothing was told for ${GIVE_UP_MS * pace} ms, and ${pending()} were still to come`);
  await bank.close();
  const last = [...receipts.values()].map((all) => all.findLast((one) => !isOpen(one)));
  return {
    problems,
    kills,
    stops,
    deaths: workers.reduce((sum, { deaths }) => sum + deaths, 0),
    stale: bank.stale,
    expired: bank.expired,
    succeeded: last.filter((one) => one?.status === 'success').length,
    verified: last.filter((one) => one?.verified === 'done').length,
    failed: last.filter((one) => one !== undefined && one.status !== 'success').length,
    troubles: Object.fromEntries(bank.troubles),
    seconds: Math.round((performance.now() - startedMs) / 1_000),
  };
};
