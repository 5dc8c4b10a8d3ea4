import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable, defer } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { VirtualRuntime } from '../testing/virtual-runtime.ts';
import type { Act } from './schedule.ts';

/**
 * What the tools of an explored plan act upon, in place of the servers that they call in production: a ledger of
 * effects, each under a key of the tool's choice. It checks nothing by itself: whether a key that is there is refused
 * is for the tool to say, as it is for the server that it stands for.
 */
export interface World {
  /** Something is done: an effect, under what the server would know it by. */
  add(key: string, value?: unknown): void;
  /** Whether something done under the key is there: done, and neither removed nor reversed. */
  has(key: string): boolean;
  /** Whether anything was ever done under the key, undone or not: what a server that keeps its keys refuses. */
  knows(key: string): boolean;
  /** The value of what is there under the key; `undefined` where nothing is. */
  get(key: string): unknown;
  /**
   * Takes away what is there under the key, as a DELETE does; gives whether there was anything. Harmless when repeated.
   */
  remove(key: string): boolean;
  /**
   * Does the opposite once more, as a refund does: what was reversed before is then reversed twice, which is found.
   * @throws Error where nothing was ever done under the key
   */
  reverse(key: string): void;
  /** Lets so many milliseconds of virtual time pass. Nothing else is waited for: a real timer or request never ends. */
  sleep(ms: number): Promise<void>;
  /**
   * One request to a server: what strikes the attempt strikes it here, and so what the tool makes of a lost answer is
   * seen, too. Where `execute`, `verify` or `compensate` makes several, each is struck by itself.
   *
   * @param work what the server does
   * @param signal what aborts the request beside the end of its attempt
   */
  request<T>(work: () => T | PromiseLike<T>, signal?: AbortSignal): Promise<T>;
  /** Virtual time, for operators such as `hedge` within a tool. */
  readonly runtime: Runtime;
}

/** One attempt, and what it did to the world. */
export interface Attempt {
  readonly node: string;
  readonly act: Act;
  readonly attempt: number;
  readonly toolName: string;
  /** Its tool can be asked what became of it, and its late answer counts. */
  readonly isVerifiable: boolean;
  /** Its place among all attempts, in the order in which they began. */
  readonly place: number;
  /** How often it changed the world, or asked for that. */
  touches: number;
  /** How many requests it made. */
  requests: number;
  /** A person approved it for another input than it has. */
  isUnapproved: boolean;
}

/** Who acts: an attempt, while its process lives; or the server, which goes on with a request whose caller has gone. */
export interface Actor {
  readonly attempt: Attempt;
  /** Which of its requests; absent outside of those. */
  readonly request?: number;
  isAlive(): boolean;
  /** Makes a request as its schedule has it, where that strikes it. */
  readonly struck?: (
    number: number,
    work: (by: Actor) => unknown,
    signal?: AbortSignal,
  ) => Promise<unknown> | undefined;
}

/** An effect, and whether it is there. */
export interface Effect {
  readonly key: string;
  readonly value: unknown;
  readonly by: Attempt;
  /** The request that made it; absent without one. */
  readonly request: number | undefined;
  /** The node that had undone it before it happened. */
  readonly undoneEarly: string | undefined;
  isRemoved: boolean;
  reversals: number;
}

/** Something that was done twice. */
export interface Doubled {
  readonly key: string;
  readonly node: string;
  readonly what: 'done' | 'undone';
}

const acting = new AsyncLocalStorage<Actor>();

/** Runs what a tool does, so that the world knows whose work it is, however late that goes on. */
export const actingAs = <T>(actor: Actor, work: () => T): T => acting.run(actor, work);

/** What comes of it happens as its actor's doing, while that lives. */
const heardAs = <T>(actor: Actor, source: Observable<T>): Observable<T> =>
  new Observable((subscriber) =>
    source.subscribe({
      next: (value) => {
        if (actor.isAlive()) actingAs(actor, () => subscriber.next(value));
      },
      error: (error) => subscriber.error(error),
      complete: () => {
        if (actor.isAlive()) actingAs(actor, () => subscriber.complete());
      },
    }),
  );

