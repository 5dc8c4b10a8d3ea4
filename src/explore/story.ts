import type { TraceEvent, TurnEvent } from '../contract/event.ts';
import type { AnyTool } from '../contract/tool.ts';
import type { DedupeStore } from '../contract/store.ts';
import type { Plan, TurnResult } from '../contract/turn.ts';
import { createApprovals } from '../gate/approvals.ts';
import { TURN_TIMEOUT_MS, DEDUPE_DEFAULTS } from '../policy/profile.ts';
import { createSpillway, type Spillway } from '../spillway.ts';
import { memoryStore } from '../stores/memory.ts';
import { virtualRuntime, type VirtualRuntime } from '../testing/virtual-runtime.ts';
import { plan as planOf } from '../turn/plan.ts';
import type { ResumedTurn } from '../saga/resume.ts';
import { Course, Whose } from './course.ts';
import { Life, mortal, reached } from './life.ts';
import { Person } from './person.ts';
import type { Fault, Schedule } from './schedule.ts';
import type { Setup } from './setup.ts';
import { explored, exploredNode, needsApproval, type Stage } from './tools.ts';
import { Ledger } from './world.ts';

/** What became of one schedule. */
export interface Story {
  readonly course: Course;
  readonly ledger: Ledger;
  /** How the turn ended, where somebody was told. Of several, the last. */
  readonly result: TurnResult | undefined;
  /** What processes that resumed told. */
  readonly resumed: readonly ResumedTurn[];
  readonly deaths: number;
  /** What did not end. */
  readonly unsettled: string | undefined;
  /** What was left for one more process, after all had settled. */
  readonly left: number;
}

/** How long after its time a turn may take to undo what it did. */
const PATIENCE_MS = 3_600_000;
const SESSION = 'explored';

type OneOf<T> = (value: T) => void;

/** One process that runs the plan, or goes on with what another has left. */
interface Process {
  readonly life: Life;
  readonly layer: Spillway;
  readonly plan: Plan;
}

/** What all processes of one schedule share. */
interface Theatre {
  readonly setup: Setup;
  readonly runtime: VirtualRuntime;
  readonly store: DedupeStore;
  readonly ledger: Ledger;
  readonly course: Course;
  readonly person: Person;
  readonly listen: OneOf<TraceEvent> | undefined;
}

/** Every tool that the plan can call: those that were made for the world, and those that its nodes bring along. */
const toolsOf = ({ setup, ledger }: Theatre): readonly AnyTool[] => {
  const tools = setup.tools(ledger);
  const names = new Set(tools.map(({ name }) => name));
  const own = new Map<string, AnyTool>();
  for (const { tool } of setup.plan.nodes)
    if (typeof tool !== 'string' && !names.has(tool.name)) own.set(tool.name, tool);
  return [...tools, ...own.values()];
};

const started = (theatre: Theatre, isUndoing: boolean): Process => {
  const { setup, runtime, store, course, person, listen } = theatre;
  const { plan, options } = setup;
  const life = new Life();
  const whose = new Whose(isUndoing);
  const stage: Stage = { course, whose, person, life, runtime, lateMs: options.lateMs };
  const tools = toolsOf(theatre);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const toolOf = (name: string): AnyTool => {
    const tool = byName.get(name);
    if (tool === undefined)
      throw new RangeError(`the plan needs the tool ${name}, which is not among the tools; add it to them`);
    return tool;
  };
  const asked = (question: string): Fault | undefined =>
    options.storeFaults === true ? course.reach('', 'store', question, false).fault : undefined;
  const layer = createSpillway({
    ...options.layer,
    tools: tools.map((tool) => explored(stage, tool)),
    runtime: mortal(runtime, life),
    store: reached(store, life, asked),
    around: whose.around,
    ...([...tools, ...plan.nodes].some(needsApproval) ? { approvals: createApprovals({ ask: person.ask }) } : {}),
  });
  layer.trace$.subscribe((event) => {
    whose.hear(event);
    person.hear(event);
    // What a dead process says nobody hears.
    if (life.isAlive()) listen?.(event);
  });
  const nodes = plan.nodes.map((node) => exploredNode(stage, node, toolOf));
  return { life, layer, plan: planOf.from(nodes, plan.options) };
};

/** Lets time pass until something holds; false where it does not in time. */
const until = async (runtime: VirtualRuntime, holds: () => boolean, dueMs: number): Promise<boolean> => {
  while (!holds()) {
    if (runtime.now() >= dueMs) return false;
    if (!(await runtime.step())) return holds();
  }
  return true;
};

/** How long no process can go on with what a dead one held. */
const leaseMsOf = ({ plan }: Setup, tools: readonly AnyTool[]): number =>
  tools.reduce(
    (most, { policy }) => Math.max(most, policy?.dedupe?.leaseMs ?? 0),
    Math.max(plan.options.leaseMs ?? 0, DEDUPE_DEFAULTS.leaseMs),
  );

const timeoutMsOf = ({ plan }: Setup): number => plan.options.timeoutMs ?? TURN_TIMEOUT_MS;

