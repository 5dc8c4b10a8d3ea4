import type { BreakerStateName } from '../../src/contract/breaker-state.ts';
import type { ToolEvent, TraceEvent } from '../../src/contract/event.ts';
import type { Awaitable, DedupeOutcome, DedupeRecord, DedupeStore } from '../../src/contract/store.ts';
import { createSpillway, type Spillway } from '../../src/spillway.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { scriptedTool, type ScriptedStep } from '../../src/testing/scripted-tool.ts';
import { Dice } from './dice.ts';
import type { Outcome } from './simulate.ts';
import { SideWorld } from './side-world.ts';

const SPAN_MS = 800;
const COOLDOWN_MS = 60;
/** Longer than what is held against the number of probes: until the faults stop, nobody's probe is revoked. */
const HALF_OPEN_TIMEOUT_MS = 2_000;
const STORE_TIMEOUT_MS = 50;
/** A rejection takes less. */
const REJECTION_MS = 10;
const SLACK_MS = 1e-6;

interface Drawn {
  readonly processes: number;
  readonly probes: number;
  readonly successThreshold: number;
  readonly calls: number;
  readonly outages: ReadonlyArray<readonly [fromMs: number, toMs: number]>;
  /** When the store says nothing at all. */
  readonly lost: readonly [fromMs: number, toMs: number] | undefined;
  readonly waysMs: readonly [number, ...number[]];
  readonly notifies: boolean;
}

const draw = (seed: number): Drawn => {
  const dice = new Dice(seed, 80);
  const span = (longMs: number): readonly [number, number] => {
    const fromMs = dice.int(0, SPAN_MS / 10) * 10;
    return [fromMs, fromMs + dice.int(2, longMs / 10) * 10];
  };
  return {
    processes: dice.int(2, 4),
    probes: dice.pick([1, 1, 2, 3]),
    successThreshold: dice.int(1, 3),
    calls: dice.int(10, 60),
    outages: [span(300), span(200)],
    lost: dice.chance(0.3) ? span(300) : undefined,
    waysMs: dice.pick<readonly [number, ...number[]]>([[0], [0, 1, 2], [1, 3, 8, 20]]),
    notifies: dice.chance(0.5),
  };
};

/** An attempt that runs, and whether its process was half-open when it began. */
interface Running {
  readonly process: number;
  readonly probe: boolean;
  /** Openings of the record when it began: one of an earlier time is an old probe. */
  readonly openings: number;
}

/** When a call was made, and whether its process knew by then that the store is lost. */
interface Asked {
  readonly atMs: number;
  readonly storeLost: boolean;
}

/** One process: its layer, what its breaker shows, and whether it knows that the store is lost. */
class Process {
  readonly spillway: Spillway;
  type: BreakerStateName = 'closed';
  storeLost = false;

  constructor(spillway: Spillway) {
    this.spillway = spillway;
  }
}

/** Several layers over one store, each by its own way to it. */
class SharedWorld extends SideWorld {
  readonly drawn: Drawn;
  readonly processes: Process[] = [];
  calm = false;
  /** The store was silent at any time: from then on each process may have gone by its own. */
  #wasLost = false;
  readonly #store: DedupeStore;
  readonly #running = new Map<string, Running>();
  readonly #asked = new Map<string, Asked>();
  /** The record as the store holds it: when it was written, and until when it is open. */
  #record: { readonly ackedMs: number; readonly openUntilMs: number } | undefined;
  #openings = 0;
  #openedBy = -1;
  #questions = 0;

