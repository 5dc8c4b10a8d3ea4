import type { NeedsApproval } from '../contract/gate/approval.ts';
import type { Compensate, CompensateCall } from '../contract/settle/compensate.ts';
import type { AnyTool, InputOf, OutputOf } from '../contract/tool.ts';
import type { Plan, PlanNode, PlanOptions } from '../contract/turn.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { nodeCompensation } from '../layer/settle/compensation.ts';
import { approvalRuleOf } from '../layer/tool-policy.ts';
import { checkKeys, checkNumber, checkOneOf, given, integer, positiveDuration } from '../policy/check.ts';
import { bring } from '../saga/brought.ts';
import { resumeTurns } from '../saga/resume.ts';
import { runTurn } from './run.ts';
import { RUN, type RunnablePlan } from './runner.ts';

// A program that makes plans may have turns to resume, already before its first plan is made.
bring({ resumeTurns });

/** Nodes in one plan: room for a hundred thousand and a bound all the same. */
const NODES_MAX = 200_000;
/** Names that an error lists before it says how many more there are. */
const NAMES_MAX = 10;

/** The rules that a plan can break. */
export type PlanRule = 'cycle' | 'unknown_need' | 'duplicate_id' | 'default_without_needs' | 'too_large' | 'malformed';

/** A plan that cannot run. Thrown before anything does, and names the nodes. */
export class PlanError extends Error {
  /** Always `PlanError`. */
  override readonly name: string = 'PlanError';
  /** The rule that the plan breaks. */
  readonly rule: PlanRule;
  /** The ids of the nodes that break it; for a circle, in its order. */
  readonly nodes: readonly string[];
  constructor(rule: PlanRule, nodes: readonly string[], message: string) {
    super(message);
    this.rule = rule;
    this.nodes = nodes;
  }
}

/** How a node stands in the plan. `Needs` are ids of nodes before it. */
export interface NodeOptions<Values, Needs extends keyof Values> {
  /** Ids of nodes before it, whose values it is given; it starts when all of them have settled. Default: none. */
  readonly needs?: ReadonlyArray<Needs & string>;
  /** Left out without harm when a need fails or it fails itself. */
  readonly optional?: boolean;
  /** Stands in for the value of each need that failed, so that this node runs all the same. */
  readonly default?: Values[Needs];
  /** The id that the model gave the call, for the trace. */
  readonly toolCallId?: string;
  /** The same key of the same session gives the same result, also in a later turn. */
  readonly idempotencyKey?: string;
}

/** What a node may call: a tool, or the name of one that is registered, such as a provider's. */
export type Callable = AnyTool | string;

/**
 * The input of what a node calls. The compiler does not know that of a name, nor that of a tool out of a manifest: it
 * is an object then, which is checked against the tool's schema before it runs.
 */
export type NodeInput<T extends Callable> = [InputOf<T>] extends [never]
  ? Readonly<Record<string, unknown>>
  : InputOf<T>;

/** The output of what a node calls; unknown of a name. */
export type NodeOutput<T extends Callable> = T extends AnyTool ? OutputOf<T> : unknown;

/** A plan that grows by chained calls; each gives a new plan. */
export interface PlanBuilder<Values> extends Plan<Values> {
  /**
   * Adds a node.
   * @param id the node's name
   * @param tool the tool to call, or the name of one that is registered: `files.read_text_file`
   * @param input its input, or a function that makes it of the values of `needs`
   * @throws PlanError for an id used twice, a need that is not there, or a default without needs
   */
  call<const Id extends string, T extends Callable, Needs extends keyof Values = never>(
    id: Id,
    tool: T,
    input: NodeInput<T> | ((values: Pick<Values, NoInfer<Needs>>) => NodeInput<T>),
    options?: NodeOptions<Values, Needs> & {
      /** Undoes what this call did, in place of its tool's own `compensate`; `false`: there is nothing to undo. */
      readonly compensate?: Compensate<NodeInput<T>, NodeOutput<T>> | CompensateCall | false;
      /** A person has to approve this call, whatever its tool says: `true`, or a function of its input. */
      readonly needsApproval?: NeedsApproval<NodeInput<T>>;
    },
  ): PlanBuilder<Values & Record<Id, NodeOutput<T>>>;
}

