import { AsyncLocalStorage } from 'node:async_hooks';
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
}

/** One attempt, and what it did to the world. */
export interface Attempt {
  readonly node: string;
  readonly act: Act;
  readonly attempt: number;
  readonly toolName: string;
  /** Its tool can be asked what became of it, and its late answer counts. */
  readonly isVerifiable: boolean;
  /** How often it changed the world, or asked for that. */
  touches: number;
  /** A person approved it for another input than it has. */
  isUnapproved: boolean;
}

/** Who acts: an attempt, while its process lives; or the server, which goes on with a request whose caller has gone. */
export interface Actor {
  readonly attempt: Attempt;
  isAlive(): boolean;
}

/** An effect, and whether it is there. */
export interface Effect {
  readonly key: string;
  readonly value: unknown;
  readonly by: Attempt;
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

/** The world of one schedule: it outlives its processes. */
export class Ledger implements World {
  readonly effects: Effect[] = [];
  readonly doubled: Doubled[] = [];
  /** What a test did wrong with it. */
  misuse: string | undefined;
  readonly #runtime: VirtualRuntime;

  constructor(runtime: VirtualRuntime) {
    this.#runtime = runtime;
  }

  add(key: string, value?: unknown): void {
    const by = this.#actor(`add(${JSON.stringify(key)})`);
    if (by === undefined) return;
    const isTwice = this.effects.some(
      (effect) => isThere(effect) && (effect.key === key || (effect.by !== by && isSameWork(effect.by, by))),
    );
    this.effects.push({ key, value, by, isRemoved: false, reversals: 0 });
    if (isTwice) this.#note({ key, node: by.node, what: by.act === 'undo' ? 'undone' : 'done' });
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  get(key: string): unknown {
    return this.#find(key)?.value;
  }

  remove(key: string): boolean {
    if (this.#actor(`remove(${JSON.stringify(key)})`) === undefined) return false;
    const there = this.effects.filter((effect) => effect.key === key && isThere(effect));
    for (const effect of there) effect.isRemoved = true;
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
    const actor = acting.getStore();
    return new Promise((resolve) => {
      this.#runtime.after(ms).subscribe(() => {
        if (actor?.isAlive() !== false) resolve();
      });
    });
  }

  #find(key: string): Effect | undefined {
    return this.effects.find((effect) => effect.key === key && isThere(effect));
  }

  #note(doubled: Doubled): void {
    if (!this.doubled.some(({ key, what }) => key === doubled.key && what === doubled.what)) this.doubled.push(doubled);
  }

  /** Who changes it; nothing of a dead process does. */
  #actor(what: string): Attempt | undefined {
    const actor = acting.getStore();
    if (actor === undefined) {
      this.misuse =
        `world.${what} was called outside of what a tool's execute, verify or compensate does, ` +
        'so that nobody knows whose effect it is; call it there, or after an await in there';
      return undefined;
    }
    if (!actor.isAlive()) return undefined;
    actor.attempt.touches++;
    return actor.attempt;
  }
}

export const isThere = ({ isRemoved, reversals }: Effect): boolean => !isRemoved && reversals === 0;

/** What one node runs is to be done once, by whichever attempt; so is its undoing. */
const isSameWork = (a: Attempt, b: Attempt): boolean => a.node === b.node && a.act === b.act;

/** The answer of a dead process: none. */
export const silence = (): Promise<never> => new Promise<never>(() => undefined);
