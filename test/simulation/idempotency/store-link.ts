import { EMPTY, Observable } from 'rxjs';
import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import type { Awaitable, DedupeReading, DedupeRecord, DedupeStore } from '../../../src/contract/store.ts';
import type { VirtualScheduler } from '../../../src/testing/virtual-scheduler.ts';
import { Dice } from '../dice.ts';
import type { StoreHistory } from './history.ts';
import type { Process } from './process.ts';
import { fires, type KeyFaults } from './scenario.ts';
import type { StoreAnswer, StoreQuestion } from './store-model.ts';
import type { StoreServer } from './store-server.ts';

export interface LinkTerms {
  readonly seed: number;
  readonly faults: KeyFaults;
  readonly scheduler: VirtualScheduler;
  readonly server: StoreServer;
  readonly history: StoreHistory;
  /** It answers at once, as memory does. */
  readonly direct: boolean;
  readonly notifies: boolean;
  /** Whether the store is down now, and how: it says so, or says nothing. */
  down(): 'refuses' | 'hangs' | undefined;
  /** The faults have stopped. */
  calm(): boolean;
  asked(process: Process, key: string, question: StoreQuestion, refused: boolean): void;
  heard(process: Process, key: string, question: StoreQuestion, reply: StoreAnswer, sentMs: number): void;
  /** An answer that its process will never get. */
  lost(key: string, question: StoreQuestion, reply: StoreAnswer): void;
}

const WAYS_MS = [0, 0, 0, 5, 5, 10] as const;
const SLOW_MS = [20, 40, 80, 150, 300] as const;
const ERROR_AFTER_MS = [0, 5, 20] as const;

/**
 * A process's way to the store: questions and answers take their time, get lost, come twice, and each answer waits
 * until its process is awake.
 */
export function storeLink(process: Process, terms: LinkTerms): DedupeStore {
  const { seed, faults, scheduler, server, history } = terms;
  let questions = 0;

  const send = <T>(key: string, question: StoreQuestion): Awaitable<T> => {
    const asked = history.sent(key, question, server.now);
    const sentMs = process.now();
    const takesPlace = (): StoreAnswer => history.happens(asked, () => server.ask(key, question));
    if (terms.direct || terms.calm()) {
      terms.asked(process, key, question, false);
      const reply = takesPlace();
      history.heard(asked, reply, server.now);
      terms.heard(process, key, question, reply, sentMs);
      return reply as T;
    }
    const dice = new Dice(seed, 3, process.index, questions++);
    const slow = fires(faults, 'slow_store', dice);
    const wayMs = (): number => (slow && dice.chance(0.6) ? dice.pick(SLOW_MS) : dice.pick(WAYS_MS));
    const [thereMs, backMs] = [wayMs(), wayMs()];
    const down = terms.down();
    const neverThere = down !== undefined || fires(faults, 'lost_request', dice);
    const neverBack = fires(faults, 'lost_reply', dice);
    const told = (down === undefined && dice.chance(0.4)) || down === 'refuses';
    const twice = fires(faults, 'duplicate', dice);
    const againMs = thereMs + dice.pick([0, 5, 20, 60]);
    terms.asked(process, key, question, neverThere);
    return new Promise<T>((resolve, reject) => {
      const fails = (): void => {
        scheduler.after(dice.pick(ERROR_AFTER_MS), () =>
          process.deliver(() =>
            reject(new ToolExecutionError('store_unavailable', 'the connection to the store was lost')),
          ),
        );
      };
      if (neverThere) return told ? fails() : undefined;
      const arrives = (): void => {
        const reply = takesPlace();
        if (neverBack) {
          terms.lost(key, question, reply);
          return told ? fails() : undefined;
        }
        scheduler.after(backMs, () => {
          if (process.dead) return terms.lost(key, question, reply);
          process.deliver(() => {
            history.heard(asked, reply, server.now);
            terms.heard(process, key, question, reply, sentMs);
            resolve(reply as T);
          });
        });
      };
      // A client that sends again what it had no answer to: the first one took place as well, and only the second is
      // answered.
      if (twice) {
        const first = history.sent(key, question, server.now);
        scheduler.after(thereMs, () => history.happens(first, () => server.ask(key, question)));
        scheduler.after(againMs, arrives);
      } else scheduler.after(thereMs, arrives);
    });
  };

  const listed = async function* (
    fits: (record: DedupeRecord) => boolean,
  ): AsyncGenerator<DedupeRecord, void, undefined> {
    for (const key of Array.from(server.keys)) {
      const record = server.peek(key);
      if (record !== undefined && fits(record)) yield record;
    }
  };

  const changes = (key: string): Observable<unknown> =>
    new Observable((subscriber) =>
      server.listen((changed) => {
        if (changed !== key) return;
        const dice = new Dice(seed, 4, process.index, questions++);
        if (fires(faults, 'no_notice', dice)) return;
        if (terms.direct) return process.deliver(() => subscriber.next(key));
        scheduler.after(dice.pick(WAYS_MS), () => process.deliver(() => subscriber.next(key)));
      }),
    );

  return {
    get: (key) => send<DedupeReading | undefined>(key, { ask: 'get' }),
    setIfNotExists: (claim, over) =>
      send<DedupeReading & { readonly created: boolean }>(claim.key, { ask: 'claim', claim, over }),
    compareAndSet: (key, version, outcome) => send<DedupeRecord | undefined>(key, { ask: 'end', version, outcome }),
    renew: (key, version, leaseMs) => send<boolean>(key, { ask: 'renew', version, leaseMs }),
    delete: (key, version) => send<boolean>(key, { ask: 'delete', version }),
    byTool: (tool) => listed((record) => record.tool === tool),
    bySession: (sessionKey) => listed(({ request }) => request.sessionKey === sessionKey),
    sweep: () => 0,
    changes: (key) => (terms.notifies ? changes(key) : EMPTY),
  };
}
