import type { NodeResult, Plan, TurnResult } from '../contract/turn.ts';
import type { ToolInForce } from '../contract/event.ts';
import type { ToolPolicy } from '../contract/policy.ts';
import type { AnyTool } from '../contract/tool.ts';
import { canDoWithout, nameOf } from '../turn/plan-node.ts';
import type { Schedule } from './schedule.ts';
import type { Story } from './story.ts';
import { isThere } from './world.ts';

/**
 * What a schedule brought to light. `twice`: an effect happened twice, or was undone twice. `uncompensated`: an
 * effect of a turn that undoes what it did stayed. `lost`: a required node has no value although its policies allow
 * more attempts, or is told as done and is not there, or another acted with a default in its place. `untold`: an
 * effect is there of a node that is told as failed for certain. `unapproved`: an effect happened after a person had
 * approved another input. `unsettled`: the turn, or the process that goes on with it, did not end.
 */
export type FindingKind = 'twice' | 'uncompensated' | 'lost' | 'untold' | 'unapproved' | 'unsettled';

/** A finding before it is drawn. */
export interface ExploreVerdict {
  readonly kind: FindingKind;
  readonly node: string;
  readonly message: string;
}

/** What is known of the plan before anything strikes. */
export interface Facts {
  readonly plan: Plan;
  /** Nodes whose effects are there when nothing goes wrong. */
  readonly acting: ReadonlySet<string>;
  /** Attempts that a node's policy allows, with those of alternatives. */
  readonly allowed: ReadonlyMap<string, number>;
  /** There is nothing to undo of the node, as is declared. */
  readonly isLeft: (node: string) => boolean;
  /** The node's undoing may be repeated where it is not known how it ended. */
  readonly isRepeatable: (node: string) => boolean;
}

const remains = ({ ledger }: Story, node: string): boolean =>
  ledger.effects.some((effect) => effect.by.node === node && effect.by.act !== 'undo' && isThere(effect));

const strikes = (schedule: Schedule, node: string, ...acts: readonly string[]): Schedule =>
  schedule.filter((strike) => strike.node === node && acts.includes(strike.act));

/**
 * The tool said no for certain, nothing could be looked up or kept, or all attempts that the policy allows were struck.
 */
const isExcused = ({ allowed }: Facts, schedule: Schedule, node: string): boolean => {
  const runs = strikes(schedule, node, 'run');
  return (
    schedule.some(({ act }) => act === 'store') ||
    runs.some(({ fault }) => fault === 'refused') ||
    strikes(schedule, node, 'verify').length > 0 ||
    runs.length >= (allowed.get(node) ?? Infinity)
  );
};

const doubles = ({ ledger }: Story): ExploreVerdict[] =>
  ledger.doubled.map(({ key, node, what }) => ({
    kind: 'twice',
    node,
    message: `the effect of ${node} under ${JSON.stringify(key)} was ${what} twice`,
  }));

const LOST: ReadonlySet<string> = new Set(['failed', 'timed_out', 'canceled']);
const HAS_VALUE: ReadonlySet<string> = new Set(['succeeded', 'defaulted']);

const isRequired = ({ plan }: Facts, place: number): boolean =>
  plan.nodes[place]?.optional !== true && !canDoWithout(plan, place);

/** The node that acted as though one had acted that did not: a default is no payment. */
const hiddenBy = ({ plan, acting }: Facts, story: Story, place: number): string | undefined => {
  const lost = plan.nodes[place];
  if (lost === undefined || lost.optional === true || !acting.has(lost.id)) return undefined;
  const dependents = plan.dependents[place]?.map((index) => plan.nodes[index]?.id);
  return story.result?.nodes.find(
    ({ id, state }) => state === 'defaulted' && dependents?.includes(id) === true && remains(story, id),
  )?.id;
};

/** A node that made no attempt of its own, and has the answer of another under the same key. */
const isBorrowed = ({ course, deaths }: Story, { id, result }: NodeResult): boolean =>
  result?.fromCache === true && deaths === 0 && course.count('run', id) === 0;

const lostNode = (
  facts: Facts,
  story: Story,
  schedule: Schedule,
  node: NodeResult,
  place: number,
): ExploreVerdict | undefined => {
  const { id, state, reason } = node;
  const lost = (message: string): ExploreVerdict => ({ kind: 'lost', node: id, message });
  // Of a turn whose end the store did not get, its result says that it may be undone.
  const isKept = story.result?.recorded === undefined;
  if (state === 'succeeded' && isKept && facts.acting.has(id) && !remains(story, id))
    return lost(`${id} is told as succeeded, and its effect is not there`);
  if (HAS_VALUE.has(state) && isBorrowed(story, node))
    return lost(`${id} did nothing: it was given the result of another node under the same idempotency key`);
  if (!LOST.has(state)) return undefined;
  const dependent = hiddenBy(facts, story, place);
  if (dependent !== undefined)
    return lost(
      `${id} failed, and ${dependent} acted with its default in place of it; if that is meant, ${id} is optional`,
    );
  if (!isRequired(facts, place) || isExcused(facts, schedule, id)) return undefined;
  return lost(`the required node ${id} was lost (${state}): ${reason ?? 'its failure is not told'}`);
};

/** A call that made no attempt says nothing of those before it. */
const isSure = ({ state, result }: NodeResult): boolean =>
  state === 'failed' && result?.error !== undefined && result.error.uncertain !== true && result.attempts > 0;

const untold = (story: Story, node: NodeResult): ExploreVerdict[] =>
  isSure(node) && remains(story, node.id)
    ? [{ kind: 'untold', node: node.id, message: `${node.id} is told as failed for certain, and its effect is there` }]
    : [];