/** The world of one schedule: it outlives its processes. */
export class Ledger implements World {
  readonly effects: Effect[] = [];
  readonly doubled: Doubled[] = [];
  /** What nodes of the plan undid before it was there. */
  readonly #removals: Array<{ readonly key: string; readonly by: Attempt }> = [];
  /** What a test did wrong with it. */
  misuse: string | undefined;
  readonly runtime: Runtime;

  constructor(runtime: VirtualRuntime) {
    this.runtime = {
      now: () => runtime.now(),
      wallNow: () => runtime.wallNow(),
      random: () => runtime.random(),
      id: () => runtime.id(),
      // What a timer starts is the work of whoever waited for it.
      after: (ms) =>
        defer(() => {
          const actor = acting.getStore();
          return runtime.after(ms).pipe((source) => (actor === undefined ? source : heardAs(actor, source)));
        }),
    };
  }

  add(key: string, value?: unknown): void {
    const actor = this.#actor(`add(${JSON.stringify(key)})`);
    if (actor === undefined) return;
    const { attempt: by, request } = actor;
    const undoneEarly = this.#removals.find((early) => early.key === key && early.by.place > by.place)?.by.node;
    const made: Effect = { key, value, by, request, undoneEarly, isRemoved: false, reversals: 0 };
    const isTwice = this.effects.some((effect) => isThere(effect) && (effect.key === key || isSameWork(effect, made)));
    this.effects.push(made);
    if (isTwice) this.#note({ key, node: by.node, what: by.act === 'undo' ? 'undone' : 'done' });
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  knows(key: string): boolean {
    return this.effects.some((effect) => effect.key === key);
  }

  get(key: string): unknown {
    return this.#find(key)?.value;
  }

  remove(key: string): boolean {
    const actor = this.#actor(`remove(${JSON.stringify(key)})`);
    if (actor === undefined) return false;
    const there = this.effects.filter((effect) => effect.key === key && isThere(effect));
    for (const effect of there) effect.isRemoved = true;
    if (!this.knows(key) && actor.attempt.act === 'run') this.#removals.push({ key, by: actor.attempt });
    return there.length > 0;
  }

  reverse(key: string): void {
    if (this.#actor(`reverse(${JSON.stringify(key)})`) === undefined) return;
    const effect = this.#find(key) ?? this.effects.findLast((one) => one.key === key);
    if (effect === undefined) throw new Error(`nothing was done under ${key}`);
    if (!isThere(effect)) this.#note({ key, node: effect.by.node, what: 'undone' });
    effect.reversals++;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.runtime.after(ms).subscribe(() => resolve());
    });
  }

  async request<T>(work: () => T | PromiseLike<T>, signal?: AbortSignal): Promise<T> {
    const actor = acting.getStore();
    if (actor === undefined) return work();
    const request = ++actor.attempt.requests;
    const asked = (by: Actor): unknown => actingAs({ ...by, request }, work);
    const answer = (await (actor.struck?.(request, asked, signal) ?? asked(actor))) as T;
    return actor.isAlive() ? answer : silence();
  }

  #find(key: string): Effect | undefined {
    return this.effects.find((effect) => effect.key === key && isThere(effect));
  }

  #note(doubled: Doubled): void {
    if (!this.doubled.some(({ key, what }) => key === doubled.key && what === doubled.what)) this.doubled.push(doubled);
  }

  /** Who changes it; nothing of a dead process does. */
  #actor(what: string): Actor | undefined {
    const actor = acting.getStore();
    if (actor === undefined) {
      this.misuse =
        `world.${what} was called outside of what a tool's execute, verify or compensate does, ` +
        'so that nobody knows whose effect it is; call it there, or after an await in there';
      return undefined;
    }
    if (!actor.isAlive()) return undefined;
    actor.attempt.touches++;
    return actor;
  }
}

export const isThere = ({ isRemoved, reversals }: Effect): boolean => !isRemoved && reversals === 0;

/** What one node runs is to be done once, by whichever attempt; so is its undoing, and each request of both. */
const isSameWork = (one: Effect, other: Effect): boolean => {
  const [a, b] = [one.by, other.by];
  return a !== b && a.node === b.node && a.act === b.act && one.request === other.request;
};

/** The answer of a dead process: none. */
export const silence = (): Promise<never> => new Promise<never>(() => undefined);
