import { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import type { AnyTool, ToolContext } from '../../../src/contract/tool.ts';
import { Dice } from '../dice.ts';
import type { Answer, CallWatch } from './call-watch.ts';
import type { Process } from './process.ts';
import { fires, policyOf, type KeyedTool } from './scenario.ts';
import type { KeyWorld } from './world.ts';

const LATENCIES_MS = [0, 5, 10, 20, 30] as const;
const LONG_MS = [40, 80, 150, 250, 400] as const;

type Fate = 'answers' | 'hangs' | 'transient' | 'permanent' | 'uncertain';

/** What one execution will do: a function of the run, the call and the attempt alone. */
const fateOf = (
  { scenario, calm }: KeyWorld,
  n: number,
  attempt: number,
): {
  readonly fate: Fate;
  readonly afterMs: number;
  readonly effectMs: number;
  readonly remote: boolean;
  readonly deaf: boolean;
} => {
  const { seed, faults } = scenario;
  const dice = new Dice(seed, 11, n, attempt);
  if (calm) return { fate: 'answers', afterMs: 5, effectMs: 0, remote: true, deaf: false };
  const afterMs = fires(faults, 'slow', dice) ? dice.pick(LONG_MS) : dice.pick(LATENCIES_MS);
  const failed = (['transient', 'permanent', 'uncertain'] as const).find((fate) => fires(faults, fate, dice));
  const hangs = fires(faults, 'hang', dice);
  const [effectMs, remote, deaf] = [
    dice.chance(0.5) ? 0 : Math.max(0, afterMs - 5),
    dice.chance(0.7),
    fires(faults, 'ignore_signal', dice),
  ];
  return {
    fate: hangs ? 'hangs' : (failed ?? 'answers'),
    afterMs,
    effectMs: hangs && dice.chance(0.5) ? Infinity : effectMs,
    remote,
    deaf,
  };
};

const failure = (fate: Fate, answer: Answer): unknown => {
  const text = JSON.stringify(answer);
  if (fate === 'uncertain') return new ToolExecutionError('transport_error', text, { uncertain: true });
  return fate === 'transient'
    ? Object.assign(new Error(text), { status: 503 })
    : new ToolExecutionError('execution_error', text, { classification: 'permanent' });
};

/**
 * A tool of one process, whose effects are elsewhere: they outlive the process, and its signal does not always reach
 * them.
 */
export const remoteTool = (spec: KeyedTool, process: Process, world: KeyWorld): AnyTool => ({
  name: spec.name,
  policy: policyOf(spec),
  execute: (input: { readonly n: number; readonly params: string }, context: ToolContext) => {
    const { n, params } = input;
    const watch = world.executing(process, n, context);
    const { tenant, session } = watch.call;
    const answer: Answer = { n, attempt: context.attempt, params, tenant, session, text: `Ünïcode ${n}\n"quoted"` };
    const { fate, afterMs, effectMs, remote, deaf } = fateOf(world, n, context.attempt);
    const { scheduler } = world.runtime;
    world.log?.(`      p${process.index} ${spec.name} runs for ${n}: ${fate} after ${afterMs}, effect at ${effectMs}`);
    const mayTakeEffect = fate === 'answers' || fate === 'hangs' || (fate === 'uncertain' && n % 2 === 0);
    return new Promise<Answer>((resolve, reject) => {
      const takesEffect = (): void => world.takesEffect(watch, spec, context.fence ?? 0);
      const effect =
        mayTakeEffect && effectMs < Infinity
          ? scheduler.after(effectMs, () => (remote ? takesEffect() : process.deliver(takesEffect)))
          : undefined;
      const answers = (): void => {
        if (fate !== 'answers') return reject(failure(fate, answer));
        succeeded(watch, answer);
        resolve(answer);
      };
      const reply = fate === 'hangs' ? undefined : scheduler.after(afterMs, () => process.deliver(answers));
      if (deaf) return;
      context.signal.addEventListener(
        'abort',
        () => {
          effect?.cancel();
          reply?.cancel();
        },
        { once: true },
      );
    });
  },
});

/** Only while the attempt runs: what comes later is nobody's result. */
const succeeded = (watch: CallWatch, answer: Answer): void => {
  if (watch.running?.own === answer.attempt) watch.succeeded = answer;
};
