import type { ToolEvent, TraceEvent } from '../../src/contract/event.ts';
import type { GuidanceRule, RecoveryStrategy } from '../../src/contract/recovery.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { createExperience } from '../../src/policy/recovery/experience.ts';
import { createSpillway } from '../../src/spillway.ts';
import { scriptedTool } from '../../src/testing/scripted-tool.ts';
import { Dice } from './dice.ts';
import type { Outcome } from './simulate.ts';
import { Memory } from './failure-memory.ts';
import { SideWorld } from './side-world.ts';

type Of<T extends ToolEvent['type']> = Extract<ToolEvent, { type: T }>;

const STRATEGIES = ['retry', 'alternative', 'partial', 'escalate', 'fail'] as const;
const KINDS = ['execution_error', 'transport_error'] as const;
const TOOLS = ['t0', 't1', 't2'] as const;
const SPAN_MS = 600;

/** A host's rules, and how it learns: drawn beforehand. */
interface Drawn {
  readonly rules: readonly GuidanceRule[];
  readonly enough: number;
  readonly maxAgeMs: number;
  readonly explores: boolean;
  readonly maxAttempts: number;
  /** How often an attempt at each tool fails. */
  readonly fails: readonly number[];
  readonly calls: number;
}

const some = <T>(dice: Dice, list: readonly T[], chance: number): T[] => list.filter(() => dice.chance(chance));

const drawRule = (dice: Dice, place: number): GuidanceRule => ({
  when: {
    ...(dice.chance(0.3) ? { tools: some(dice, TOOLS, 0.6) } : {}),
    ...(dice.chance(0.3) ? { kinds: some(dice, KINDS, 0.6) } : {}),
    ...(dice.chance(0.3) ? { classification: dice.pick(['transient', 'permanent']) } : {}),
    ...(dice.chance(0.2) ? { costFrom: dice.pick([1, 2]) } : {}),
    ...(dice.chance(0.3) ? { attemptFrom: dice.int(1, 3) } : {}),
  },
  ...(dice.chance(0.4) ? { forbid: some(dice, STRATEGIES, 0.4) } : {}),
  ...(dice.chance(0.3) ? { force: dice.pick(STRATEGIES) } : {}),
  ...(dice.chance(0.3) ? { prefer: some(dice, STRATEGIES, 0.5) } : {}),
  reason: `rule ${place}`,
});

const draw = (seed: number): Drawn => {
  const dice = new Dice(seed, 50);
  return {
    rules: Array.from({ length: dice.int(0, 3) }, (_, place) => drawRule(dice, place)),
    enough: dice.int(1, 4),
    maxAgeMs: dice.pick([60, 200, 100_000]),
    explores: dice.chance(0.2),
    maxAttempts: dice.int(1, 4),
    fails: TOOLS.map(() => dice.pick([0.3, 0.7, 1])),
    calls: dice.int(4, 16),
  };
};

const ERRORS: readonly [() => unknown, ...(() => unknown)[]] = [
  () => Object.assign(new Error('unavailable'), { status: 503 }),
  () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
  () => new ToolExecutionError('execution_error', 'later', { status: 429 }),
  () => Object.assign(new Error('no such thing'), { status: 404 }),
];

/** A failure as it is remembered, and as rules ask about it. */
interface Failed {
  readonly tool: string;
  readonly kind: string;
  readonly classification: string;
  readonly key: string;
  readonly isHopeless: boolean;
}

/** A call under way. */
interface Followed {
  failed?: Failed;
  /** What the present attempt is a retry after. */
  retrying?: string;
  /** The alternative in use, and after which failure. */
  tried?: string;
  untried: readonly string[];
  settled: boolean;
}

/** Follows the calls of one layer by its trace, and holds each decision against rules and memory. */
class RecoveryWatch {
  readonly #world: SideWorld;
  readonly #drawn: Drawn;
  readonly #memory: Memory;
  readonly #calls = new Map<string, Followed>();

  constructor(world: SideWorld, drawn: Drawn) {
    this.#world = world;
    this.#drawn = drawn;
    this.#memory = new Memory(drawn);
  }

