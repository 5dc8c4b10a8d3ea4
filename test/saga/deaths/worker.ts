import { setTimeout as sleep } from 'node:timers/promises';
import { createSpillway, plan, tool, type AnyTool, type DedupeStore, type Plan } from '../../../src/index.ts';
import { JOURNAL_TOOL, LEASE_TOOL } from '../../../src/saga/own-records.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { CLIENTS } from '../../stores/redis/clients.ts';
import { STOPS, enter, stands, staysIn, type Stop } from './books.ts';

/** Where the processes of one trip meet. */
export interface Place {
  readonly kind: 'redis' | 'sqlite';
  /** The file, or the socket of the server. */
  readonly path: string;
  readonly prefix: string;
  /** What the world has of it. */
  readonly books: string;
}

/** What a process does, and at which of its steps it is killed, counted from 1. */
export interface Task {
  readonly act: 'book' | 'resume';
  readonly place: Place;
  readonly turnId: string;
  readonly dieAt?: number | string;
  /** Undoing twice does no harm. */
  readonly enforcesKey: boolean;
}

/** What it says: what it was given to do is done, and in how many steps. */
export interface Done {
  readonly steps: readonly string[];
}

/** What one says that resumes for others: nothing is left of this. */
export interface Settled {
  readonly turnId: string;
}

/** Longer than a process stands still on a machine at work, and as short as a test can wait for. */
export const LEASE_MS = 2_000;
/** Between two looks for what others have left. */
const POLL_MS = 100;
const NEEDS: Readonly<Record<Stop, readonly Stop[]>> = {
  flight: [],
  hotel: ['flight'],
  car: ['flight'],
  tour: ['hotel', 'car'],
  insurance: ['tour'],
};

/** Between two things that a process does; at one of them it is killed, as by a machine that loses its power. */
export class Steps {
  readonly all: string[] = [];
  readonly #task: Task;

  constructor(task: Task) {
    this.#task = task;
  }

  step(what: string): void {
    const { dieAt, turnId, place } = this.#task;
    const count = this.all.filter((other) => other.startsWith(`${what} `)).length + 1;
    this.all.push(`${what} ${count}`);
    if (dieAt !== this.all.length && dieAt !== `${what} ${count}`) return;
    enter(place.books, { act: 'died', turnId, at: `${what} ${count}` });
    // Nothing comes after it: the kernel does not return to a process that has killed itself.
    process.kill(process.pid, 'SIGKILL');
  }
}

/** A store as the process reaches it: it can be killed before each question, and before it hears the answer. */
const stepped = (store: DedupeStore, steps: Steps): DedupeStore => {
  const asked =
    <A extends readonly unknown[], T>(name: string, question: (...given: A) => T) =>
    async (...given: A): Promise<Awaited<T>> => {
      steps.step(`ask ${name}`);
      const answer = await question(...given);
      steps.step(`hear ${name}`);
      return answer;
    };
  return Object.assign(Object.create(store) as DedupeStore, {
    get: asked('get', (key: string) => store.get(key)),
    setIfNotExists: asked('claim', (...given: Parameters<DedupeStore['setIfNotExists']>) =>
      store.setIfNotExists(...given),
    ),
    compareAndSet: asked('put', (...given: Parameters<DedupeStore['compareAndSet']>) => store.compareAndSet(...given)),
    delete: asked('delete', (...given: Parameters<DedupeStore['delete']>) => store.delete(...given)),
  });
};

export const openStore = async ({ kind, path, prefix }: Place): Promise<DedupeStore> => {
  if (kind === 'sqlite') return sqliteStore(path);
  const [, connect] = CLIENTS[0] ?? [];
  const client = await connect?.({ path });
  if (client === undefined) throw new Error('there is no client');
  return redisStore(client.client, { prefix });
};

