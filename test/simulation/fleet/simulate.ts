import { LedgerFleet } from '../../../src/fleet/engine.ts';
import type { FleetEngine } from '../../../src/contract/fleet/port.ts';
import type { TraceEvent } from '../../../src/contract/event.ts';
import type { DedupeStore } from '../../../src/contract/store.ts';
import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import { tool } from '../../../src/layer/tool.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import type { Plan } from '../../../src/contract/turn.ts';
import { plan } from '../../../src/turn/plan.ts';
import { Dice } from '../dice.ts';
import { SideWorld } from '../side-world.ts';
import type { Outcome } from '../simulate.ts';
import { LedgerModel } from './ledger.ts';
import { Machine } from './machine.ts';
import { Queue } from './queue.ts';

/** Faults stop here; after it, all must settle. */
const FAULTS_MS = 15_000;
/** A lock, a look at it, and what is left of a freeze. */
const TAKEOVER_MS = 15_000;
const TURN_MS = 60_000;
const END_MS = TURN_MS + FAULTS_MS + 2 * TAKEOVER_MS;
const STEP_MS = 250;

const drawPlan = (dice: Dice): Plan => {
  const nodes = dice.int(1, 5);
  return plan.from(
    Array.from({ length: nodes }, (_, at) => ({
      id: `n${at}`,
      tool: 'work',
      input: { ms: dice.pick([0, 5, 100, 900, 2_500]), failures: dice.chance(0.2) ? 1 : 0 },
      needs: Array.from({ length: at }, (_unused, need) => `n${need}`).filter(() => dice.chance(0.4)),
      ...(dice.chance(0.2) ? { optional: true } : {}),
    })),
    { timeoutMs: dice.chance(0.15) ? dice.int(100, 4_000) : TURN_MS },
  );
};

/** A fleet over the port that real engines fill: what all share is a model, what runs is the source. */
export class FleetWorld {
  readonly side: SideWorld;
  readonly dice: Dice;
  readonly ledger: LedgerModel;
  readonly queue: Queue;
  readonly store: DedupeStore;
  readonly machines: Machine[] = [];
  readonly effects: Map<string, number> = new Map();
  readonly served: Set<string> = new Set();
  readonly client: FleetEngine;
  #started = 0;

  constructor(seed: number, log?: (line: string) => void) {
    this.side = new SideWorld(seed, log);
    const { runtime } = this.side;
    this.dice = new Dice(seed, 90);
    this.ledger = new LedgerModel(() => runtime.now());
    this.queue = new Queue(runtime);
    this.store = memoryStore({ runtime, sweepMs: Infinity });
    this.client = this.#engineAt(new Machine('client', runtime, new Dice(seed, 91)));
  }

  #engineAt(machine: Machine): FleetEngine {
    const methods = ['enter', 'begin', 'write', 'owns', 'yields', 'read', 'cancel', 'beat', 'leave'] as const;
    return new LedgerFleet({
      ledger: machine.over(this.ledger, methods),
      dispatcher: this.queue.dispatcher(machine),
      runtime: machine.runtime,
      maxOpen: 1_000,
      answerTimeoutMs: 600_000,
    });
  }

  /** Hands a turn over, at once. */
  enter(turnId: string, planned: Plan): Promise<unknown> {
    const submitted = this.client.submit(turnId, planned);
    return Promise.race([submitted, this.side.runtime.advance(100)]);
  }

  start(): Machine {
    const { runtime, seed } = this.side;
    const machine = new Machine(`m${++this.#started}`, runtime, new Dice(seed, 92, this.#started));
    const asked = machine.over(this.store, ['get', 'setIfNotExists', 'compareAndSet', 'renew', 'delete']);
    const store: DedupeStore = {
      get: (key) => asked.get(key),
      setIfNotExists: (claim, over) => asked.setIfNotExists(claim, over),
      compareAndSet: (key, version, outcome) => asked.compareAndSet(key, version, outcome),
      renew: (key, version, leaseMs) => asked.renew(key, version, leaseMs),
      delete: (key, version) => asked.delete(key, version),
      byTool: (name) => asked.byTool(name),
      bySession: (session) => asked.bySession(session),
      sweep: () => 0,
      report: () => ({ kind: 'model', durability: 'replicated', shared: true, warnings: [] }),
    };
    const work = tool({
      name: 'work',
      policy: {
        effects: 'mutating',
        enforcesKey: true,
        breaker: false,
        timeoutMs: 50_000,
        retry: { maxTotalTimeMs: 50_000, initialDelayMs: 300, maxDelayMs: 2_000 },
      },
      execute: ({ ms, failures }: { readonly ms: number; readonly failures: number }, context) =>
        this.#work(machine, ms, failures, context),
    });
    const layer = createSpillway({ tools: [work], store, runtime: machine.runtime });
    this.#engineAt(machine).serve({ layer, worker: machine.name, concurrency: 4, drainMs: 1_000 });
    this.machines.push(machine);
    return machine;
  }

  async #work(
    machine: Machine,
    ms: number,
    failures: number,
    { callKey, attempt, signal }: { readonly callKey: string; readonly attempt: number; readonly signal: AbortSignal },
  ): Promise<string> {
    const [turnId = '', nodeId = ''] = callKey.split('/');
    this.side.check(
      machine.wasAway || this.ledger.turns.get(turnId)?.nodes.has(nodeId) !== true,
      'FLT-2',
      () => `${callKey} is run again by ${machine.name}, though the journal has it`,
    );
    await new Promise<void>((resolve) => {
      machine.runtime.after(ms).subscribe(() => resolve());
    });
    if (signal.aborted) throw new ToolExecutionError('canceled', 'stopped');
    if (attempt <= failures) throw new ToolExecutionError('transport_error', 'reset', { executed: false });
    if (!this.served.has(callKey)) {
      this.served.add(callKey);
      const node = `${turnId}/${nodeId}`;
      this.effects.set(node, (this.effects.get(node) ?? 0) + 1);
    }
    return machine.name;
  }

  /** A fault of one machine, or of what all share. */
  fault(): void {
    const { dice, side } = this;
    const alive = this.machines.filter(({ isDead }) => !isDead);
    const machine = alive[dice.int(0, Math.max(0, alive.length - 1))];
    if (machine === undefined) return void this.start();
    const kind = dice.pick(['kill', 'freeze', 'cut', 'loss', 'start'] as const);
    side.log?.(`${side.elapsedMs} ---- ${kind} ${machine.name}`);
    if (kind === 'kill') machine.kill();
    else if (kind === 'freeze') machine.freeze(dice.int(500, 6_000));
    else if (kind === 'cut') machine.cut(dice.int(500, 6_000));
    else if (kind === 'start') this.start();
    else for (const one of alive) one.cut(dice.int(500, 2_500));
    if (kind === 'kill') side.findings.saw('a worker of a fleet is killed');
    if (kind === 'freeze') side.findings.saw('a worker of a fleet stands still');
    if (kind === 'loss') side.findings.saw('a fleet loses its engine');
  }
}

