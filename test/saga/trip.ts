import { Observable } from 'rxjs';
import {
  createSpillway,
  plan,
  tool,
  type DedupeStore,
  type NodeResult,
  type Plan,
  type Runtime,
  type Spillway,
  type Tool,
} from '../../src/index.ts';
import type { VirtualRuntime } from '../../src/testing/index.ts';

/** What goes wrong with one attempt: before it acts, after it, or long after anyone waits. */
export const FAULTS = [
  'refuses',
  'breaks',
  'acts_and_breaks',
  'hangs',
  'acts_and_hangs',
  'acts_late',
  'deaf',
  'slow',
] as const;
export type Fault = (typeof FAULTS)[number];

export const STOPS = ['flight', 'hotel', 'car', 'tour', 'insurance'] as const;
export type Stop = (typeof STOPS)[number];
/** Where a fault strikes: a booking or its undoing, at its first attempt. */
export type Site = `${'book' | 'undo'} ${Stop}`;
export const SITES: readonly Site[] = STOPS.flatMap((stop): Site[] => [`book ${stop}`, `undo ${stop}`]);

const TIMEOUT_MS = 1_000;
/** One that does not look at its signal acts this long after it began: later than anyone waits for it. */
const DEAF_MS = 20_000;
/** A late effect comes this long after its attempt was cut off, which is within `settleMs`. */
const LATE_MS = 600;
export const SETTLE_MS = 1_000;
export const LEASE_MS = 5_000;

/** Whether a process may still act; once it is dead nothing of it goes on. */
export interface Life {
  readonly isAlive: () => boolean;
  /** Between two things that a process does: it may die here. */
  step(what: string): void;
}

export const IMMORTAL: Life = { isAlive: () => true, step: () => undefined };

/** A process that dies at one of its steps. */
export class Mortal implements Life {
  readonly steps: string[] = [];
  #isDead = false;
  readonly #last: number;

  constructor(last: number = Infinity) {
    this.#last = last;
  }

  isAlive: () => boolean = (): boolean => !this.#isDead;

  step(what: string): void {
    if (this.#isDead) return;
    this.steps.push(what);
    this.#isDead = this.steps.length > this.#last;
  }
}

/** What is booked, by key: booking twice under one key is two bookings, since this agency checks none. */
export class Agency {
  readonly bookings: Map<string, { stop: Stop; count: number }> = new Map<string, { stop: Stop; count: number }>();
  /** Bookings that were ever made beyond the first under one key. */
  doubled: number = 0;

  book(stop: Stop, key: string): void {
    const booking = this.bookings.get(key) ?? { stop, count: 0 };
    booking.count++;
    if (booking.count > 1) this.doubled++;
    this.bookings.set(key, booking);
  }

  cancel(key: string): void {
    const booking = this.bookings.get(key);
    if (booking !== undefined) booking.count = 0;
  }

  isBooked(key: string): boolean {
    return (this.bookings.get(key)?.count ?? 0) > 0;
  }

  booked(stop: Stop): number {
    return [...this.bookings.values()].reduce((sum, other) => sum + (other.stop === stop ? other.count : 0), 0);
  }
}

const forever = (): Promise<never> => new Promise(() => undefined);

/** What a trip needs of what: by stop. */
export type Shape = Readonly<Record<Stop, readonly Stop[]>>;

const TRIP: Shape = { flight: [], hotel: ['flight'], car: ['flight'], tour: ['hotel', 'car'], insurance: ['tour'] };

/** What one process's trip is like. */
export interface TripOptions {
  /** What goes wrong, at first attempts. Default: nothing. */
  readonly faults?: ReadonlyMap<Site, Fault>;
  readonly life?: Life;
  /** The card is refused in the end. Default true. */
  readonly endsBadly?: boolean;
  readonly shape?: Shape;
  readonly timeoutMs?: number;
  readonly onDeadline?: 'detach' | 'abort';
}

/** One process that books trips. */
export class TripProcess {
  readonly layer: Spillway;
  readonly plan: Plan;
  readonly #runtime: VirtualRuntime;
  readonly #agency: Agency;
  readonly #faults: ReadonlyMap<Site, Fault>;
  readonly #life: Life;

