import { Observable } from 'rxjs';
import type { TraceEvent } from '../../../src/contract/event.ts';
import type { Runtime } from '../../../src/contract/runtime.ts';
import type { DedupeRecord } from '../../../src/contract/store.ts';
import type { ToolContext } from '../../../src/contract/tool.ts';
import { createSpillway, type Spillway } from '../../../src/spillway.ts';
import { virtualRuntime, type VirtualRuntime } from '../../../src/testing/virtual-runtime.ts';
import { Findings } from '../findings.ts';
import { TraceDigest, line } from '../trace-digest.ts';
import { CallWatch, type Around } from './call-watch.ts';
import { StoreHistory } from './history.ts';
import { KeyWatch } from './key-watch.ts';
import { whyNotLinearizable } from './linearizable.ts';
import { Process } from './process.ts';
import { remoteTool } from './remote-tool.ts';
import { drawKeyScenario, identityOf, type KeyedCall, type KeyedTool, type KeyScenario } from './scenario.ts';
import { storeLink, type LinkTerms } from './store-link.ts';
import type { Kept, StoreAnswer, StoreQuestion } from './store-model.ts';
import { StoreServer, type StoreObserver } from './store-server.ts';

/** A process with its layer. */
export interface Worker {
  readonly process: Process;
  readonly spillway: Spillway;
  /** Timers of the layer. */
  timers: number;
  closed: boolean;
  seq: number;
}

/** Processes, their store and what the tools have done to the world, with everything that watches them. */
export class KeyWorld implements Around, StoreObserver {
  readonly scenario: KeyScenario;
  readonly runtime: VirtualRuntime;
  readonly findings: Findings;
  readonly server: StoreServer;
  readonly history: StoreHistory = new StoreHistory();
  readonly workers: Worker[] = [];
  readonly calls: Map<string, CallWatch> = new Map();
  readonly digest: TraceDigest = new TraceDigest();
  readonly log: ((line: string) => void) | undefined;
  /** The faults have stopped. */
  calm = false;
  /** Until when the store is down, and how. */
  down: { readonly untilMs: number; readonly how: 'refuses' | 'hangs' } | undefined;
  readonly #keys = new Map<string, KeyWatch>();
  /** By the names that the store knows them by. */
  readonly #byStoreKey = new Map<string, KeyWatch>();
  readonly #specs = new Map<string, KeyedCall>();
  readonly #byNumber = new Map<number, CallWatch>();
  readonly #startMs: number;

  constructor(seed: number, log?: (line: string) => void) {
    this.log = log;
    this.scenario = drawKeyScenario(seed);
    this.runtime = virtualRuntime({ seed, shuffle: true });
    this.#startMs = this.runtime.now();
    this.findings = new Findings(() => this.elapsedMs);
    this.server = new StoreServer(this.runtime, this.scenario.inMemory, this);
    for (const spec of this.scenario.processes) this.addWorker(new Process(spec, this.runtime.scheduler, seed));
  }

  get elapsedMs(): number {
    return this.runtime.now() - this.#startMs;
  }

  get storeMs(): number {
    return this.server.now;
  }

  get storeAheadMs(): number {
    return this.server.aheadMs;
  }

  peek(storeKey: string): DedupeRecord | undefined {
    return this.server.peek(storeKey);
  }

  get keys(): Iterable<KeyWatch> {
    return this.#keys.values();
  }

