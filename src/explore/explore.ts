import type { ToolInForce, TraceEvent } from '../contract/event.ts';
import { counted } from '../inspect/text.ts';
import type { AnyTool } from '../contract/tool.ts';
import type { Plan } from '../contract/turn.ts';
import { findingOf, type Finding } from './finding.ts';
import { factsOf, judged, type Facts, type ExploreVerdict } from './judge.ts';
import { faultsAt, nameOf, scheduleWords, type Schedule, type Strike } from './schedule.ts';
import { setupOf, type ExploreOptions, type ExploredTools, type Setup } from './setup.ts';
import { storyOf, type Story } from './story.ts';
import { Ledger, type Attempt } from './world.ts';
import { virtualRuntime } from '../testing/virtual-runtime.ts';

/** What an exploration came to. The same plan, tools, options and seed give the same, byte for byte. */
export interface Exploration {
  /** Schedules that were run, the one without a fault included. */
  readonly explored: number;
  /** Schedules that were not run, since they cannot differ from one that was. */
  readonly pruned: {
    /** Faults at an attempt that changes nothing: before and after its effect differ in their instant alone. */
    readonly same: number;
    /** Faults at attempts that the policies allow, and that never happen. */
    readonly unreached: number;
  };
  /** What was found: of those that repeat one of fewer faults, the least. */
  readonly findings: readonly Finding[];
  /** Findings beyond `maxFindings`, which are counted alone. */
  readonly moreFindings: number;
  /** Findings of pairs that one of their faults brings about alone. */
  readonly repeated: number;
  /** The seed of chance. */
  readonly seed: number;
}

/** Children of a schedule: each has one strike more, at an attempt that comes after all that it has. */
const extensions = (setup: Setup, { course }: Story, schedule: Schedule): readonly Schedule[] => {
  const after = course.struckAt.at(-1) ?? -1;
  // Of the attempt that was struck last, the requests that follow; those before it had their turn.
  const begun = schedule.at(-1)?.request ?? Infinity;
  return course.reached.slice(Math.max(0, after)).flatMap((one, offset) => {
    const { node, act, attempt, touches, isVerifiable } = one;
    const faults = faultsAt(act, touches > 0 || isVerifiable, setup.faults);
    const isStruck = after >= 0 && offset === 0;
    return placesIn(one, isStruck ? begun : 0).flatMap((place) =>
      faults.map((fault): Schedule => [...schedule, { node, act, attempt, ...place, fault }]),
    );
  });
};

/** What of an attempt can be struck: each of its requests after the given one, or else all of it. */
const placesIn = ({ requests }: Attempt, begun: number): ReadonlyArray<Pick<Strike, 'request'>> =>
  requests === 0 && begun === 0
    ? [{}]
    : Array.from({ length: requests }, (_, index) => ({ request: index + 1 })).filter(({ request }) => request > begun);

const COUNTED: ReadonlySet<string> = new Set(['run', 'undo']);

/** An exploration under way. */
class Search {
  readonly setup: Setup;
  facts: Facts | undefined;
  explored = 0;
  same = 0;
  unreached = 0;
  repeated = 0;
  moreFindings = 0;
  readonly found: Array<{ readonly schedule: Schedule; readonly verdict: ExploreVerdict }> = [];
  /** By strike: what it brings about alone; under the empty name, what needs none. */
  readonly #alone = new Map<string, Set<string>>();

  constructor(setup: Setup) {
    this.setup = setup;
  }

  /** Runs a schedule, and keeps what it brought to light. */
  async run(schedule: Schedule): Promise<Story> {
    const { setup } = this;
    let inForce: ReadonlyMap<string, ToolInForce> = new Map();
    const hear = (event: TraceEvent): void => {
      if (event.type === 'layer_started') inForce = new Map(event.tools.map((tool) => [tool.name, tool]));
    };
    const story = await storyOf(setup, schedule, this.facts === undefined ? hear : undefined);
    checkRepeated(story, schedule, setup);
    this.facts ??= factsOf(setup.plan, story, declaredTools(setup), inForce);
    this.explored++;
    for (const verdict of judged(this.facts, story, schedule)) this.#keep(schedule, verdict);
    return story;
  }

  /** Counts what of a schedule's extensions need not be run. */
  prune(story: Story): void {
    const { setup, facts } = this;
    const { course } = story;
    const after = course.struckAt.at(-1) ?? -1;
    for (const { act, touches, isVerifiable } of course.reached.slice(after + 1))
      if (COUNTED.has(act) && touches === 0 && !isVerifiable)
        this.same += setup.faults.length - faultsAt(act, false, setup.faults).length;
    for (const [node, allowed] of facts?.allowed ?? [])
      if (Number.isFinite(allowed))
        this.unreached += Math.max(0, allowed - course.count('run', node)) * setup.faults.length;
  }