const listed = (ids: readonly string[]): string =>
  ids.length <= NAMES_MAX ? ids.join(', ') : `${ids.slice(0, NAMES_MAX).join(', ')} and ${ids.length - NAMES_MAX} more`;

/** Finds a circle among the nodes that never became ready, by following needs until a node comes again. */
const findCycle = (needs: ReadonlyArray<readonly number[]>, stuck: ReadonlySet<number>): number[] => {
  const seenAt = new Map<number, number>();
  const path: number[] = [];
  let [at] = stuck;
  while (at !== undefined && !seenAt.has(at)) {
    seenAt.set(at, path.length);
    path.push(at);
    at = needs[at]?.find((need) => stuck.has(need));
  }
  return at === undefined ? path : path.slice(seenAt.get(at));
};

const checkAcyclic = (
  nodes: readonly PlanNode[],
  needs: ReadonlyArray<readonly number[]>,
  dependents: ReadonlyArray<readonly number[]>,
): void => {
  const waiting = needs.map(({ length }) => length);
  const ready = waiting.flatMap((count, place) => (count === 0 ? [place] : []));
  // Grows while it is walked: each node once, without recursion.
  for (const place of ready) {
    for (const dependent of dependents[place] ?? []) {
      const left = (waiting[dependent] ?? 0) - 1;
      waiting[dependent] = left;
      if (left === 0) ready.push(dependent);
    }
  }
  if (ready.length === nodes.length) return;
  const stuck = new Set(waiting.flatMap((count, place) => (count > 0 ? [place] : [])));
  const ids = findCycle(needs, stuck).map((place) => nodes[place]?.id ?? '');
  throw new PlanError(
    'cycle',
    ids,
    `The nodes need each other in a circle: ${listed([...ids, ids[0] ?? ''])}. Remove one of these needs.`,
  );
};

const checkOptions = (options: PlanOptions): void => {
  checkKeys('a plan', options, ['timeoutMs', 'onDeadline', 'concurrency', 'onFailure', 'name', 'leaseMs']);
  if (options.timeoutMs !== undefined) checkNumber('timeoutMs', options.timeoutMs, positiveDuration);
  if (options.concurrency !== undefined) checkNumber('concurrency', options.concurrency, integer(1, NODES_MAX));
  if (options.onDeadline !== undefined) checkOneOf('onDeadline', options.onDeadline, ['detach', 'abort']);
  if (options.onFailure !== undefined) checkOneOf('onFailure', options.onFailure, ['keep', 'compensate']);
  if (options.leaseMs !== undefined) checkNumber('leaseMs', options.leaseMs, positiveDuration);
  const { name } = options;
  if (name !== undefined && (typeof name !== 'string' || name === '' || name.length > 256))
    throw new RangeError('name of a plan must be a text of 1 to 256 characters');
};

const isTool = (tool: unknown): boolean =>
  typeof tool === 'string' || typeof (tool as Partial<AnyTool> | null | undefined)?.execute === 'function';

/** What a node made elsewhere lacks: the compiler has not seen it. */
const NODE_KEYS = [
  'id',
  'tool',
  'input',
  'needs',
  'optional',
  'default',
  'toolCallId',
  'idempotencyKey',
  'compensate',
  'needsApproval',
];

const checkShape = (node: PlanNode, place: number): void => {
  if (typeof node !== 'object' || node === null)
    throw new PlanError('malformed', [], `Node ${place} must be an object with an id and a tool, not ${String(node)}.`);
  const { id, tool, needs, idempotencyKey } = node;
  checkKeys(`Node ${typeof id === 'string' ? id : place}`, node, NODE_KEYS);
  if (typeof id !== 'string' || id === '')
    throw new PlanError(
      'malformed',
      [String(id)],
      `Node ${place} needs an id: a string that is not empty, not ${String(id)}.`,
    );
  if (!isTool(tool))
    throw new PlanError(
      'malformed',
      [id],
      `Node ${id} needs a tool: one made with \`tool()\`, or the name of one that is registered.`,
    );
  if (
    idempotencyKey !== undefined &&
    (typeof idempotencyKey !== 'string' || idempotencyKey === '' || idempotencyKey.length > 512)
  ) {
    throw new PlanError('malformed', [id], `The idempotencyKey of node ${id} must be a string of 1 to 512 characters.`);
  }
  if (needs !== undefined && !Array.isArray(needs))
    throw new PlanError('malformed', [id], `The needs of node ${id} must be a list of ids, not ${typeof needs}.`);
  checkDefault(node);
  checkRules(node);
};