const review = (world: FleetWorld, turnId: string, planned: Plan, events: readonly TraceEvent[]): void => {
  const { side } = world;
  const turn = world.ledger.turns.get(turnId);
  side.check(
    events.every(({ seq }, at) => seq === at + 1),
    'FLT-3',
    () => `${turnId}: ${events.map(({ seq }) => seq).join()}`,
  );
  const ends = events.filter((event) => event.source === 'turn' && event.type === 'settled');
  side.check(turn?.isSettled === true && ends.length === 1, 'FLT-1', () => `${turnId} settles ${ends.length} times`);
  const starts = events.filter(({ type }) => type === 'turn_started');
  side.check(starts.length === 1, 'FLT-3', () => `${turnId} starts ${starts.length} times`);
  const [end] = ends;
  if (end?.source !== 'turn' || end.type !== 'settled') return;
  const { nodes } = end.result;
  side.check(nodes.length === planned.nodes.length, 'FLT-1', () => `${turnId} tells ${nodes.length} nodes`);
  for (const { id, state } of nodes) {
    const effects = world.effects.get(`${turnId}/${id}`) ?? 0;
    side.check(effects <= 1, 'FLT-2', () => `${turnId}/${id} has ${effects} effects`);
    side.check(state !== 'succeeded' || effects === 1, 'FLT-2', () => `${turnId}/${id} succeeded without an effect`);
    side.check(
      state === 'succeeded' || planned.options.timeoutMs !== TURN_MS,
      'FLT-4',
      () => `${turnId}/${id} is ${state}, though nothing but machines failed: ${JSON.stringify(nodes).slice(0, 600)}`,
    );
    const settled = events.filter((event) => event.type === 'node_settled' && event.nodeId === id);
    side.check(settled.length === 1, 'FLT-3', () => `${turnId}/${id} is told to settle ${settled.length} times`);
  }
  if (events.some(({ type }) => type === 'turn_moved')) side.findings.saw('a turn moves');
  if (end.result.status === 'partial') side.findings.saw('a turn of a fleet is harvested at its deadline');
};

/** One run: workers that die, stand still and are cut off, and an engine that is lost, all drawn from the seed. */
export async function simulateFleet(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new FleetWorld(seed, log);
  const { side, dice } = world;
  const { runtime } = side;
  for (let machines = dice.int(1, 3); machines > 0; machines--) world.start();
  const plans = Array.from({ length: dice.int(1, 5) }, () => drawPlan(dice));
  const told = plans.map((): TraceEvent[] => []);
  const ended = plans.map(() => false);
  plans.forEach((planned, at) => {
    runtime.scheduler.after(dice.int(0, 5_000), () => {
      const turnId = `turn-${at}`;
      void world.client.submit(turnId, planned).then(() =>
        world.client.attach(turnId).subscribe({
          next: (event) => {
            told[at]?.push(event);
            side.heard(event);
          },
          complete: () => (ended[at] = true),
        }),
      );
    });
  });
  for (let faults = dice.int(0, 6); faults > 0; faults--)
    runtime.scheduler.after(dice.int(0, FAULTS_MS), () => world.fault());
  runtime.scheduler.after(FAULTS_MS + 1, () => world.start());
  while (side.elapsedMs < END_MS && !ended.every(Boolean)) await runtime.advance(STEP_MS);
  plans.forEach((planned, at) => review(world, `turn-${at}`, planned, told[at] ?? []));
  for (const machine of world.machines) machine.kill();
  return side.outcome;
}
