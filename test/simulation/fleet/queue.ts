import { Subject, firstValueFrom, repeat, type Observable } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { Dispatcher, Given, RunEnd } from '../../../src/fleet/dispatcher.ts';
import type { Machine } from './machine.ts';

const LOCK_MS = 3_000;
const BEAT_MS = 1_000;
const POLL_MS = 20;

interface Job {
  readonly turnId: string;
  owner: object | undefined;
  lockUntilMs: number;
  dueAtMs: number;
}

/** What an engine does, and no more: a job is one worker's for as long as its lock is renewed. */
export class Queue {
  readonly #jobs = new Map<string, Job>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  #take(owner: object): Job | undefined {
    const nowMs = this.#runtime.now();
    const free = [...this.#jobs.values()].find(
      (job) => job.dueAtMs <= nowMs && (job.owner === undefined || job.lockUntilMs < nowMs),
    );
    if (free !== undefined) Object.assign(free, { owner, lockUntilMs: nowMs + LOCK_MS });
    return free;
  }

  dispatcher(machine: Machine): Dispatcher {
    const { runtime } = machine;
    return {
      engine: 'simulated',
      add: (turnId) =>
        machine.ask(() => {
          if (!this.#jobs.has(turnId)) this.#jobs.set(turnId, { turnId, owner: undefined, lockUntilMs: 0, dueAtMs: 0 });
        }),
      work: (run, concurrency) => {
        const running = new Set<Job>();
        let isPaused = false;
        const polling = runtime
          .after(POLL_MS)
          .pipe(repeat())
          .subscribe(() => {
            if (isPaused || running.size >= concurrency || machine.isCut) return;
            const owner = {};
            const job = this.#take(owner);
            if (job === undefined) return;
            running.add(job);
            void this.#run(machine, job, owner, run).then(() => running.delete(job));
          });
        return {
          ready: Promise.resolve(),
          pause: async () => {
            isPaused = true;
            polling.unsubscribe();
          },
          close: async () => {
            while (running.size > 0) await firstValueFrom(runtime.after(POLL_MS));
          },
        };
      },
      close: async () => undefined,
    };
  }

  async #run(machine: Machine, job: Job, owner: object, run: (given: Given) => Observable<RunEnd>): Promise<void> {
    const lost$ = new Subject<unknown>();
    const beats = machine.runtime
      .after(BEAT_MS)
      .pipe(repeat())
      .subscribe(() => {
        if (machine.isCut) return;
        if (job.owner === owner) job.lockUntilMs = this.#runtime.now() + LOCK_MS;
        else lost$.next(job.turnId);
      });
    const end = await firstValueFrom(run({ turnId: job.turnId, lost$ }));
    beats.unsubscribe();
    if (job.owner !== owner) return;
    if (end.act === 'done') this.#jobs.delete(job.turnId);
    else Object.assign(job, { owner: undefined, dueAtMs: this.#runtime.now() + end.afterMs });
  }
}
