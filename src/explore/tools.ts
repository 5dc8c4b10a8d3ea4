import { Observable, isObservable } from 'rxjs';
import type { AnyTool, Tool, ToolContext } from '../contract/tool.ts';
import type { NeedsApproval } from '../contract/gate/approval.ts';
import type { Compensate } from '../contract/settle/compensate.ts';
import type { PlanNode } from '../contract/turn.ts';
import { nameOf } from '../turn/plan-node.ts';
import type { VirtualRuntime } from '../testing/virtual-runtime.ts';
import type { Course, Whose } from './course.ts';
import type { Life } from './life.ts';
import type { Person } from './person.ts';
import type { Act } from './schedule.ts';
import { strike } from './strike.ts';
import { actingAs, type Actor } from './world.ts';

/** Where tools run that are explored. */
export interface Stage {
  readonly course: Course;
  readonly whose: Whose;
  readonly person: Person;
  readonly life: Life;
  readonly runtime: VirtualRuntime;
  readonly lateMs: number | undefined;
}

const SETTLE_MS = 1_000;
const onServer = (actor: Actor): Actor => ({ ...actor, isAlive: () => true });

/** What gives values one by one is run as its actor whenever it is asked for the next. */
const stayingWith = (actor: Actor, output: unknown): unknown => {
  if (isObservable(output)) return new Observable((subscriber) => actingAs(actor, () => output.subscribe(subscriber)));
  const iterable = output as Partial<AsyncIterable<unknown>> | null | undefined;
  const open = iterable?.[Symbol.asyncIterator];
  if (typeof open !== 'function') return output;
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = actingAs(actor, () => open.call(iterable));
      return {
        next: () => actingAs(actor, () => iterator.next()),
        return: (value?: unknown) =>
          actingAs(actor, () => iterator.return?.(value) ?? Promise.resolve({ done: true as const, value })),
      };
    },
  };
};

/** Half of what is waited for an effect that comes late: what is later than that nobody can know of. */
const lateMsOf = ({ lateMs }: Stage, { policy }: AnyTool): number =>
  lateMs ?? Math.floor((policy?.verify?.settleMs ?? SETTLE_MS) / 2);

/**
 * Starts an attempt as its schedule has it.
 *
 * @param work what the tool's own function does, given the signal that it is to see
 */
const attempted = (
  stage: Stage,
  tool: AnyTool,
  who: { readonly node: string; readonly act: Act; readonly input?: unknown },
  signal: AbortSignal,
  work: (signal: AbortSignal) => unknown,
): unknown => {
  const { course, life, runtime, whose, person } = stage;
  const { attempt, fault, requested } = course.reach(who.node, who.act, tool.name, tool.verify !== undefined);
  attempt.isUnapproved = 'input' in who && person.disowns(whose.call, tool.name, who.input);
  const server = { life, runtime, lateMs: lateMsOf(stage, tool) };
  const actor: Actor = {
    attempt,
    isAlive: () => life.isAlive(),
    struck: (number, asked, own = signal) => {
      const struckBy = requested(number);
      if (struckBy === undefined) return undefined;
      const asActor = (asServer: boolean): unknown => asked(asServer ? onServer(actor) : actor);
      return strike({ ...server, fault: struckBy, work: asActor, signal: AbortSignal.any([signal, own]) });
    },
  };
  const as = (by: Actor, seen: AbortSignal): unknown =>
    stayingWith(
      by,
      actingAs(by, () => work(seen)),
    );
  if (fault === undefined) return as(actor, signal);
  // A server does not see that its caller goes.
  const asActor = (asServer: boolean): unknown => as(asServer ? onServer(actor) : actor, new AbortController().signal);
  return strike({ ...server, fault, work: asActor, signal });
};

const executed = (stage: Stage, tool: AnyTool): AnyTool['execute'] => {
  const { course, whose } = stage;
  const own = tool as Tool<unknown, unknown>;
  return (input: unknown, context: ToolContext) => {
    const node = whose.current;
    // It looks something up for another call.
    if (node === undefined) return own.execute(input, context);
    const act = whose.isUndoing ? 'undo' : 'run';
    if (act === 'run') course.know(context.callKey, node);
    return attempted(stage, tool, { node, act, input }, context.signal, (signal) =>
      own.execute(input, { ...context, signal }),
    );
  };
};

/** An undoing, struck as its schedule has it. */
export const undoneBy = (
  stage: Stage,
  tool: AnyTool,
  compensate: Compensate<unknown, unknown>,
): Compensate<unknown, unknown> => {
  const { course, whose } = stage;
  return (output, context) => {
    const node = whose.current ?? course.nodeOf(context.callKey) ?? '';
    return attempted(stage, tool, { node, act: 'undo' }, context.signal, (signal) =>
      compensate(output, { ...context, signal }),
    );
  };
};

/** Whether a tool or a node may have to be approved. */
export const needsApproval = ({
  needsApproval: own,
  policy,
}: Pick<AnyTool | PlanNode, 'needsApproval'> & Partial<Pick<AnyTool, 'policy'>>): boolean =>
  policy?.needsApproval === true || (own !== undefined && own !== false);

const ruleOf = ({ needsApproval: own, policy }: AnyTool): NeedsApproval<unknown> =>
  policy?.needsApproval === true ? true : ((own ?? false) as NeedsApproval<unknown>);

/** A tool of the user's, whose own functions run where nothing strikes them. */
export const explored = (stage: Stage, tool: AnyTool): AnyTool => {
  const own = tool as Tool<unknown, unknown>;
  const { course, person } = stage;
  return {
    ...tool,
    ...(tool.policy === undefined ? {} : { policy: { ...tool.policy, needsApproval: false } }),
    ...(needsApproval(tool) ? { needsApproval: person.seeing(ruleOf(tool)) } : {}),
    execute: executed(stage, tool),
    ...(own.verify === undefined
      ? {}
      : {
          verify: (input: unknown, context) =>
            attempted(
              stage,
              tool,
              { node: course.nodeOf(context.callKey) ?? '', act: 'verify' },
              context.signal,
              (signal) => own.verify?.(input, { ...context, signal }),
            ) as never,
        }),
    ...(own.compensate === undefined
      ? {}
      : {
          compensate: undoneBy(stage, tool, (output, context) => own.compensate?.(output, context)),
        }),
  };
};

/** A node whose tool is found by name, and whose own undoing can be struck. */
export const exploredNode = (stage: Stage, node: PlanNode, toolOf: (name: string) => AnyTool): PlanNode => {
  const { compensate, needsApproval: rule } = node;
  const tool = toolOf(nameOf(node));
  const own: PlanNode = {
    ...node,
    tool: tool.name,
    ...(needsApproval(node) ? { needsApproval: stage.person.seeing(rule as NeedsApproval<unknown>) } : {}),
  };
  if (typeof compensate !== 'function') return own;
  return { ...own, compensate: undoneBy(stage, tool, compensate as Compensate<unknown, unknown>) };
};
