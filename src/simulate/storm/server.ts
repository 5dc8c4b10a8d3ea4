import type { LatencyEntry, QueueServerEntry, RowServerEntry } from '../../contract/formats/scenario-entry.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { SimulatedTime, Task } from '../time.ts';
import { exponential, lognormal, normal } from './chance.ts';

/** Who waits for a server's answer. */
export interface Asker {
  /** What the resource can know the call by. */
  readonly key: string;
  /** Work was done that has an effect. */
  acted?(): void;
  /** @param error absent when the work was done */
  answered(error?: ToolExecutionError): void;
}

/** A server, as a tool asks it. */
export interface Server {
  /** @returns what to cancel when nobody waits any more */
  ask(asker: Asker): Task;
}

/** Nothing can be called off. */
const UNSTOPPABLE: Task = { cancel: () => undefined };

/*
 * Errors are made once: a stack for each of a million failures would cost more than the calls, and nobody reads it.
 */
const QUEUE_FULL = new ToolExecutionError('execution_error', 'the queue is full', { status: 503 });
// No status: a 409 counts as permanent, and here who asks again may well succeed.
const OVERTAKEN = new ToolExecutionError('execution_error', 'another has written', { classification: 'transient' });

const within = (spans: readonly { from_s: number; to_s: number }[], atS: number): number =>
  spans.findIndex(({ from_s, to_s }) => atS >= from_s && atS < to_s);

const latencyOf = (entry: LatencyEntry, random: () => number): (() => number) => {
  if ('constant_ms' in entry) return () => entry.constant_ms;
  if ('median_ms' in entry) return lognormal(entry.median_ms, entry.p99_ms, random);
  if ('values_ms' in entry) return () => entry.values_ms[Math.floor(random() * entry.values_ms.length)] ?? 0;
  throw new TypeError(`the latencies of ${entry.trace} were not read`);
};

/** Bad weather that servers share: on and off, each for a time of its own. Who asks goes forward in time. */
export class Weather {
  readonly #edges: number[] = [];
  #next = 0;
  constructor(entry: { every_s: number; for_s: number }, untilS: number, random: () => number) {
    let atS = 0;
    while (atS < untilS) {
      for (const mean of [entry.every_s, entry.for_s]) {
        atS += exponential(random, mean);
        this.#edges.push(atS);
      }
    }
  }
  /** Whether it is bad. */
  bad(atS: number): boolean {
    while ((this.#edges[this.#next] ?? Infinity) <= atS) this.#next++;
    // An even place is where it turns bad, an odd one where it turns good.
    return this.#next < this.#edges.length && this.#next % 2 === 1;
  }
}

class Work implements Task {
  readonly asker: Asker;
  readonly #drops: boolean;
  wanted = true;

  constructor(asker: Asker, drops: boolean) {
    this.asker = asker;
    this.#drops = drops;
  }

  cancel(): void {
    if (this.#drops) this.wanted = false;
  }
}

/** A server with so many workers and a queue, which dips, fails and loses what it is asked. */
export class QueueServer implements Server {
  readonly #time: SimulatedTime;
  readonly #entry: QueueServerEntry;
  readonly #random: () => number;
  readonly #latency: () => number;
  readonly #weather: Weather | undefined;
  readonly #failure: ToolExecutionError;
  readonly #waiting: Work[] = [];
  #head = 0;
  #busy = 0;
  #asleep = false;

  constructor(time: SimulatedTime, entry: QueueServerEntry, random: () => number, weather: Weather | undefined) {
    this.#time = time;
    this.#entry = entry;
    this.#random = random;
    this.#latency = latencyOf(entry.latency, random);
    this.#weather = weather;
    const { status = 503, retry_after_ms: retryAfterMs } = entry.errors ?? {};
    this.#failure = new ToolExecutionError('execution_error', 'the server fails', { status, retryAfterMs });
  }

  ask(asker: Asker): Task {
    const { outages = [], queue = Infinity, on_abandon } = this.#entry;
    if (outages.length > 0 && within(outages, this.#atS) !== -1) return UNSTOPPABLE;
    // A refusal takes a step of its own: no answer comes while the question is being asked.
    if (this.#busy >= (this.#entry.workers ?? Infinity) && this.#waiting.length - this.#head >= queue)
      return this.#time.at(this.#time.now(), 0, () => asker.answered(QUEUE_FULL));
    const work = new Work(asker, on_abandon === 'drop');
    this.#waiting.push(work);
    this.#next();
    return work;
  }

  get #atS(): number {
    return this.#time.now() / 1_000;
  }

  #next(): void {
    const { workers = Infinity, dips = [] } = this.#entry;
    while (this.#busy < workers && this.#head < this.#waiting.length) {
      const dip = dips[dips.length === 0 ? -1 : within(dips, this.#atS)];
      if (dip?.factor === 0) return this.#sleep(dip.to_s * 1_000);
      const work = this.#waiting[this.#head++] as Work;
      this.#forget();
      if (!work.wanted) continue;
      this.#busy++;
      this.#time.at(this.#time.now() + this.#latency() / (dip?.factor ?? 1), 0, () => this.#done(work));
    }
  }

  /** Drops what has left the queue, seldom. */
  #forget(): void {
    if (this.#head <= 1_000) return;
    this.#waiting.splice(0, this.#head);
    this.#head = 0;
  }

  #sleep(untilMs: number): void {
    if (this.#asleep) return;
    this.#asleep = true;
    this.#time.at(untilMs, 0, () => {
      this.#asleep = false;
      this.#next();
    });
  }

  #done({ asker }: Work): void {
    this.#busy--;
    const { lost_answers = 0 } = this.#entry;
    const errorRate = this.#errorRate;
    if (errorRate > 0 && this.#random() < errorRate) asker.answered(this.#failure);
    else {
      asker.acted?.();
      if (lost_answers === 0 || this.#random() >= lost_answers) asker.answered();
    }
    this.#next();
  }

  get #errorRate(): number {
    const { errors, bursts = [], weather_rate = 1 } = this.#entry;
    const burst = bursts.length === 0 ? undefined : bursts[within(bursts, this.#atS)];
    if (burst !== undefined) return burst.rate;
    return this.#weather?.bad(this.#atS) === true ? weather_rate : (errors?.rate ?? 0);
  }
}

/**
 * One row under optimistic concurrency: it is read, and written if it is still what was read. The model of "Exponential
 * Backoff And Jitter" (AWS Architecture Blog, 2015): each message takes a time of a normal distribution.
 */
export class RowServer implements Server {
  readonly #time: SimulatedTime;
  readonly #entry: RowServerEntry;
  readonly #random: () => number;
  #version = 0;

  constructor(time: SimulatedTime, entry: RowServerEntry, random: () => number) {
    this.#time = time;
    this.#entry = entry;
    this.#random = random;
  }

  ask(asker: Asker): Task {
    let sent = UNSTOPPABLE;
    const message = (arrived: () => void): void => {
      const { mean, sd } = this.#entry.row.network_ms;
      sent = this.#time.at(this.#time.now() + Math.abs(mean + sd * normal(this.#random)), 0, arrived);
    };
    message(() => {
      const seen = this.#version;
      message(() => message(() => this.#write(asker, seen, message)));
    });
    return { cancel: () => sent.cancel() };
  }

  #write(asker: Asker, seen: number, message: (arrived: () => void) => void): void {
    if (seen === this.#version) {
      this.#version++;
      asker.acted?.();
      return message(() => asker.answered());
    }
    message(() => asker.answered(OVERTAKEN));
  }
}
