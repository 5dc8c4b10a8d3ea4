import { Observable, type SchedulerLike, type Subscription } from 'rxjs';
import type { ToolPolicy } from '../contract/policy.ts';
import type { ToolOutput } from '../contract/output.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';

/** What one execution of a scripted tool does. */
export interface ScriptedStep {
  /** When it answers, in milliseconds from its start. Default 0: in the same instant, after what else is due. */
  readonly afterMs?: number;
  /** What it answers with. Default `undefined`. */
  readonly value?: unknown;
  /** What it fails with; a step that has this member does not answer. */
  readonly error?: unknown;
  /** `true`: it throws `error` in the call itself, before there is a promise or a stream. Default `false`. */
  readonly throws?: boolean;
  /** `true`: it never answers. Default `false`. */
  readonly hangs?: boolean;
  /** `true`: it goes on, and answers, though its signal was aborted. Default `false`. */
  readonly ignoresSignal?: boolean;
  /** How it answers. Default `promise`; with `value` it answers at once, whatever `afterMs` says. */
  readonly as?: 'value' | 'promise' | 'observable' | 'iterable';
  /** How many values a stream gives before its last one, each `{ early: <index> }`. Default 0. */
  readonly earlierValues?: number;
  /** When it reports progress, in milliseconds from its start. Default: never. */
  readonly progressAtMs?: readonly number[];
}

/** What a scripted tool is, and does. */
export interface ScriptedTool {
  /** The tool's name. */
  readonly name: string;
  /** The tool's policy. Default: the layer's. */
  readonly policy?: ToolPolicy;
  /** The name of what the tool depends on; tools of one dependency can share a breaker. Default: none. */
  readonly dependency?: string;
  /** A step for each execution, the last one again and again; or a function of the input and the attempt. */
  readonly script: readonly ScriptedStep[] | ((input: unknown, context: ToolContext) => ScriptedStep);
  /** Called when an execution answers, even if nobody waits for it any more. Default: nobody is. */
  readonly answered?: (step: ScriptedStep, input: unknown, context: ToolContext) => void;
}

type Settle = (error: boolean, value: unknown) => void;

/** Answers when it is time, unless the signal says that nobody wants to know. */
const perform = (
  step: ScriptedStep,
  context: ToolContext,
  scheduler: SchedulerLike,
  settle: Settle,
): Subscription[] => {
  const tasks = (step.progressAtMs ?? []).map((ms, index) =>
    scheduler.schedule(() => context.progress({ progress: index + 1 }), ms),
  );
  const stop = (): void => tasks.forEach((task) => task.unsubscribe());
  const fails = 'error' in step;
  if (step.hangs !== true)
    tasks.push(scheduler.schedule(() => settle(fails, fails ? step.error : step.value), step.afterMs ?? 0));
  if (step.ignoresSignal !== true) context.signal.addEventListener('abort', stop, { once: true });
  return tasks;
};

const stream = (
  step: ScriptedStep,
  context: ToolContext,
  scheduler: SchedulerLike,
  told: () => void,
): Observable<unknown> =>
  new Observable((subscriber) => {
    for (let i = 0; i < (step.earlierValues ?? 0); i++) subscriber.next({ early: i });
    const settle: Settle = (failed, value) => {
      told();
      if (failed) return subscriber.error(value);
      subscriber.next(value);
      subscriber.complete();
    };
    const tasks = perform(step, context, scheduler, settle);
    return () => {
      if (step.ignoresSignal !== true) for (const task of tasks) task.unsubscribe();
    };
  });

const promise = (
  step: ScriptedStep,
  context: ToolContext,
  scheduler: SchedulerLike,
  told: () => void,
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    perform(step, context, scheduler, (failed, value) => {
      told();
      if (failed) reject(value);
      else resolve(value);
    });
  });

async function* iterable(
  step: ScriptedStep,
  context: ToolContext,
  scheduler: SchedulerLike,
  told: () => void,
): AsyncGenerator {
  for (let i = 0; i < (step.earlierValues ?? 0); i++) yield { early: i };
  yield await promise(step, context, scheduler, told);
}

/**
 * A tool that does what its script says, under virtual time: answers, fails, hangs, throws, comes late, ignores its
 * signal.
 *
 * @param definition its name, policy and script
 * @param scheduler of the virtual runtime, or a `TestScheduler`: under that its steps answer `as: 'observable'`
 *
 * @example const flaky = scriptedTool({ name: 'flaky', script: [{ error: new Error('503') }, { afterMs: 20, value: 'ok'
 * }] }, runtime.scheduler);
 */
export function scriptedTool(
  { name, policy, dependency, script, answered }: ScriptedTool,
  scheduler: SchedulerLike,
): Tool<unknown, unknown> {
  let executions = 0;
  return {
    name,
    ...(policy === undefined ? {} : { policy }),
    ...(dependency === undefined ? {} : { dependency }),
    execute: (input, context): ToolOutput<unknown> => {
      const step =
        typeof script === 'function'
          ? script(input, context)
          : (script[Math.min(executions++, script.length - 1)] ?? {});
      const told = (): void => answered?.(step, input, context);
      if (step.throws === true) {
        told();
        throw step.error;
      }
      if (step.as === 'value' && step.hangs !== true) {
        told();
        return step.value;
      }
      if (step.as === 'observable') return stream(step, context, scheduler, told);
      return step.as === 'iterable'
        ? iterable(step, context, scheduler, told)
        : promise(step, context, scheduler, told);
    },
  };
}
