import type { DedupeRecord } from '../../../src/contract/store.ts';
import type { Findings } from '../findings.ts';
import type { CallWatch } from './call-watch.ts';
import type { KeyedTool } from './scenario.ts';
import type { Kept, StoreAnswer, StoreQuestion } from './store-model.ts';

export interface Completion {
  readonly payload: string | undefined;
  readonly version: number;
  readonly expiresAtMs: number;
}

/** What one execution did to the world. */
export interface Effect {
  readonly n: number;
  /** Of the claim under which it ran; 0 without one. */
  readonly fence: number;
}

/**
 * A call told that what ran under a claim may not be all that runs: what it is believed for is of that claim, and of no
 * other.
 */
export interface Excuse {
  readonly why: 'lease_lost' | 'superseded' | 'taken_over' | 'unrecorded' | 'unprotected' | 'uncertain';
  readonly n: number;
  /** Of the call's claim; 0 without one. */
  readonly fence: number;
}

/** What leaves room for another effect after it. */
const IN_DOUBT = ['lease_lost', 'superseded', 'unrecorded', 'unprotected', 'uncertain'] as const;

/** One key: what the store really does with it, who runs under it, and what it has done to the world. */
export class KeyWatch {
  readonly name: string;
  readonly tool: KeyedTool;
  readonly calls: CallWatch[] = [];
  readonly effects: Effect[] = [];
  /** Why more than one effect was told of. */
  readonly excuses: Excuse[] = [];
  /** Results that were written under it. */
  readonly contents: Set<string> = new Set();
  readonly failures: Set<string> = new Set();
  current: DedupeRecord | undefined;
  /** The last completion that its writer knows of, for as long as the store keeps its word. */
  completed: Completion | undefined;
  /** Claims up to this one may be forgotten. */
  forgottenUpTo = 0;
  highestFence = 0;
  readonly #findings: Findings;
  #fence = 0;
  /** Fences at which a record had been kept for its time, and the key was free again. */
  readonly #renewals: number[] = [];

  constructor(name: string, tool: KeyedTool, findings: Findings) {
    this.name = name;
    this.tool = tool;
    this.#findings = findings;
  }

