import { Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeStore } from '../contract/store.ts';
import type { VirtualRuntime } from '../testing/virtual-runtime.ts';
import type { Fault } from './schedule.ts';
import { silence } from './world.ts';

/** Whether a process may still act. Once it is dead nothing of it goes on. */
export class Life {
  readonly died: Promise<void>;
  #isAlive = true;
  #end: () => void = () => undefined;

  constructor() {
    this.died = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  isAlive(): boolean {
    return this.#isAlive;
  }

  end(): void {
    this.#isAlive = false;
    this.#end();
  }
}

/** The clock of a process: its timers do not go off once it is dead. */
export const mortal = (runtime: VirtualRuntime, life: Life): Runtime => ({
  now: () => runtime.now(),
  wallNow: () => runtime.wallNow(),
  random: () => runtime.random(),
  id: () => runtime.id(),
  after: (ms) =>
    new Observable((subscriber) =>
      runtime.after(ms).subscribe(() => {
        if (!life.isAlive()) return;
        subscriber.next(0);
        subscriber.complete();
      }),
    ),
});

const broken = (): Error => Object.assign(new Error('Explored fault: the store broke off'), { code: 'ECONNRESET' });

/**
 * The store as one process reaches it, each answer a promise as that of a store elsewhere. The process may die before a
 * question, or before it hears the answer.
 *
 * @param asked says what strikes the next question
 */
export const reached = (
  store: DedupeStore,
  life: Life,
  asked: (question: string) => Fault | undefined,
): DedupeStore => {
  const through =
    <A extends readonly unknown[], T>(name: string, question: (...given: A) => T | PromiseLike<T>) =>
    async (...given: A): Promise<T> => {
      if (!life.isAlive()) return silence();
      const fault = asked(name);
      if (fault === 'dies_before') life.end();
      if (fault === 'fails_before') throw broken();
      if (fault === 'hangs' || fault === 'dies_before') return silence();
      const answer = await question(...given);
      if (fault === 'dies_after') life.end();
      if (fault === 'fails_after') throw broken();
      return life.isAlive() && fault !== 'loses_answer' ? answer : silence();
    };
  return {
    get: through('get', (key: string) => store.get(key)),
    setIfNotExists: through('setIfNotExists', (...given: Parameters<DedupeStore['setIfNotExists']>) =>
      store.setIfNotExists(...given),
    ),
    compareAndSet: through('compareAndSet', (...given: Parameters<DedupeStore['compareAndSet']>) =>
      store.compareAndSet(...given),
    ),
    renew: through('renew', (...given: Parameters<DedupeStore['renew']>) => store.renew(...given)),
    delete: through('delete', (...given: Parameters<DedupeStore['delete']>) => store.delete(...given)),
    byTool: (name) => store.byTool(name),
    bySession: (key) => store.bySession(key),
    sweep: () => store.sweep(),
    ...(store.changes === undefined ? {} : { changes: (key: string) => store.changes?.(key) ?? new Observable() }),
  };
};