  get open(): number {
    return [...this.#calls.values()].filter(({ settled }) => !settled).length;
  }

  heard(event: TraceEvent): void {
    if (event.source !== 'call') return;
    if (event.type === 'call_started')
      this.#calls.set(event.callId, {
        untried: TOOLS.slice(TOOLS.indexOf(event.toolName as 't0') + 1),
        settled: false,
      });
    if (event.type === 'attempt_succeeded') this.#ended(event, true);
    if (event.type === 'attempt_failed') this.#failed(event);
    if (event.type === 'decision') this.#decided(event);
    if (event.type === 'alternative_used') this.#alternative(event);
    if (event.type === 'settled') this.#settled(event);
  }

  #ended({ callId, atMs }: ToolEvent, recovered: boolean): void {
    const call = this.#calls.get(callId);
    if (call?.retrying !== undefined) this.#memory.learn(call.retrying, atMs, recovered);
    if (call !== undefined) delete call.retrying;
  }

  #failed(event: Of<'attempt_failed'>): void {
    this.#ended(event, false);
    const { toolName: tool, error, classification, atMs } = event;
    const failureKey = `${tool} ${error.kind} ${error.status ?? error.code ?? ''}`;
    const call = this.#calls.get(event.callId);
    const key = `${failureKey} retry`;
    const isHopeless = this.#memory.isHopeless(key, atMs);
    if (!isHopeless && this.#memory.has(key)) this.#world.findings.saw('evidence is too old, or mixed');
    if (call !== undefined) call.failed = { tool, kind: error.kind, classification, key: failureKey, isHopeless };
  }

  #applies({ when = {} }: GuidanceRule, { tool, kind, classification }: Failed, attempt: number): boolean {
    if (when.tools?.includes(tool) === false || when.kinds?.includes(kind as 'execution_error') === false) return false;
    if (when.classification !== undefined && when.classification !== classification) return false;
    return (when.costFrom ?? 0) <= costOf(tool) && (when.attemptFrom ?? 0) <= attempt;
  }

  /** Strategies that rules and evidence leave, and whether a rule forced the last of them. */
  #left(
    failed: Failed,
    attempt: number,
    untried: readonly string[],
  ): { readonly left: ReadonlySet<RecoveryStrategy>; readonly forced: boolean } {
    let left = new Set<RecoveryStrategy>(['partial', 'escalate', 'fail']);
    if (failed.classification === 'transient' && attempt < this.#drawn.maxAttempts && !failed.isHopeless)
      left.add('retry');
    const nowMs = this.#world.runtime.now();
    if (untried.some((tool) => !this.#memory.isHopeless(`${failed.key} ${tool}`, nowMs))) left.add('alternative');
    let forced = false;
    for (const rule of this.#drawn.rules) {
      if (!this.#applies(rule, failed, attempt)) continue;
      for (const strategy of rule.forbid ?? []) left.delete(strategy);
      if (rule.force === undefined || !left.has(rule.force)) continue;
      forced ||= left.size > 1;
      left = new Set([rule.force]);
    }
    return { left, forced };
  }

  /** A retry that is made against the evidence is one more way for the rules to leave, and to take. */
  #isWithoutWay(failed: Failed, attempt: number, untried: readonly string[]): boolean {
    if (!this.#drawn.explores || !failed.isHopeless) return false;
    return this.#left({ ...failed, isHopeless: false }, attempt, untried).left.size === 0;
  }

  #decided({ callId, strategy, code, attempt, reason }: Of<'decision'>): void {
    const call = this.#calls.get(callId);
    const failed = call?.failed;
    if (call === undefined || failed === undefined) return;
    const { findings } = this.#world;
    const { left, forced } = this.#left(failed, attempt ?? 0, call.untried);
    if (this.#drawn.explores && strategy === 'retry' && failed.isHopeless) findings.saw('a retry against the evidence');
    // With a share of retries made against the evidence, chance has a say.
    const isLeft =
      left.has(strategy) || (left.size === 0 && strategy === 'fail') || (this.#drawn.explores && failed.isHopeless);
    this.#world.check(
      isLeft,
      strategy === 'retry' && failed.isHopeless ? 'EXP-1' : 'GUI-1',
      () => `${failed.tool} after ${failed.key}: ${strategy} (${code}, ${reason}); left are ${[...left].join(', ')}`,
    );
    if (forced && left.size === 1) findings.saw('a rule forces a strategy');
    if (code === 'guidance') {
      const isRules = this.#drawn.rules.some(
        (rule) => rule.reason === reason && this.#applies(rule, failed, attempt ?? 0),
      );
      this.#world.check(
        isRules || left.size === 0 || this.#isWithoutWay(failed, attempt ?? 0, call.untried),
        'GUI-1',
        () => `decided by guidance (${reason}), and no such rule applies`,
      );
      findings.saw(left.size === 0 ? 'rules forbid every way' : 'a rule changes a decision');
    }
    if (code === 'experience') {
      findings.saw('experience changes a decision');
      const nowMs = this.#world.runtime.now();
      const isKnown =
        failed.isHopeless || call.untried.some((tool) => this.#memory.isHopeless(`${failed.key} ${tool}`, nowMs));
      this.#world.check(
        isKnown,
        'EXP-1',
        () => `${reason}, which is not so by what happened in the last ${this.#drawn.maxAgeMs} ms`,
      );
    }
    if (strategy === 'retry') call.retrying = `${failed.key} retry`;
  }

  #alternative({ callId, toolName, atMs }: Of<'alternative_used'>): void {
    const call = this.#calls.get(callId);
    if (call?.failed === undefined) return;
    const { key } = call.failed;
    const isUseless = this.#memory.isHopeless(`${key} ${toolName}`, this.#world.runtime.now());
    this.#world.check(
      !isUseless || this.#drawn.explores,
      'EXP-1',
      () => `${toolName} is tried after ${key}, for which it never helped`,
    );
    if (toolName !== call.untried[0]) this.#world.findings.saw('experience passes an alternative over');
    // The alternative before it did not help.
    if (call.tried !== undefined) this.#memory.learn(call.tried, atMs, false);
    call.tried = `${key} ${toolName}`;
    call.untried = call.untried.slice(call.untried.indexOf(toolName) + 1);
  }

  #settled({ callId, result, atMs }: Of<'settled'>): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#world.check(!call.settled, 'RES-1', () => `${callId} settles twice`);
    call.settled = true;
    if (call.tried !== undefined) this.#memory.learn(call.tried, atMs, result.status === 'success');
  }
}