  #check(holds: boolean, invariant: 'IDEM-3' | 'IDEM-4', message: () => string): void {
    this.#findings.check(holds, invariant, () => `${this.name}: ${message()}`);
  }

  /** Something took place in the store, whether or not anybody hears of it. */
  answered(question: StoreQuestion, reply: StoreAnswer, atMs: number): void {
    switch (question.ask) {
      case 'claim':
        if (typeof reply === 'object' && 'record' in reply)
          this.#claimed(reply.record, reply.created === true, question.over, atMs);
        return;
      case 'end':
        return this.#ended(question.version, reply as DedupeRecord | undefined);
      case 'renew':
        if (reply !== true || this.current === undefined) return;
        this.#check(
          question.version === this.current.version,
          'IDEM-3',
          () => `a renewal of ${question.version} is accepted, the record is ${this.current?.version}`,
        );
        this.current = { ...this.current, lockUntilMs: atMs + question.leaseMs };
        return;
      case 'delete':
        if (reply !== true) return;
        this.#check(
          question.version === this.current?.version,
          'IDEM-3',
          () => `${this.current?.version} is removed by one who names ${question.version}`,
        );
        this.current = undefined;
        break;
      case 'get':
    }
  }

  /** Its writer hears of a completion. */
  acknowledged({ state, payload, version, expiresAtMs }: DedupeRecord): void {
    // Not what a failover has undone meanwhile.
    if (state === 'done' && this.current?.version === version) this.completed = { payload, version, expiresAtMs };
  }

  /** The store breaks its word: nobody can be held to what is not there. */
  forgot({ record }: Kept): void {
    if (this.current?.state === 'inflight' && record?.version !== this.current.version)
      this.#findings.saw('failover forgot a claim');
    this.current = record;
    this.completed = undefined;
    this.forgottenUpTo = this.#fence;
  }

  /** Once quiet. */
  review(): void {
    if (this.tool.effects !== 'mutating') return;
    const periods = new Map<number, Effect[]>();
    for (const effect of this.effects) {
      const period = this.#renewals.filter((fence) => fence <= effect.fence).length;
      periods.set(period, [...(periods.get(period) ?? []), effect]);
    }
    for (const effects of periods.values()) {
      if (effects.length < 2) continue;
      const names = effects.map(({ n, fence }) => `${n} (fence ${fence})`).join(' and ');
      const untold = effects.find((effect, index) =>
        effects.slice(0, index).some((earlier) => !this.#mayFollow(earlier, effect)),
      );
      this.#findings.check(
        untold === undefined,
        'IDEM-5',
        () =>
          `${this.name} took effect ${effects.length} times, by calls ${names}, and nobody told of that by ${untold?.n}; told was ${JSON.stringify(this.excuses)}`,
      );
      this.#findings.saw('several effects under one key, and told so');
    }
  }

  /**
   * Whether somebody told of two effects: who made the one of the lower fence may have told that its record is in
   * doubt, who made the other that it took over, and the store may have forgotten. What was told of another claim says
   * nothing of these.
   */
  #mayFollow(one: Effect, other: Effect): boolean {
    const [earlier, later] = one.fence <= other.fence ? [one, other] : [other, one];
    if (earlier.fence > 0 && earlier.fence <= this.forgottenUpTo) return true;
    return (
      this.#told(later, 'taken_over') ||
      this.#told(later, 'unprotected') ||
      IN_DOUBT.some((why) => this.#told(earlier, why))
    );
  }

  #told({ n, fence }: Effect, why: Excuse['why']): boolean {
    return this.excuses.some((excuse) => excuse.why === why && excuse.n === n && excuse.fence === fence);
  }

  #grows(version: number): void {
    this.#check(version > this.#fence, 'IDEM-3', () => `fence ${version} comes after ${this.#fence}`);
    this.#fence = Math.max(this.#fence, version);
  }

  #claimed(record: DedupeRecord, created: boolean, over: number | undefined, atMs: number): void {
    const { completed } = this;
    const kept = completed !== undefined && completed.expiresAtMs > atMs;
    if (!created) {
      this.#check(
        !kept || record.payload === completed.payload,
        'IDEM-4',
        () => `a claim gets ${record.state} ${record.payload}, not the acknowledged ${completed?.payload}`,
      );
      return;
    }
    this.#check(!kept, 'IDEM-4', () => `it is claimed again although ${completed?.payload} was acknowledged`);
    this.#grows(record.version);
    if (over === undefined && this.current !== undefined) {
      this.#renewals.push(record.version);
      this.#findings.saw('forgotten at its time');
    }
    this.current = record;
  }

  #ended(version: number, record: DedupeRecord | undefined): void {
    const { current } = this;
    if (record === undefined) {
      if (
        current !== undefined &&
        current.version > version &&
        this.calls.find(({ callId }) => callId === current.request.requestId)?.wrote !== true
      )
        this.#findings.saw('stale writer refused');
      return;
    }
    this.#check(
      version === current?.version,
      'IDEM-3',
      () => `who holds ${version} ends it as ${record.state}, although ${current?.version} is there`,
    );
    this.#grows(record.version);
    if (record.state === 'cancelled') this.#findings.saw('cancelled in flight');
    const writer = this.calls.find(({ callId }) => callId === record.request.requestId);
    if (writer !== undefined) writer.wrote = true;
    this.#check(
      writer === undefined || writer.attempts > 0,
      'IDEM-4',
      () => `call ${writer?.call.n} ends it as ${record.state} and has tried nothing`,
    );
    if (record.payload !== undefined) this.contents.add(contentOf(record.payload));
    if (record.error !== undefined) this.failures.add(failureName(record.error));
    this.current = record;
  }
}

export const failureName = ({ code, message }: { readonly code: string; readonly message: string }): string =>
  `${code}: ${message}`;

/** What a payload gives to who reads it, as bytes. */
export const contentOf = (payload: string): string => {
  const { output, error } = JSON.parse(payload) as {
    readonly output?: { readonly content?: unknown };
    readonly error?: unknown;
  };
  return JSON.stringify(output === undefined ? error : output.content);
};