  constructor(runtime: VirtualRuntime, store: DedupeStore, agency: Agency, options: TripOptions = {}) {
    const { faults = new Map<Site, Fault>(), life = IMMORTAL, endsBadly = true, shape = TRIP } = options;
    const { timeoutMs = 300_000, onDeadline = 'detach' } = options;
    this.#runtime = runtime;
    this.#agency = agency;
    this.#faults = faults;
    this.#life = life;
    const tools = STOPS.map((stop) => this.#tool(stop));
    const pay: Tool = {
      name: 'pay',
      policy: { effects: 'read', retry: { maxAttempts: 1 } },
      execute: () => {
        if (endsBadly) throw Object.assign(new Error('the card was refused'), { status: 402 });
        return 'paid';
      },
    };
    this.layer = createSpillway({
      tools: [...tools, pay],
      runtime: mortal(runtime, life),
      store: gated(store, life),
    });
    this.plan = plan.from(
      [
        ...STOPS.map((stop) => ({
          id: stop,
          tool: `book_${stop}`,
          input: { stop },
          needs: shape[stop],
        })),
        { id: 'pay', tool: 'pay', needs: [...STOPS] },
      ],
      { onFailure: 'compensate', leaseMs: LEASE_MS, timeoutMs, onDeadline },
    );
  }

  #tool(stop: Stop): Tool<unknown, { key: string }> {
    return tool({
      name: `book_${stop}`,
      policy: {
        timeoutMs: TIMEOUT_MS,
        retry: { maxAttempts: 3, initialDelayMs: 10, maxTotalTimeMs: 60_000 },
        breaker: false,
        verify: { settleMs: SETTLE_MS, delayMs: 50 },
        compensate: { enforcesKey: true, retry: { maxAttempts: 3, initialDelayMs: 10, maxTotalTimeMs: 60_000 } },
      },
      execute: (_: unknown, { callKey, attempt, signal }) =>
        this.#does(`book ${stop}`, attempt, signal, () => {
          this.#agency.book(stop, callKey);
          return { key: callKey };
        }),
      verify: async (_, { callKey }) => {
        await this.#alive(`verify ${stop}`);
        return this.#agency.isBooked(callKey) ? { done: true, output: { key: callKey } } : { done: false };
      },
      compensate: (_, { callKey, attempt, signal }) =>
        this.#does(`undo ${stop}`, attempt, signal, () => this.#agency.cancel(callKey)),
    });
  }

  async #does<T>(site: Site, attempt: number, signal: AbortSignal, act: () => T): Promise<T> {
    const fault = attempt === 1 ? this.#faults.get(site) : undefined;
    await this.#alive(`before ${site}`);
    if (fault === 'refuses') throw Object.assign(new Error(`${site} was refused`), { status: 409 });
    if (fault === 'breaks') throw new Error(`${site} broke off`);
    if (fault === 'hangs') return stopping(signal);
    if (fault === 'deaf') await this.#wait(DEAF_MS).then(() => this.#alive(`${site}, deaf`));
    if (fault === 'slow') await this.#wait(TIMEOUT_MS - 1);
    if (fault === 'acts_late') {
      signal.addEventListener('abort', () => void this.#wait(LATE_MS).then(act));
      return stopping(signal);
    }
    const given = act();
    await this.#alive(`after ${site}`);
    if (fault === 'acts_and_breaks') throw new Error(`${site} broke off`);
    return fault === 'acts_and_hangs' ? stopping(signal) : given;
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#runtime.after(ms).subscribe(() => resolve()));
  }

  #alive(what: string): Promise<void> {
    this.#life.step(what);
    return this.#life.isAlive() ? Promise.resolve() : forever();
  }
}

/** Work that sees its signal, and gives nothing. */
const stopping = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));

/** The clock of a process: its timers do not go off once it is dead. */
const mortal = (runtime: VirtualRuntime, { isAlive }: Life): Runtime => ({
  ...runtime,
  after: (ms) =>
    new Observable((subscriber) =>
      runtime.after(ms).subscribe(() => {
        if (!isAlive()) return;
        subscriber.next(0);
        subscriber.complete();
      }),
    ),
});

/** A store as one process reaches it: it may die before each question, and before it hears the answer. */
const gated = (store: DedupeStore, life: Life): DedupeStore => {
  const asked =
    <A extends readonly unknown[], T>(name: string, question: (...given: A) => T) =>
    async (...given: A): Promise<Awaited<T>> => {
      life.step(`ask ${name}`);
      if (!life.isAlive()) return forever();
      const answer = await question(...given);
      life.step(`hear ${name}`);
      return life.isAlive() ? answer : forever();
    };
  return {
    get: asked('get', (key: string) => store.get(key)),
    setIfNotExists: asked('claim', (...given: Parameters<DedupeStore['setIfNotExists']>) =>
      store.setIfNotExists(...given),
    ),
    compareAndSet: asked('put', (...given: Parameters<DedupeStore['compareAndSet']>) => store.compareAndSet(...given)),
    renew: asked('renew', (...given: Parameters<DedupeStore['renew']>) => store.renew(...given)),
    delete: asked('delete', (...given: Parameters<DedupeStore['delete']>) => store.delete(...given)),
    byTool: (name) => store.byTool(name),
    bySession: (key) => store.bySession(key),
    sweep: () => store.sweep(),
  };
};

/** What a settled trip gets wrong: a booking twice, one that stays untold, one told as undone that is there. */
export const wrongs = (agency: Agency, nodes: readonly Pick<NodeResult, 'id' | 'state'>[]): string[] => {
  const found: string[] = [];
  if (agency.doubled > 0) found.push(`${agency.doubled} were booked twice`);
  for (const { id, state } of nodes) {
    if (id === 'pay') continue;
    const count = agency.booked(id as Stop);
    if (state === 'succeeded' && count !== 1) found.push(`${id} is told as booked, and is there ${count} times`);
    if (state !== 'succeeded' && state !== 'compensation_failed' && count !== 0)
      found.push(`${id} is told as ${state}, and is there ${count} times`);
  }
  return found;
};
