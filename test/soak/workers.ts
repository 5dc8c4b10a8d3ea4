import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Span } from './checker.ts';
import type { Answer, Order, WorkerTask } from './worker.ts';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

interface Place {
  child: ChildProcess;
  ready: boolean;
  frozenSinceMs: number | undefined;
  /** What it was asked and has not answered. */
  readonly orders: Map<number, Order>;
}

/** Worker processes that are replaced when they die. */
export interface Workers {
  /** Gives an order to one that has room; `false` when none has. */
  order(order: Order): boolean;
  /** One that works; `false` when it does not yet, or stands still. */
  kill(place: number): boolean;
  /** Stops a process where it stands; `thaw` lets it go on. */
  freeze(place: number): boolean;
  thaw(place: number): void;
  /** Ends all and waits until they are gone. */
  stop(): Promise<void>;
  readonly frozen: ReadonlyMap<number, readonly Span[]>;
  /** Every process that was ever started. */
  readonly pids: readonly number[];
  readonly count: number;
  /** All of them work. */
  readonly ready: boolean;
}

export interface WorkersOptions {
  readonly count: number;
  /** Orders that one may have at a time. */
  readonly room: number;
  readonly task: (place: number) => WorkerTask;
  readonly answered: (answer: Answer) => void;
  /** Orders of one that died: nobody knows what became of them. */
  readonly orphaned: (orders: readonly Order[]) => void;
  /** A worker ended by itself: a defect. */
  readonly crashed: (said: string) => void;
}

export function startWorkers({ count, room, task, answered, orphaned, crashed }: WorkersOptions): Workers {
  const frozen = new Map<number, Span[]>();
  const pids: number[] = [];
  const exits: Array<Promise<void>> = [];
  let stopping = false;

  const start = (number: number): Place => {
    const child = fork(WORKER, [JSON.stringify(task(number))], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    const place: Place = { child, ready: false, frozenSinceMs: undefined, orders: new Map() };
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)));
    pids.push(child.pid ?? 0);
    child.on('message', (message: Answer | { ready: true }) => {
      if ('ready' in message) place.ready = true;
      else if (place.orders.delete(message.id)) answered(message);
    });
    // A pipe to a process that was killed.
    child.on('error', () => undefined);
    exits.push(
      new Promise((resolve) => {
        child.once('exit', (code, signal) => {
          endFreeze(place);
          if (!stopping && signal !== 'SIGKILL') crashed(`worker ${child.pid} ended with ${code ?? signal}: ${said}`);
          orphaned([...place.orders.values()]);
          place.orders.clear();
          if (!stopping) places[number] = start(number);
          resolve();
        });
      }),
    );
    return place;
  };

  const endFreeze = (place: Place): void => {
    if (place.frozenSinceMs === undefined) return;
    const pid = place.child.pid ?? 0;
    frozen.set(pid, [...(frozen.get(pid) ?? []), { fromMs: place.frozenSinceMs, toMs: Date.now() }]);
    place.frozenSinceMs = undefined;
  };

  const works = (place: Place | undefined): place is Place =>
    place?.ready === true && place.frozenSinceMs === undefined;
  const places = Array.from({ length: count }, (_, number) => start(number));
  return {
    frozen,
    pids,
    count,
    order: (order) => {
      const free = places.filter((place) => place.ready && place.orders.size < room);
      const [place] = free.toSorted((a, b) => a.orders.size - b.orders.size);
      if (place === undefined) return false;
      place.orders.set(order.id, order);
      place.child.send(order, () => undefined);
      return true;
    },
    get ready() {
      return places.every(({ ready }) => ready);
    },
    kill: (number) => works(places[number]) && places[number].child.kill('SIGKILL'),
    freeze: (number) => {
      const place = places[number];
      if (!works(place)) return false;
      place.frozenSinceMs = Date.now();
      return place.child.kill('SIGSTOP');
    },
    thaw: (number) => {
      const place = places[number];
      if (place?.frozenSinceMs === undefined) return;
      place.child.kill('SIGCONT');
      endFreeze(place);
    },
    stop: async () => {
      stopping = true;
      for (const { child } of places) child.kill('SIGKILL');
      await Promise.all(exits);
    },
  };
}