  constructor(seed: number, log?: (line: string) => void) {
    super(seed, log);
    this.drawn = draw(seed);
    this.#store = memoryStore({ runtime: this.runtime, sweepMs: Infinity });
    const { probes, successThreshold, processes } = this.drawn;
    const breaker = {
      failureThreshold: 2,
      failureRate: Infinity,
      windowMs: 10_000,
      cooldownMs: COOLDOWN_MS,
      probes,
      successThreshold,
      halfOpenTimeoutMs: HALF_OPEN_TIMEOUT_MS,
    } as const;
    for (let index = 0; index < processes; index++) {
      const policy = { effects: 'read', timeoutMs: 1_000, retry: { maxAttempts: 1 }, breaker } as const;
      const tool = scriptedTool(
        { name: 't', policy, script: (input) => this.#stepOf(input as { readonly n: number }) },
        this.runtime.scheduler,
      );
      const spillway = createSpillway({
        tools: [tool],
        runtime: this.runtime,
        store: this.#linkOf(index),
        shareBreakers: true,
        storeTimeoutMs: STORE_TIMEOUT_MS,
      });
      const process = new Process(spillway);
      this.processes.push(process);
      spillway.trace$.subscribe((event) => this.#hear(index, process, event));
    }
  }

  call(n: number, index: number): void {
    void this.processes[index]?.spillway.execute({ toolName: 't', input: { n } });
  }

  review(): void {
    this.check(this.#running.size === 0, 'RES-2', () => `${this.#running.size} attempts never end`);
  }

  #stepOf({ n }: { readonly n: number }): ScriptedStep {
    const dice = new Dice(this.seed, 81, n);
    const afterMs = dice.pick([0, 5, 10, 20, 60]);
    const isDown =
      !this.calm && this.drawn.outages.some(([fromMs, toMs]) => this.elapsedMs >= fromMs && this.elapsedMs < toMs);
    return isDown
      ? { afterMs, error: Object.assign(new Error('unavailable'), { status: 503 }) }
      : { afterMs, value: n };
  }

  get #isSilent(): boolean {
    const { lost } = this.drawn;
    return !this.calm && lost !== undefined && this.elapsedMs >= lost[0] && this.elapsedMs < lost[1];
  }

  /** A process's way to the store: a question takes place when it gets there, and its answer takes as long again. */
  #linkOf(index: number): DedupeStore {
    const { scheduler } = this.runtime;
    const store = this.#store;
    const send = <T>(ask: () => Awaitable<T>, heard?: (answer: T) => void): Promise<T> => {
      const dice = new Dice(this.seed, 82, index, this.#questions++);
      const [thereMs, backMs] = [dice.pick(this.drawn.waysMs), dice.pick(this.drawn.waysMs)];
      if (thereMs + backMs >= REJECTION_MS) this.findings.saw('a store that is slow');
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      scheduler.after(thereMs, () => {
        if (this.#isSilent) {
          this.#wasLost = true;
          return;
        }
        try {
          // The memory of this process answers at once.
          const answer = ask() as T;
          heard?.(answer);
          scheduler.after(backMs, () => resolve(answer));
        } catch (error) {
          reject(error);
        }
      });
      return promise;
    };
    const deleted = (isDone: boolean): void => {
      if (isDone) this.#record = undefined;
    };
    const written =
      (outcome: DedupeOutcome) =>
      (record: DedupeRecord | undefined): void => {
        if (record !== undefined) this.#written(index, outcome.payload);
      };
    const changes = store.changes?.bind(store);
    return {
      get: (key) => send(() => store.get(key)),
      setIfNotExists: (claim, over) => send(() => store.setIfNotExists(claim, over)),
      compareAndSet: (key, version, outcome) =>
        send(() => store.compareAndSet(key, version, outcome), written(outcome)),
      renew: (key, version, leaseMs) => send(() => store.renew(key, version, leaseMs)),
      delete: (key, version) => send(() => store.delete(key, version), deleted),
      byTool: (tool) => store.byTool(tool),
      bySession: (sessionKey) => store.bySession(sessionKey),
      sweep: () => store.sweep(),
      ...(this.drawn.notifies && changes !== undefined ? { changes } : {}),
    };
  }

  /** The store has taken a record: what it says holds for all who ask from now on. */
  #written(index: number, payload: string | undefined): void {
    const { type, sinceMs, cooldownMs } = JSON.parse(payload ?? '{}') as {
      readonly type?: string;
      readonly sinceMs: number;
      readonly cooldownMs: number;
    };
    const now = this.runtime.now();
    // The store's clock is the wall's.
    const aheadMs = this.runtime.wallNow() - now;
    this.log?.(`${this.elapsedMs.toFixed(1).padStart(8)} ---- the store takes ${type} from process ${index}`);
    if (type === 'open') {
      this.#openings++;
      this.#openedBy = index;
    }
    this.#record = { ackedMs: now, openUntilMs: type === 'open' ? sinceMs - aheadMs + cooldownMs : -Infinity };
  }