  #keep(schedule: Schedule, verdict: ExploreVerdict): void {
    const key = `${verdict.kind} ${verdict.node}`;
    const lesser = schedule.length > 1 ? ['', ...schedule.map(nameOf)] : schedule.length === 1 ? [''] : [];
    if (lesser.some((name) => this.#alone.get(name)?.has(key) === true)) return void this.repeated++;
    if (schedule.length < 2) {
      const name = schedule.map(nameOf).join('');
      this.#alone.set(name, (this.#alone.get(name) ?? new Set()).add(key));
    }
    if (this.found.length < this.setup.maxFindings) this.found.push({ schedule, verdict });
    else this.moreFindings++;
  }
}

/** The tools as they declare themselves. */
const declaredTools = ({ tools, plan }: Setup): readonly AnyTool[] => {
  const own = plan.nodes.flatMap(({ tool }) => (typeof tool === 'string' ? [] : [tool]));
  return [...own, ...tools(new Ledger(virtualRuntime()))];
};

/**
 * What struck once strikes again, since everything before it is the same.
 * @throws RangeError where it is not
 */
const checkRepeated = ({ course }: Story, schedule: Schedule, { options }: Setup): void => {
  if (course.isComplete || options.schedules !== undefined) return;
  throw new RangeError(
    `exploreFaults: the plan goes another way when it is run again (${scheduleWords(schedule)}): ` +
      'tools must begin anew for each world, and have no chance or clock of their own, such as Math.random or Date.now',
  );
};

const PER_MINUTE = 10_000;

/** @throws RangeError where the plan is too large: nothing is left out in silence */
const checkSize = ({ plan, depth, maxSchedules }: Setup, schedules: number, singles: number): void => {
  if (schedules <= maxSchedules) return;
  const minutes = Math.ceil(schedules / PER_MINUTE);
  const less = depth === 2 && singles + 1 <= maxSchedules ? `, take depth: 1 (${singles + 1} schedules)` : '';
  const size = `${counted(plan.nodes.length, 'node')} at depth ${depth} are ${schedules} schedules`;
  const remedy = `Raise it (about ${counted(minutes, 'minute')})${less}, or name fewer faults`;
  throw new RangeError(`exploreFaults: ${size}, more than maxSchedules (${maxSchedules}). ${remedy}`);
};

const searched = async (search: Search): Promise<void> => {
  const { setup } = search;
  const whole = await search.run([]);
  search.prune(whole);
  const singles = extensions(setup, whole, []);
  checkSize(setup, singles.length + 1, singles.length);
  const pairs: Array<readonly Schedule[]> = [];
  let count = singles.length + 1;
  for (const single of singles) {
    const story = await search.run(single);
    if (setup.depth < 2) continue;
    search.prune(story);
    const more = extensions(setup, story, single);
    count += more.length;
    // Once there are too many, they are only counted.
    if (count <= setup.maxSchedules) pairs.push(more);
  }
  checkSize(setup, count, singles.length);
  for (const more of pairs) for (const pair of more) await search.run(pair);
};

/**
 * Runs the schedules of pasted tests. What a later strike is for may be gone once a bug is mended, such as an attempt
 * too many.
 *
 * @throws RangeError for a schedule whose first strike never happens: it would prove nothing
 */
const given = async (search: Search, schedules: readonly Schedule[]): Promise<void> => {
  await search.run([]);
  for (const schedule of schedules) {
    const [first] = schedule;
    const { course } = await search.run(schedule);
    if (first !== undefined && !course.reached.some((one) => isAt(first, one)))
      throw new RangeError(
        `exploreFaults: attempt ${first.attempt} of ${first.node} (${first.act}) never happens, ` +
          'so that this schedule proves nothing; has the plan changed?',
      );
  }
};

const isAt = (strike: Strike, one: Pick<Strike, 'node' | 'act' | 'attempt'>): boolean =>
  strike.node === one.node && strike.act === one.act && strike.attempt === one.attempt;

/**
 * Runs a plan in virtual time under every single fault and every pair of faults, at each attempt of each node, on the
 * real layer, engine and store, and reports each schedule in which an effect happened twice, stayed although its turn
 * undoes what it did, a required node was lost, or the turn did not settle. `verify` and `compensate` of the tools are
 * really run. An attempt that never happens is not struck; nothing else is left out.
 *
 * @param plan whose tools are found by name among `tools`, or else as its nodes bring them along
 * @param tools made for a world that stands for their servers
 * @throws RangeError for more than `maxSchedules`, and for an option out of its range
 *
 * @example
 * const trip = plan.from([{ id: 'flight', tool: 'book' }]);
 * const { findings } = await exploreFaults(trip, (world) => [
 *   tool({ name: 'book', policy: { effects: 'mutating' }, execute: (_, { callKey }) => world.add(callKey) }),
 * ]);
 * for (const { message, marbles, test } of findings) log.push(message, marbles, test);
 */
export async function exploreFaults(
  plan: Plan,
  tools: ExploredTools,
  options: ExploreOptions = {},
): Promise<Exploration> {
  const setup = setupOf(plan, tools, options);
  const search = new Search(setup);
  await (options.schedules === undefined ? searched(search) : given(search, options.schedules));
  const findings: Finding[] = [];
  for (const { schedule, verdict } of search.found) findings.push(await findingOf(setup, schedule, verdict));
  const { explored, same, unreached, moreFindings, repeated } = search;
  return { explored, pruned: { same, unreached }, findings, moreFindings, repeated, seed: setup.seed };
}