/** One schedule, from the turn's start until nothing happens any more. */
class Run {
  result: TurnResult | undefined;
  /** Turns of which somebody was told how they ended. */
  readonly told = new Set<string>();
  deaths = 0;
  unsettled: string | undefined;
  readonly resumed: ResumedTurn[] = [];
  readonly theatre: Theatre;

  constructor(theatre: Theatre) {
    this.theatre = theatre;
  }

  /** Runs the plan in a process; false where that has died or does not end. */
  async turn(process: Process): Promise<boolean> {
    const { runtime, setup } = this.theatre;
    let told: TurnResult | undefined;
    const heard: OneOf<TurnEvent> = (event) => {
      if (!process.life.isAlive() || event.source !== 'turn' || event.type !== 'settled') return;
      told = event.result;
      this.told.add(event.turnId);
    };
    process.layer.turn(process.plan, { session: SESSION }).subscribe(heard);
    const dueMs = runtime.now() + timeoutMsOf(setup) + PATIENCE_MS;
    await until(runtime, () => told !== undefined || !process.life.isAlive(), dueMs);
    this.result = told ?? this.result;
    if (told !== undefined) return true;
    if (process.life.isAlive()) this.unsettled = 'the turn did not settle';
    return false;
  }

  /** Has a process finish what another has left; false where that has died, too. */
  async resume(process: Process): Promise<boolean> {
    const { runtime } = this.theatre;
    let found: readonly ResumedTurn[] | undefined;
    let problem: unknown;
    process.layer.resume({ plans: [process.plan] }).then(
      (turns) => {
        // What a dead process learns nobody hears.
        if (process.life.isAlive()) found = turns;
      },
      (error: unknown) => (problem = error),
    );
    const isOver = (): boolean => found !== undefined || problem !== undefined;
    await until(runtime, () => isOver() || !process.life.isAlive(), runtime.now() + PATIENCE_MS);
    for (const turn of found ?? []) {
      if (!this.told.has(turn.turnId)) this.resumed.push(turn);
      this.told.add(turn.turnId);
    }
    if (found === undefined && process.life.isAlive()) this.unsettled = 'resume() did not end';
    return found !== undefined;
  }

  /** Lets the dead process's leases run out. */
  async outlive(): Promise<void> {
    this.deaths++;
    const { theatre } = this;
    await theatre.runtime.advance(leaseMsOf(theatre.setup, toolsOf(theatre)) + 1);
  }
}

/** Goes on after a death, in one process after another. */
const goneOn = async (run: Run): Promise<void> => {
  const { options } = run.theatre.setup;
  let process: Process;
  let ended: boolean;
  do {
    await run.outlive();
    process = started(run.theatre, true);
    ended = await run.resume(process);
    const isDone = run.resumed.length > 0 || run.result !== undefined;
    if (ended && options.afterDeath === 'again' && !isDone) ended = await run.turn(process);
  } while (!ended && !process.life.isAlive());
};

/** The program is started once more, as it is some day: what a lost store kept from being told is told then. */
const startedAnew = async (run: Run): Promise<void> => {
  const { theatre } = run;
  const { plan, options } = theatre.setup;
  if (options.storeFaults !== true || run.unsettled !== undefined || plan.options.onFailure !== 'compensate') return;
  await theatre.runtime.advance(leaseMsOf(theatre.setup, []) + 1);
  await run.resume(started(theatre, true));
};

/** What one more process finds to do, once all is over; to be told once more of the same is no harm. */
const leftOver = async (run: Run): Promise<number> => {
  const { theatre } = run;
  if (run.deaths === 0 || run.unsettled !== undefined || theatre.setup.plan.options.onFailure !== 'compensate')
    return 0;
  await theatre.runtime.advance(leaseMsOf(theatre.setup, []) + 1);
  const before = run.resumed.length;
  await run.resume(started({ ...theatre, listen: undefined }, true));
  return run.resumed.splice(before).length;
};

/**
 * Runs the plan once, as a schedule has it, in virtual time and on the real layer, engine and store.
 *
 * @param listen hears the trace of all processes
 */
export const storyOf = async (setup: Setup, schedule: Schedule, listen?: OneOf<TraceEvent>): Promise<Story> => {
  const runtime = virtualRuntime({ seed: setup.seed });
  const ledger = new Ledger(runtime);
  const course = new Course(schedule);
  // What has expired is swept out by nobody: a timer for it would keep time going.
  const store = memoryStore({ runtime, sweepMs: Infinity });
  const run = new Run({ setup, runtime, store, ledger, course, person: new Person(), listen });
  const first = started(run.theatre, false);
  const hasEnded = await run.turn(first);
  if (!hasEnded && !first.life.isAlive()) await goneOn(run);
  // Late effects are effects.
  const dueMs = runtime.now() + PATIENCE_MS;
  await until(runtime, () => runtime.pending === 0, dueMs);
  await startedAnew(run);
  const left = await leftOver(run);
  if (ledger.misuse !== undefined) throw new RangeError(ledger.misuse);
  const { result, resumed, deaths, unsettled } = run;
  return { course, ledger, result, resumed, deaths, unsettled, left };
};