  #hear(index: number, process: Process, event: TraceEvent): void {
    this.log?.(`process ${index}`);
    this.heard(event);
    if (event.source === 'layer') return this.#layer(process, event);
    if (event.source !== 'call') return;
    const key = `${index} ${event.callId}`;
    if (event.type === 'call_started') this.#asked.set(key, { atMs: event.atMs, storeLost: process.storeLost });
    if (event.type === 'attempt_started') this.#started(index, process, key);
    if (event.type === 'rejected') this.#rejected(index, process, event, this.#asked.get(key));
    if (
      event.type === 'settled' &&
      this.#running.get(key)?.probe === true &&
      this.#running.get(key)?.openings !== this.#openings
    )
      this.findings.saw('an old probe ends late');
    if (event.type === 'settled') this.#running.delete(key);
  }

  #layer(process: Process, event: Extract<TraceEvent, { source: 'layer' }>): void {
    if (event.type === 'breaker_changed') process.type = event.to;
    if (event.type !== 'store_changed' || event.state === 'weak') return;
    process.storeLost = event.state === 'lost';
    if (process.storeLost) this.findings.saw('the store is lost');
  }

  #started(index: number, { type }: Process, key: string): void {
    const probe = type === 'half_open';
    this.#running.set(key, { process: index, probe, openings: this.#openings });
    const askedMs = this.#asked.get(key)?.atMs ?? 0;
    const record = this.#record;
    const now = this.runtime.now();
    // Whoever asked before it was written may not have known; and from where the store was silent each goes by its own.
    const isForbidden =
      record !== undefined && !this.#wasLost && askedMs > record.ackedMs && now + SLACK_MS < record.openUntilMs;
    this.check(
      !isForbidden,
      'SHB-2',
      () =>
        `process ${index} begins an attempt asked for ${askedMs - (record?.ackedMs ?? 0)} ms after the store took that it is open, ${(record?.openUntilMs ?? 0) - now} ms before that ends`,
    );
    if (!probe) return;
    const probes = [...this.#running.values()].filter(
      (running) => running.probe && running.openings === this.#openings,
    );
    if (index !== this.#openedBy) this.findings.saw('probes by another process');
    if (probes.length > 1) this.findings.saw('two probes at once');
    this.check(
      this.#wasLost || probes.length <= this.drawn.probes,
      'SHB-1',
      () =>
        `${probes.length} probes at once, of processes ${probes.map((running) => running.process).join(', ')}; ${this.drawn.probes} allowed`,
    );
  }

  #rejected(
    index: number,
    process: Process,
    { error, atMs }: Extract<ToolEvent, { type: 'rejected' }>,
    asked: Asked | undefined,
  ): void {
    if (error.kind !== 'circuit_open') return;
    const { type } = process;
    if (type === 'open' && index !== this.#openedBy) this.findings.saw('one opens for all');
    if (type === 'half_open') this.findings.saw('a probe is refused by the others');
    if (asked?.storeLost !== true || !process.storeLost) return;
    this.findings.saw('a local rejection while the store is lost');
    const tookMs = atMs - asked.atMs;
    this.check(tookMs < REJECTION_MS, 'SHB-4', () => `process ${index} tells a rejection after ${tookMs} ms`);
  }
}

/** Without faults: after a cooldown good calls close it, and each process shows so at its next call. */
async function converge(world: SharedWorld): Promise<void> {
  const { runtime, processes, drawn } = world;
  world.calm = true;
  // Longer than a store that was lost is left alone.
  await runtime.advance(5_000);
  let n = 100_000;
  const callAll = async (): Promise<void> => {
    for (let index = 0; index < processes.length; index++) world.call(n++, index);
    await runtime.advance(300);
  };
  for (let round = 0; round <= drawn.successThreshold; round++) await callAll();
  const shown = processes.map(({ spillway }) => spillway.breakers.get('t').state.type);
  world.check(
    shown.every((type) => type === 'closed'),
    'SHB-3',
    () => `after a cooldown and ${drawn.successThreshold + 1} rounds of good calls they show ${shown.join(', ')}`,
  );
  if (shown.every((type) => type === 'closed')) world.findings.saw('all close');
  for (const { spillway } of processes) void spillway.close();
  await runtime.advance(5_000);
}

/**
 * One run of breakers that several processes share over a store which is slow, or silent for a while: who may
 * begin an attempt is worked out from what the store acknowledged, and when.
 */
export async function simulateSharedBreakers(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new SharedWorld(seed, log);
  const dice = new Dice(seed, 83);
  for (let n = 1; n <= world.drawn.calls; n++) {
    const index = dice.int(0, world.drawn.processes - 1);
    world.runtime.scheduler.after(dice.int(0, SPAN_MS / 5) * 5, () => world.call(n, index));
  }
  await world.runtime.advance(SPAN_MS + 1_000);
  if (world.findings.violations.length === 0) await converge(world);
  await world.toTheEnd();
  if (world.findings.violations.length === 0) world.review();
  return world.outcome;
}