/** How a node is undone, and who must approve it, is read before anything runs. */
const checkRules = ({ id, compensate, needsApproval }: PlanNode): void => {
  if (compensate === undefined && needsApproval === undefined) return;
  try {
    if (compensate !== undefined) nodeCompensation(compensate, undefined);
    approvalRuleOf('a node', needsApproval);
  } catch (error) {
    throw new PlanError('malformed', [id], `Node ${id}: ${toToolExecutionError(error).message}`);
  }
};

/** A default belongs to the dependent: on a node that needs nothing its author meant something else. */
const checkDefault = ({ id, needs = [], default: fallback }: PlanNode): void => {
  if (fallback === undefined || needs.length > 0) return;
  const why = `Node ${id} has a default and needs nothing, so its default could never stand in for anything.`;
  throw new PlanError(
    'default_without_needs',
    [id],
    `${why} Put the default on a node that needs ${id}, or remove it.`,
  );
};

const compile = <Values>(nodes: readonly PlanNode[], options: PlanOptions): RunnablePlan<Values> => {
  checkOptions(options);
  if (nodes.length > NODES_MAX)
    throw new PlanError(
      'too_large',
      [],
      `A plan may have ${NODES_MAX} nodes, not ${nodes.length}. Split it into several turns.`,
    );
  const places = new Map<string, number>();
  nodes.forEach((node, place) => {
    checkShape(node, place);
    const { id } = node;
    if (places.has(id))
      throw new PlanError('duplicate_id', [id], `Two nodes have the id ${id}. Give one of them another.`);
    places.set(id, place);
  });
  const dependents: number[][] = nodes.map(() => []);
  const needs = nodes.map((node, place) =>
    [...new Set(node.needs ?? [])].map((need) => {
      const needed = places.get(need);
      if (needed === undefined)
        throw new PlanError(
          'unknown_need',
          [node.id, need],
          `Node ${node.id} needs ${need}, which is not a node of the plan.`,
        );
      dependents[needed]?.push(place);
      return needed;
    }),
  );
  checkAcyclic(nodes, needs, dependents);
  return { nodes, options, needs, dependents, [RUN]: runTurn };
};

const builder = <Values>(nodes: readonly PlanNode[], options: PlanOptions): PlanBuilder<Values> => ({
  ...compile<Values>(nodes, options),
  call: (id, tool, input, { needs, ...rest } = {}) =>
    builder([...nodes, { id, tool, input, ...given({ needs: needs?.map(String) }), ...rest }], options),
});

interface PlanFactory {
  (options?: PlanOptions): PlanBuilder<Readonly<Record<never, never>>>;
  /**
   * A plan of nodes made elsewhere: in a loop, from a file.
   * @throws PlanError for a circle, an unknown need, an id used twice, a default without needs, or more than 200,000
   *   nodes
   */
  from(nodes: readonly PlanNode[], options?: PlanOptions): Plan;
}

/**
 * A turn's plan: calls, and which of them need which. Calls that need nothing run in parallel; one that needs others
 * gets their values.
 *
 * @param options `timeoutMs` (300,000), `onDeadline` (`detach`), `concurrency` (no limit)
 *
 * @example
 * const trip = plan({ timeoutMs: 60_000 })
 *   .call('flights', flights, { from: 'HEL', to: 'NRT' })
 *   .call('hotels', hotels, { city: 'Tokyo' }, { optional: true })
 *   .call('book', book, ({ flights }) => ({ flight: flights.id }), { needs: ['flights'] });
 */
export const plan: PlanFactory = /* @__PURE__ */ Object.assign(
  (options: PlanOptions = {}) => builder<Readonly<Record<never, never>>>([], options),
  {
    from: (nodes: readonly PlanNode[], options: PlanOptions = {}): Plan => compile([...nodes], options),
  },
);
