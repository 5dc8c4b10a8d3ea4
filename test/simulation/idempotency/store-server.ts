import type { DedupeRecord, DedupeStore } from '../../../src/contract/store.ts';
import type { VirtualRuntime } from '../../../src/testing/virtual-runtime.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { NOTHING, answer, type Kept, type StoreAnswer, type StoreQuestion } from './store-model.ts';

/** Who watches what really happens in the store. */
export interface StoreObserver {
  answered(key: string, question: StoreQuestion, reply: StoreAnswer, atMs: number): void;
  /** The store no longer has what it had acknowledged. */
  forgot(key: string, now: Kept): void;
}

const FAILOVER_MS = 0.5;

type Change = { readonly key: string; readonly before: Kept; readonly atMs: number };

/**
 * Where the records are: the model, or the store of this package that lives in memory, so that each is held against the
 * other.
 */
export class StoreServer {
  readonly #runtime: VirtualRuntime;
  readonly #memory: DedupeStore | undefined;
  readonly #observer: StoreObserver;
  readonly #kept = new Map<string, Kept>();
  /** What a replica may not have heard of. */
  readonly #changes: Change[] = [];
  readonly #listeners = new Set<(key: string) => void>();
  /** A failover takes its time, if little. */
  #lostMs = 0;

  constructor(runtime: VirtualRuntime, inMemory: boolean, observer: StoreObserver) {
    this.#runtime = runtime;
    this.#observer = observer;
    if (inMemory) this.#memory = memoryStore({ runtime, sweepMs: Infinity });
  }

  get now(): number {
    return this.#runtime.wallNow() + this.#lostMs;
  }

  /** By how much its clock has run ahead of all others. */
  get aheadMs(): number {
    return this.#lostMs;
  }

  get keys(): Iterable<string> {
    return this.#kept.keys();
  }

  ask(key: string, question: StoreQuestion): StoreAnswer {
    const atMs = this.now;
    const before = this.#kept.get(key) ?? NOTHING;
    const [kept, reply] =
      this.#memory === undefined
        ? answer(before, question, atMs)
        : [NOTHING, this.#askMemory(this.#memory, key, question)];
    this.#kept.set(key, kept);
    if (kept !== before) this.#changes.push({ key, before, atMs });
    this.#observer.answered(key, question, reply, atMs);
    // A renewal is no news for those who wait.
    if (question.ask !== 'get' && question.ask !== 'renew') this.#tell(key);
    return reply;
  }

  /** What is there now; nobody asked. */
  peek(key: string): DedupeRecord | undefined {
    const [, reply] =
      this.#memory === undefined
        ? answer(this.#kept.get(key) ?? NOTHING, { ask: 'get' }, this.now)
        : [NOTHING, this.#askMemory(this.#memory, key, { ask: 'get' })];
    return typeof reply === 'object' && 'record' in reply ? reply.record : undefined;
  }

  listen(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A replica takes over that has not heard of the last `lagMs`. */
  failover(lagMs: number): void {
    if (this.#memory !== undefined) return;
    const fromMs = this.now - lagMs;
    const forgotten = new Set<string>();
    for (
      let change = this.#changes.at(-1);
      change !== undefined && change.atMs > fromMs;
      change = this.#changes.at(-1)
    ) {
      this.#changes.pop();
      this.#kept.set(change.key, change.before);
      forgotten.add(change.key);
    }
    this.#lostMs += FAILOVER_MS;
    for (const key of forgotten) this.#forget(key);
  }

  /** Someone clears a key, or all of them. */
  clear(keys: Iterable<string>): void {
    if (this.#memory === undefined) this.#lostMs += FAILOVER_MS;
    for (const key of keys) {
      if (this.#memory === undefined) this.#kept.set(key, NOTHING);
      else this.#askMemory(this.#memory, key, { ask: 'delete', version: undefined });
      this.#forget(key);
    }
    this.#changes.length = 0;
  }

  #forget(key: string): void {
    this.#observer.forgot(key, this.#kept.get(key) ?? NOTHING);
    this.#tell(key);
  }

  /** Whoever is told may listen anew. */
  #tell(key: string): void {
    for (const listener of Array.from(this.#listeners)) listener(key);
  }

  /** It answers at once. */
  #askMemory(store: DedupeStore, key: string, question: StoreQuestion): StoreAnswer {
    switch (question.ask) {
      case 'get':
        return store.get(key) as StoreAnswer;
      case 'claim':
        return store.setIfNotExists(question.claim, question.over) as StoreAnswer;
      case 'end':
        return store.compareAndSet(key, question.version, question.outcome) as StoreAnswer;
      case 'renew':
        return store.renew(key, question.version, question.leaseMs) as StoreAnswer;
      case 'delete':
        return store.delete(key, question.version) as StoreAnswer;
    }
  }
}