const costOf = (tool: string): number => TOOLS.indexOf(tool as 't0');

/**
 * One run of a host's guidance and a layer's experience: random rules over tools that fail, each
 * decision held against the rules, and against what was tried before, both worked out from the trace alone.
 */
export async function simulateRecovery(seed: number, log?: (line: string) => void): Promise<Outcome> {
  const world = new SideWorld(seed, log);
  const drawn = draw(seed);
  const watch = new RecoveryWatch(world, drawn);
  const { runtime } = world;
  const tools = TOOLS.map((name, index) =>
    scriptedTool(
      {
        name,
        policy: {
          effects: 'read',
          cost: index,
          breaker: false,
          alternatives: TOOLS.slice(index + 1),
          retry: {
            strategy: 'constant',
            initialDelayMs: 10,
            jitterPercent: 0,
            maxAttempts: drawn.maxAttempts,
            maxTotalTimeMs: 10_000,
          },
        },
        script: (input, { attempt }) => {
          const dice = new Dice(seed, 51, (input as { readonly n: number }).n, index, attempt);
          const afterMs = dice.pick([0, 5, 10, 20]);
          return dice.chance(drawn.fails[index] ?? 0)
            ? { afterMs, error: dice.pick(ERRORS)() }
            : { afterMs, value: name };
        },
      },
      runtime.scheduler,
    ),
  );
  const experience = createExperience({
    enough: drawn.enough,
    maxAgeMs: drawn.maxAgeMs,
    exploreShare: drawn.explores ? 0.5 : 0,
  });
  const spillway = createSpillway({ tools, runtime, retryBudget: false, guidance: drawn.rules, experience });
  spillway.trace$.subscribe((event) => {
    world.heard(event);
    watch.heard(event);
  });
  const dice = new Dice(seed, 52);
  for (let n = 0; n < drawn.calls; n++) {
    const toolName = dice.pick(TOOLS);
    runtime.scheduler.after(dice.int(0, SPAN_MS / 5) * 5, () => void spillway.execute({ toolName, input: { n } }));
  }
  await world.toTheEnd();
  world.check(watch.open === 0 || world.findings.violations.length > 0, 'RES-2', () => `${watch.open} calls never end`);
  return world.outcome;
}
