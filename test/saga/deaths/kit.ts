import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Done, Place, Settled, Task } from './worker.ts';

const WORKER = join(import.meta.dirname, 'worker.ts');
/** A machine at work starts processes slowly, and leases have to run out. */
const WAIT_MS = 120_000;

/** How a process ended: with its steps, or killed at the one it was to be killed at. */
export type End = Done | 'killed';

/** Two processes that finish what others have left. */
export interface Survivors {
  /** Has both resume at once, until nothing is left; resolves then. @throws Error when that takes minutes */
  settled(task: Omit<Task, 'act'>): Promise<void>;
}

/** Processes that do one thing each, and what is left of them. */
export interface World {
  place(kind: Place['kind'], name: string): Place;
  /** Runs one to its end. @throws Error for an end of another kind */
  run(task: Task): Promise<End>;
  survivors(): Promise<Survivors>;
  /** Kills whatever still runs. */
  end(): Promise<void>;
}

const forked = (task: Task | 'survive'): ChildProcess =>
  fork(WORKER, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });

const ended = async (child: ChildProcess, task: Task): Promise<End> => {
  let done: Done | undefined;
  child.on('message', (message: Done) => (done = message));
  // On a machine at work it is known to have ended before its last message is read.
  await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  if (done !== undefined) return done;
  if (child.signalCode === 'SIGKILL') return 'killed';
  throw new Error(`the process of ${task.turnId} ended with ${child.exitCode ?? child.signalCode}`);
};

const survivorsOf = async (children: readonly ChildProcess[]): Promise<Survivors> => {
  const settled = children.map((child) => {
    const turns = new Set<string>();
    child.on('message', (message: Settled | 'ready') => {
      if (message !== 'ready') turns.add(message.turnId);
    });
    return turns;
  });
  await Promise.all(children.map(async (child) => once(child, 'message')));
  return {
    settled: async (task) => {
      for (const child of children) {
        if (child.connected) child.send({ ...task, act: 'resume' } satisfies Task);
        else
          throw new Error(`one that finishes what others have left ended with ${child.exitCode ?? child.signalCode}`);
      }
      for (
        const endMs = performance.now() + WAIT_MS;
        !settled.every((turns) => turns.has(task.turnId));
        await sleep(20)
      )
        if (performance.now() > endMs) throw new Error(`${task.place.prefix} is not settled after ${WAIT_MS} ms`);
    },
  };
};

/** @param redis the socket of a server */
export const world = (folder: string, redis: string): World => {
  const children = new Set<ChildProcess>();
  const kept = (child: ChildProcess): ChildProcess => {
    children.add(child);
    child.once('exit', () => children.delete(child));
    return child;
  };
  return {
    place: (kind, name) => {
      const own = join(folder, name);
      mkdirSync(own);
      writeFileSync(join(own, 'books'), '');
      const path = kind === 'sqlite' ? join(own, 'store.db') : redis;
      return { kind, path, prefix: `${name}:`, books: join(own, 'books') };
    },
    run: async (task) => ended(kept(forked(task)), task),
    survivors: async () => survivorsOf([kept(forked('survive')), kept(forked('survive'))]),
    end: async () => {
      await Promise.all(
        [...children].map(async (child) => {
          const gone = once(child, 'exit');
          child.kill('SIGKILL');
          await gone;
        }),
      );
    },
  };
};
