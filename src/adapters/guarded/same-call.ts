import { canonicalJson } from '../../policy/key/canonical-json.ts';
import type { ForeignOutcome } from './call-history.ts';
import type { ForeignCall, RunningForeignCall } from './calls.ts';
import { currentRun } from './harvest.ts';
import { Steering } from './steering.ts';

/** A call that is there already, and how many wait for it. */
interface Known {
  readonly call: RunningForeignCall;
  waiting: number;
  hasSettled: boolean;
}

/** What makes two calls of one model step the same one: its id alone does not, since some models count from 0. */
const sameness = ({ toolName, toolCallId = '', input }: ForeignCall): string | undefined => {
  if (toolCallId === '') return undefined;
  try {
    return canonicalJson([toolName, toolCallId, input]);
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

/** A result; or, of a call that stands for good, a failure that may have taken effect: neither is made again. */
const isKept = (outcome: ForeignOutcome, givenOnce: boolean): boolean =>
  outcome.succeeded ? !(outcome.value instanceof Steering) : givenOnce && outcome.uncertain === true;

/** Lets go of the oldest that has settled: one that runs is not to be made beside itself. */
const letGo = (calls: Map<string, Known>): void => {
  for (const [same, { hasSettled }] of calls) if (hasSettled) return void calls.delete(same);
};

/**
 * The calls of each model step. A call that its model, or what streams it, repeats in the step under the same id and
 * with the same input is one call: it is made once, and all are given what it gives. One that failed, or had a person
 * asked, can be made again, as frameworks do. Where no step is known, what only reads is read anew: what is remembered
 * may be old, or have been somebody else's to read.
 */
export class SameCalls {
  readonly #steps = new WeakMap<object, Map<string, Known>>();
  readonly #ever = {};

  begin(call: ForeignCall, isRead: boolean, make: () => RunningForeignCall): RunningForeignCall {
    const givenOnce = !isRead && GIVEN_ONCE.test(call.toolCallId ?? '');
    // Of a run alone it is not known where a step ends, other than by its calls.
    const step = call.step ?? call.runObject ?? currentRun() ?? (givenOnce ? this.#ever : undefined);
    const same = step === undefined ? undefined : sameness(call);
    if (step === undefined || same === undefined) return make();
    const calls = this.#steps.get(step) ?? new Map<string, Known>();
    this.#steps.set(step, calls);
    const known = calls.get(same) ?? { call: make(), waiting: 0, hasSettled: false };
    const forget = (): void => void (calls.get(same) === known && calls.delete(same));
    if (known.waiting++ === 0) {
      calls.set(same, known);
      if (calls.size > CALLS_MAX) letGo(calls);
      known.call.outcome.then((outcome) => {
        known.hasSettled = true;
        if (!isKept(outcome, givenOnce) || (call.step === undefined && !givenOnce)) forget();
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
