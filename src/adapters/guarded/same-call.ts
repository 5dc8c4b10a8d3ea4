import type { ForeignCall, RunningForeignCall } from './calls.ts';
import { currentRun } from './harvest.ts';
import { Steering } from './steering.ts';

/** A call that is there already, and how many wait for it. */
interface Known {
  readonly call: RunningForeignCall;
  waiting: number;
}

/** What makes two calls of one model step the same one: its id alone does not, since some models count from 0. */
const sameness = ({ toolName, toolCallId = '', input }: ForeignCall): string | undefined => {
  if (toolCallId === '') return undefined;
  try {
    return JSON.stringify([toolName, toolCallId, input]);
  } catch {
    return undefined;
  }
};

/**
 * Anthropic's API, also at Bedrock and Vertex AI, gives an id to one call and to no other: what comes under it again is
 * that call, in whatever step.
 */
const GIVEN_ONCE = /^toolu_(?:bdrk_|vrtx_)?[A-Za-z\d]{20,}$/;
/** Calls under such ids that are remembered where nothing says where their step or run ends. */
const CALLS_MAX = 1_000;

/**
 * The calls of each model step. A call that its model, or what streams it, repeats in the step under the same id and
 * with the same input is one call: it is made once, and all are given what it gives. One that failed, or had a person
 * asked, can be made again, as frameworks do.
 */
export class SameCalls {
  readonly #steps = new WeakMap<object, Map<string, Known>>();
  readonly #ever = {};

  begin(call: ForeignCall, make: () => RunningForeignCall): RunningForeignCall {
    const givenOnce = GIVEN_ONCE.test(call.toolCallId ?? '');
    // Of a run alone it is not known where a step ends, other than by its calls.
    const step = call.step ?? call.runObject ?? currentRun() ?? (givenOnce ? this.#ever : undefined);
    const same = step === undefined ? undefined : sameness(call);
    if (step === undefined || same === undefined) return make();
    const calls = this.#steps.get(step) ?? new Map<string, Known>();
    this.#steps.set(step, calls);
    const known = calls.get(same) ?? { call: make(), waiting: 0 };
    const forget = (): void => void (calls.get(same) === known && calls.delete(same));
    if (known.waiting++ === 0) {
      calls.set(same, known);
      const [oldest] = calls.keys();
      if (calls.size > CALLS_MAX && oldest !== undefined) calls.delete(oldest);
      known.call.outcome.then((outcome) => {
        const isResult = outcome.succeeded && !(outcome.value instanceof Steering);
        if (!isResult || (call.step === undefined && !givenOnce)) forget();
      }, forget);
    }
    const abandon = (): void => {
      if (--known.waiting > 0) return;
      forget();
      known.call.abandon();
    };
    return { outcome: known.call.outcome, abandon };
  }
}
