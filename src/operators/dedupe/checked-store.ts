import { EMPTY, Observable, isObservable } from 'rxjs';
import type { Awaitable, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { ANSWER_PROBLEMS, recordProblem } from '../../policy/key/store-answer.ts';
import { isPromiseLike } from '../work/output.ts';
import { tornDownAlone } from '../work/torn-down-alone.ts';

/** The code of an answer that cannot be used: the store itself is at fault, and asking again does not help. */
export const BAD_ANSWER = 'bad_answer';

const rubbish = (method: string, problem: string): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    `The store answered ${method} with rubbish: ${problem}. ` +
      'Mend it: storeConformance() of spillway/testing shows how',
    {
      code: BAD_ANSWER,
      classification: 'permanent',
    },
  );

const problemOf = (look: (answer: unknown) => string | undefined, answer: unknown): string | undefined => {
  try {
    return look(answer);
  } catch {
    return 'the answer cannot be read';
  }
};

const checked = <T>(method: keyof typeof ANSWER_PROBLEMS, answer: Awaitable<T>): Awaitable<T> => {
  const look = (settled: T): T => {
    const problem = problemOf(ANSWER_PROBLEMS[method], settled);
    if (problem !== undefined) throw rubbish(method, problem);
    return settled;
  };
  return isPromiseLike(answer) ? answer.then(look) : look(answer);
};

async function* checkedList(
  method: 'byTool' | 'bySession',
  records: AsyncIterable<DedupeRecord>,
): AsyncGenerator<DedupeRecord> {
  if (typeof (records as Partial<AsyncIterable<unknown>> | undefined)?.[Symbol.asyncIterator] !== 'function')
    throw rubbish(method, 'the answer is no async iterable');
  for await (const record of records) {
    const problem = problemOf(recordProblem, record);
    if (problem !== undefined) throw rubbish(method, problem);
    yield record;
  }
}

/**
 * A `changes` stream that fails counts as silent, since waiters also ask from time to time; so does a value that is
 * given at once, as by a `BehaviorSubject`: whoever took that for a change would ask again without end. A value that is
 * no stream is an error.
 */
const checkedChanges = (ask: () => Observable<unknown> | undefined): Observable<unknown> =>
  new Observable<unknown>((subscriber) => {
    let changes: unknown = EMPTY;
    try {
      changes = ask();
    } catch {
      // As a stream that fails.
    }
    if (!isObservable(changes))
      return subscriber.error(
        rubbish(
          'changes',
          `the answer is ${changes === null ? 'null' : `of type ${typeof changes}`}, not an Observable`,
        ),
      );
    let isListening = false;
    const listening = changes.subscribe({
      next: (value) => isListening && subscriber.next(value),
      error: () => undefined,
    });
    isListening = true;
    return listening;
  }).pipe(tornDownAlone);

const METHODS: ReadonlyArray<keyof DedupeStore> = [
  'get',
  'setIfNotExists',
  'compareAndSet',
  'renew',
  'delete',
  'byTool',
  'bySession',
  'sweep',
];

const stores = new WeakMap<DedupeStore, DedupeStore>();

const check = (store: DedupeStore): DedupeStore => ({
  get: (key) => checked('get', store.get(key)),
  setIfNotExists: (claim, over) => checked('setIfNotExists', store.setIfNotExists(claim, over)),
  compareAndSet: (key, version, outcome) => checked('compareAndSet', store.compareAndSet(key, version, outcome)),
  renew: (key, version, leaseMs) => checked('renew', store.renew(key, version, leaseMs)),
  delete: (key, version) => checked('delete', store.delete(key, version)),
  byTool: (tool) => checkedList('byTool', store.byTool(tool)),
  bySession: (sessionKey) => checkedList('bySession', store.bySession(sessionKey)),
  sweep: () => checked('sweep', store.sweep()),
  ...(store.changes === undefined ? {} : { changes: (key: string) => checkedChanges(() => store.changes?.(key)) }),
  ...(store.report === undefined
    ? {}
    : { report: () => checked('report', store.report?.() as ReturnType<NonNullable<DedupeStore['report']>>) }),
  ...(store.close === undefined ? {} : { close: () => store.close?.() }),
});

/**
 * A store whose answers are looked at before anyone acts on them. One that is rubbish fails its operation with
 * `store_unavailable`, permanent, which names what is wrong with it: a store is written by others, and must not throw
 * out of a call or leave it unsettled (R-10.3). The same store gives the same checked one.
 *
 * @throws RangeError for a store that lacks a method
 */
export function checkedStore(store: DedupeStore): DedupeStore {
  for (const method of METHODS) {
    if (typeof (store as Partial<DedupeStore> | undefined)?.[method] === 'function') continue;
    throw new RangeError(`store must have a method ${method}; memoryStore(), sqliteStore() and redisStore() make one`);
  }
  const known = stores.get(store);
  if (known !== undefined) return known;
  const made = check(store);
  stores.set(store, made);
  stores.set(made, made);
  return made;
}