  addWorker(process: Process): Worker {
    const { scenario } = this;
    const worker: Worker = {
      process,
      timers: 0,
      closed: false,
      seq: 0,
      spillway: createSpillway({
        tools: scenario.tools.map((spec) => remoteTool(spec, process, this)),
        runtime: this.#counted(process.runtime, () => worker),
        store: storeLink(process, this.#terms()),
        storeTimeoutMs: scenario.storeTimeoutMs,
        retryBudget: scenario.company.retryBudget,
      }),
    };
    this.workers.push(worker);
    worker.spillway.trace$.subscribe((event) => this.#hear(worker, event));
    return worker;
  }

  /** A call is about to be made: by its number the trace will tell it. */
  announce(call: KeyedCall): string {
    const name = `c${call.n}`;
    this.#specs.set(name, call);
    return name;
  }

  answered(key: string, question: StoreQuestion, reply: StoreAnswer, atMs: number): void {
    this.log?.(`${this.#time()}      store ${key.slice(4, 10)} ${describe(question)} -> ${describe(reply)}`);
    this.#byStoreKey.get(key)?.answered(question, reply, atMs);
  }

  forgot(key: string, kept: Kept): void {
    this.log?.(`${this.#time()}      store ${key.slice(4, 10)} is back at ${describe(kept.record)}`);
    this.history.restored(key, kept, this.storeMs);
    this.#byStoreKey.get(key)?.forgot(kept);
  }

  /** A tool is really called, for call `n`. */
  executing(process: Process, n: number, { attempt, fence }: ToolContext): CallWatch {
    const watch = this.#byNumber.get(n);
    if (watch === undefined) throw new Error(`a tool runs for call ${n}, which nobody began`);
    this.findings.check(
      watch.process === process && watch.running?.own === attempt,
      'TRC-1',
      () => `the tool runs for attempt ${attempt} of call ${n}, and no start was told`,
    );
    this.findings.check(
      watch.unprotected || fence === watch.hold?.version,
      'IDEM-2',
      () => `attempt ${attempt} of call ${n} has fence ${fence}, its lease ${watch.hold?.version}`,
    );
    return watch;
  }

  /** @param acting the tool that does it: the call's own, or an alternative */
  takesEffect({ call, key }: CallWatch, acting: KeyedTool, fence: number): void {
    if (acting.checksFence && fence > 0) {
      if (fence < key.highestFence) return this.findings.saw('resource refuses a stale fence');
      key.highestFence = fence;
    }
    this.log?.(`${this.#time()}      ${key.name} takes effect for ${call.n} under ${fence}`);
    if (acting.effects === 'mutating') key.effects.push({ n: call.n, fence });
  }

  kill({ process }: Worker): void {
    for (const call of this.calls.values()) {
      if (call.process !== process || call.running === undefined) continue;
      if (call.key.calls.some((other) => other.waiting && !other.ended && other.process !== process))
        this.findings.saw('follower waits and leader dies');
    }
    process.kill();
  }

  /** Virtual time is about to go on. */
  leaving(): void {
    for (const call of this.calls.values()) if (!call.process.dead && !call.process.busy) call.leaving();
  }

  checkGivenUp(): void {
    // What runs on for those who wait may.
  }

  /** Once quiet. */
  review(): void {
    const { findings } = this;
    for (const { process, timers } of this.workers)
      findings.check(
        process.dead || timers === 0,
        'RSC-1',
        () => `${timers} timers of process ${process.index} are left`,
      );
    for (const { process, call, ended, running } of this.calls.values()) {
      findings.check(process.dead || (ended && running === undefined), 'RES-2', () => `call ${call.n} never ends`);
    }
    for (const key of this.#keys.values()) key.review();
    for (const [key, asked] of this.history.byKey) {
      const why = whyNotLinearizable(asked);
      findings.check(why === undefined, 'IDEM-6', () => `${this.#byStoreKey.get(key)?.name}: ${why}`);
    }
    const used = [...this.#keys.values()].filter(({ calls }) => calls.length > 0);
    if (used.length === 1 && (used[0]?.calls.length ?? 0) > 3) findings.saw('all calls on one key');
  }

  #time(): string {
    return this.elapsedMs.toFixed(1).padStart(8);
  }

  #terms(): LinkTerms {
    const { scenario, runtime, server, history, findings } = this;
    const { seed, faults, direct, notifies } = scenario;
    return {
      seed,
      faults,
      direct,
      notifies,
      server,
      history,
      scheduler: runtime.scheduler,
      down: () => (this.down !== undefined && runtime.now() < this.down.untilMs ? this.down.how : undefined),
      calm: () => this.calm,
      asked: (_, key, question, refused) => {
        if (question.ask !== 'claim') return;
        const call = this.calls.get(question.claim.request.requestId);
        if (call !== undefined && !this.#byStoreKey.has(key)) this.#byStoreKey.set(key, call.key);
        if (refused) findings.saw('store down at claim');
      },
      heard: (process, key, question, reply, sentMs) => this.#heard(process, key, question, reply, sentMs),
      lost: (_, question, reply) => {
        if (question.ask === 'end' && reply !== undefined) findings.saw('completion reply lost');
      },
    };
  }

  /** An answer of the store reaches the process that asked. */
  #heard(process: Process, key: string, question: StoreQuestion, reply: StoreAnswer, sentMs: number): void {
    if (question.ask === 'claim' && typeof reply === 'object' && 'record' in reply && reply.created === true) {
      const call = this.calls.get(question.claim.request.requestId);
      if (call?.settled === true || call?.abandoned === true) this.findings.saw('late claim given back');
      if (call !== undefined) call.hold = { storeKey: key, version: reply.record.version, sentMs };
    }
    if (question.ask === 'renew' && reply === true) {
      for (const { hold, process: holder } of this.calls.values())
        if (holder === process && hold?.storeKey === key && hold.version === question.version)
          hold.sentMs = Math.max(hold.sentMs, sentMs);
    }
    if (question.ask !== 'end' || typeof reply !== 'object' || 'record' in reply) return;
    this.#byStoreKey.get(key)?.acknowledged(reply);
    if (this.calls.get(reply.request.requestId)?.detached === true) this.findings.saw('detached call is recorded');
  }

  #counted(runtime: Runtime, worker: () => Worker): Runtime {
    return {
      ...runtime,
      after: (ms) =>
        new Observable<0>((subscriber) => {
          worker().timers++;
          subscriber.add(() => worker().timers--);
          runtime.after(ms).subscribe(subscriber);
        }),
    };
  }

  #hear(worker: Worker, event: TraceEvent): void {
    const { process } = worker;
    this.log?.(`${this.#time()} p${process.index} ${line(event)}`);
    this.findings.check(
      event.seq === worker.seq + (event.type === 'layer_started' ? 0 : 1),
      'TRC-1',
      () => `event ${event.seq} of process ${process.index} follows ${worker.seq}`,
    );
    this.findings.check(
      event.atMs === process.now() && !process.dead,
      'TRC-1',
      () => `process ${process.index} tells at ${process.now()} of ${event.atMs}`,
    );
    worker.seq = event.seq;
    this.digest.add(event);
    if (event.source !== 'call') return;
    const watch = event.type === 'call_started' ? this.#begin(worker, event) : this.calls.get(event.callId);
    this.findings.check(watch !== undefined, 'TRC-1', () => `${event.type} of a call that never started`);
    watch?.event(event);
    if (event.type === 'alternative_used')
      watch?.passesTo(this.scenario.tools.find(({ name }) => name === event.toolName));
  }

  #begin(
    { process }: Worker,
    { callId, toolName, toolCallId = '' }: Extract<TraceEvent, { type: 'call_started' }>,
  ): CallWatch | undefined {
    const call = this.#specs.get(toolCallId);
    const tool = this.scenario.tools.find(({ name }) => name === toolName);
    if (call === undefined || tool === undefined) return undefined;
    const identity = identityOf(tool, call);
    let key = this.#keys.get(identity);
    if (key === undefined) this.#keys.set(identity, (key = new KeyWatch(identity, tool, this.findings)));
    const watch = new CallWatch(callId, call, tool, key, process, this);
    key.calls.push(watch);
    this.calls.set(callId, watch);
    this.#byNumber.set(call.n, watch);
    return watch;
  }
}

const describe = (value: unknown): string =>
  JSON.stringify(value, (name, inner: unknown) =>
    name === 'execution' || name === 'idempotencyKey' || name === 'key' ? undefined : inner,
  ) ?? 'nothing';