const unapproved = ({ course }: Story): ExploreVerdict[] =>
  course.reached
    .filter(({ isUnapproved, touches }) => isUnapproved && touches > 0)
    .map(({ node }) => ({
      kind: 'unapproved',
      node,
      message: `${node} acted with an input that nobody approved: its approval was for another one`,
    }));

/** What a node of the plan undid, and what happened all the same: it was still on its way. */
const undoneEarly = ({ ledger }: Story): ExploreVerdict[] =>
  ledger.effects.flatMap((effect): ExploreVerdict[] =>
    effect.undoneEarly === undefined || !isThere(effect)
      ? []
      : [
          {
            kind: 'uncompensated',
            node: effect.by.node,
            message: `${effect.undoneEarly} undid what ${effect.by.node} does before it had happened, and so it stayed`,
          },
        ],
  );

/** Whether what the turn did had to be undone, and what is told to stay of it. */
const undoingOf = (
  { plan }: Facts,
  { result, resumed, deaths }: Story,
): { readonly stays: ReadonlySet<string>; readonly kept: ReadonlySet<string> } | undefined => {
  if (plan.options.onFailure !== 'compensate') return undefined;
  const [turn] = resumed;
  if (result === undefined && turn?.outcome === 'completed') return { stays: new Set(), kept: new Set(turn.done) };
  const compensation = result === undefined ? turn?.compensation : result.compensation;
  const isBad = result === undefined ? deaths > 0 : isFailed(result);
  if (!isBad) return undefined;
  return { stays: new Set(compensation?.stays.map(({ id }) => id)), kept: new Set() };
};

const isFailed = ({ status, compensation, nodes }: TurnResult): boolean =>
  compensation !== undefined ||
  status === 'escalated' ||
  status === 'failed' ||
  nodes.some(({ state }) => state === 'timed_out' || state === 'canceled');

/**
 * What strikes the undoing itself may leave an effect, as long as somebody is told. So may a death, or a store that is
 * lost, while it was tried: where it may not be repeated.
 */
const isExcusedFromUndoing = ({ isRepeatable }: Facts, schedule: Schedule, node: string): boolean =>
  strikes(schedule, node, 'undo', 'verify').length > 0 ||
  (!isRepeatable(node) &&
    schedule.some(({ act, fault }) => act === 'store' || (act !== 'run' && fault.startsWith('dies'))));

const leftBehind = (facts: Facts, story: Story, schedule: Schedule): ExploreVerdict[] => {
  const undoing = undoingOf(facts, story);
  if (undoing === undefined) return [];
  return facts.plan.nodes.flatMap(({ id }): ExploreVerdict[] => {
    if (undoing.kept.has(id) || facts.isLeft(id) || !remains(story, id)) return [];
    const isTold = undoing.stays.has(id);
    if (isTold && isExcusedFromUndoing(facts, schedule, id)) return [];
    const how = isTold ? 'and a person is asked to undo it by hand' : 'and nobody is told';
    return [{ kind: 'uncompensated', node: id, message: `the turn failed, the effect of ${id} stayed, ${how}` }];
  });
};

const unsettled = ({ unsettled, left }: Story): ExploreVerdict[] => {
  if (unsettled !== undefined) return [{ kind: 'unsettled', node: '', message: unsettled }];
  return left === 0
    ? []
    : [{ kind: 'unsettled', node: '', message: 'something was left for one more process to resume' }];
};

/** What is wrong with how a schedule ended. */
export const judged = (facts: Facts, story: Story, schedule: Schedule): readonly ExploreVerdict[] => {
  const nodes = story.result?.nodes ?? [];
  const isUndone = story.resumed.some(({ outcome }) => outcome === 'undone');
  const lost = isUndone ? [] : nodes.flatMap((node, place) => lostNode(facts, story, schedule, node, place) ?? []);
  return [
    ...doubles(story),
    ...leftBehind(facts, story, schedule),
    ...undoneEarly(story),
    ...lost,
    ...nodes.flatMap((node) => untold(story, node)),
    ...unapproved(story),
    ...unsettled(story),
  ];
};

/** Attempts that a tool's policy allows, and those of its alternatives. */
const allowedOf = (toolName: string, inForce: ReadonlyMap<string, ToolInForce>): number => {
  const policy = inForce.get(toolName)?.policy;
  if (policy === undefined) return Infinity;
  const others = policy.alternatives.map((name) => inForce.get(name)?.policy.retry.maxAttempts ?? 0);
  return others.reduce((sum, count) => sum + count, policy.retry.maxAttempts);
};

/** What the run without a fault tells of a plan, and what its tools declare. */
export const factsOf = (
  plan: Plan,
  story: Story,
  tools: readonly AnyTool[],
  inForce: ReadonlyMap<string, ToolInForce>,
): Facts => {
  const compensations = new Map(tools.map(({ name, policy }) => [name, policy?.compensate]));
  const nodes = new Map(plan.nodes.map((node) => [node.id, node]));
  const declared = (id: string): ToolPolicy['compensate'] => {
    const node = nodes.get(id);
    if (node?.compensate === false) return false;
    const ofTool = node === undefined ? undefined : compensations.get(nameOf(node));
    return ofTool === false && node?.compensate !== undefined ? undefined : ofTool;
  };
  return {
    plan,
    acting: new Set([...nodes.keys()].filter((id) => remains(story, id))),
    allowed: new Map(plan.nodes.map((node) => [node.id, allowedOf(nameOf(node), inForce)])),
    isLeft: (id) => declared(id) === false,
    isRepeatable: (id) => {
      const policy = declared(id);
      return policy !== undefined && policy !== false && policy.enforcesKey === true;
    },
  };
};
