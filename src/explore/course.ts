import type { TraceEvent } from '../contract/event.ts';
import type { Act, Fault, Schedule } from './schedule.ts';
import type { Attempt } from './world.ts';

/** What strikes a request of an attempt, by its number. */
export type Requested = (number: number) => Fault | undefined;

/** How one schedule goes: which attempts it came to, in order, and what strikes them. Outlives its processes. */
export class Course {
  readonly reached: Attempt[] = [];
  /** Places in `reached` of what was struck, in the order of the schedule. */
  readonly struckAt: number[] = [];
  readonly #schedule: Schedule;
  readonly #counts = new Map<string, number>();
  /** By `callKey`: the node whose attempt had it. */
  readonly #nodes = new Map<string, string>();

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** An attempt begins: counts it, and says what strikes it. */
  reach(
    node: string,
    act: Act,
    toolName: string,
    isVerifiable: boolean,
  ): { readonly attempt: Attempt; readonly fault: Fault | undefined; readonly requested: Requested } {
    const name = `${act} ${node}`;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const place = this.reached.length;
    const counts = { touches: 0, requests: 0, isUnapproved: false };
    const attempt: Attempt = { node, act, attempt: count, place, toolName, isVerifiable, ...counts };
    this.reached.push(attempt);
    const strikes = this.#schedule.filter((one) => one.node === node && one.act === act && one.attempt === count);
    const requested: Requested = (number) => this.#struck(place, strikes, number);
    return { attempt, fault: this.#struck(place, strikes, undefined), requested };
  }

  #struck(place: number, strikes: Schedule, number: number | undefined): Fault | undefined {
    const strike = strikes.find(({ request }) => request === number);
    if (strike !== undefined) this.struckAt.push(place);
    return strike?.fault;
  }

  /** Every strike of the schedule has struck. */
  get isComplete(): boolean {
    return this.struckAt.length === this.#schedule.length;
  }

  count(act: Act, node: string): number {
    return this.#counts.get(`${act} ${node}`) ?? 0;
  }

  know(callKey: string, node: string): void {
    this.#nodes.set(callKey, node);
  }

  nodeOf(callKey: string): string | undefined {
    return this.#nodes.get(callKey);
  }
}

/** Whose attempt runs, as the trace of one process tells it. */
export class Whose {
  readonly #nodes = new Map<string, string>();
  /** What runs undoes. A process that resumes does nothing else. */
  isUndoing: boolean;
  /** Of the attempt whose work is just being started. */
  current: string | undefined;
  /** The call of that attempt. */
  call = '';

  constructor(isUndoing: boolean) {
    this.isUndoing = isUndoing;
  }

  hear(event: TraceEvent): void {
    if (event.source === 'call' && event.type === 'call_started' && event.nodeId !== undefined)
      this.#nodes.set(event.callId, event.nodeId);
    if (event.source !== 'turn') return;
    if (event.type === 'compensation_started') this.isUndoing = true;
    if (event.type === 'turn_started') this.isUndoing = false;
  }

  /** For `around` of a layer. */
  readonly around = (callId: string, _attempt: number, run: () => unknown): unknown => {
    const { current, call } = this;
    this.current = this.#nodes.get(callId);
    this.call = callId;
    try {
      return run();
    } finally {
      Object.assign(this, { current, call });
    }
  };
}