const booking = ({ place: { books }, turnId, enforcesKey }: Task, steps: Steps, stop: Stop): AnyTool => {
  const write = (act: 'book' | 'undo', key: string): void => {
    steps.step(`before ${act} ${stop}`);
    // Who checks the key does not undo twice.
    if (act === 'book' || !enforcesKey || stands(books, key)) enter(books, { act, turnId, stop, key });
    steps.step(`after ${act} ${stop}`);
  };
  return tool({
    name: `book_${stop}`,
    policy: {
      effects: 'mutating',
      safetyCritical: true,
      breaker: false,
      dedupe: { leaseMs: LEASE_MS },
      verify: { settleMs: 50, delayMs: 10 },
      compensate: { enforcesKey },
    },
    execute: async (_: unknown, { callKey }) => {
      write('book', callKey);
      return { callKey };
    },
    verify: async (_, { callKey }) => {
      steps.step(`verify ${stop}`);
      return stands(books, callKey) ? { done: true, output: { callKey } } : { done: false };
    },
    compensate: async (_, { callKey }) => write('undo', callKey),
  });
};

const pay: AnyTool = {
  name: 'pay',
  policy: { effects: 'read' },
  execute: () => {
    throw Object.assign(new Error('the card was refused'), { status: 402 });
  },
};

/** Five bookings that build on each other, and a payment that is refused. */
const trip: Plan = plan.from(
  [
    ...STOPS.map((stop) => ({ id: stop, tool: `book_${stop}`, needs: NEEDS[stop] })),
    { id: 'pay', tool: 'pay', needs: [...STOPS] },
  ],
  { onFailure: 'compensate', leaseMs: LEASE_MS },
);

/** Does what it is given, and tells what came of it where it outlives the process, as whoever relies on it would. */
const work = async (task: Task, store: DedupeStore): Promise<Done> => {
  const { act, turnId, place } = task;
  const steps = new Steps(task);
  const tools = [...STOPS.map((stop) => booking(task, steps, stop)), pay];
  const layer = createSpillway({ tools, store: stepped(store, steps), retryBudget: false });
  if (act === 'book')
    await layer.turn(trip, { turnId }).forEach((event) => {
      if (event.source === 'turn' && event.type === 'settled')
        enter(place.books, { act: 'told', turnId, stays: staysIn(event.result.compensation) });
    });
  else
    for (const turn of await layer.resume({ leaseMs: LEASE_MS }))
      enter(place.books, { act: 'told', turnId: turn.turnId, stays: staysIn(turn.compensation) });
  // What is still to be written of it is written.
  await layer.close();
  return { steps: steps.all };
};

const stores = new Map<string, Promise<DedupeStore>>();
const storeOf = (place: Place): Promise<DedupeStore> => {
  const name = `${place.path} ${place.prefix}`;
  const known = stores.get(name) ?? openStore(place);
  stores.set(name, known);
  return known;
};

/**
 * Whether there is anything to resume, of a process that lives or has died. A journal that was claimed and never
 * written is of a turn that began nothing: the store forgets it by itself.
 */
const isOpen = async (store: DedupeStore): Promise<boolean> => {
  for await (const { payload } of store.byTool(JOURNAL_TOOL)) if (payload !== undefined) return true;
  return false;
};

/** Waits until the lease of whoever had the turn has run out. */
const free = async (store: DedupeStore): Promise<void> => {
  for await (const { key } of store.byTool(LEASE_TOOL))
    for (;;) {
      const reading = await store.get(key);
      const leftMs = (reading?.record.lockUntilMs ?? 0) - (reading?.atMs ?? 0);
      if (leftMs <= 0) break;
      await sleep(leftMs);
    }
};

/** Resumes in a place until nothing is left there. */
const survive = async (task: Task): Promise<void> => {
  const store = await storeOf(task.place);
  do {
    await work(task, store);
    await sleep(POLL_MS);
  } while (await isOpen(store));
};

const main = async (): Promise<void> => {
  process.once('disconnect', () => process.exit());
  const given = JSON.parse(process.argv[2] ?? '') as Task | 'survive';
  if (given === 'survive') {
    process.on('message', (task: Task) => {
      const { turnId } = task;
      void survive(task).then(() => process.send?.({ turnId } satisfies Settled));
    });
    process.send?.('ready');
    return;
  }
  const store = await storeOf(given.place);
  if (given.act === 'resume') await free(store);
  const done = await work(given, store);
  process.send?.(done, () => process.disconnect());
};

if (process.send !== undefined && process.argv[1] === import.meta.filename) await main();
