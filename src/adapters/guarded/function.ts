import { fromEvent, lastValueFrom, takeUntil, tap } from 'rxjs';
import type { Effects } from '../../contract/policy.ts';
import type { ToolContext } from '../../contract/tool.ts';
import { fromOutput } from '../../operators/work/output.ts';
import type { FailureAnswer, ForeignOutcome } from './call-history.ts';
import { isAsyncIterable, type ForeignCall, type GuardedCalls, type RunningForeignCall } from './calls.ts';
import type { FrameworkName } from './harvest.ts';
import { Steering } from './steering.ts';
import type { ToolFailure } from './tool-failure.ts';
import { createValueQueue } from './value-queue.ts';

type Fn = (...args: never[]) => unknown;

const ASYNC_GENERATOR = '[object AsyncGeneratorFunction]';
/** Functions that give their values one by one: what they give is there before any of their work is done. */
const GENERATORS = [ASYNC_GENERATOR, '[object GeneratorFunction]'];

const kindOf = (fn: unknown): string => Object.prototype.toString.call(fn);

/**
 * @param streams whether asynchronous generators are guarded, too
 * @throws RangeError for a function whose calls cannot be guarded
 */
export const checkGuardable = (of: string, name: string, fn: unknown, streams = false): void => {
  const kind = kindOf(fn);
  if (!GENERATORS.includes(kind) || (streams && kind === ASYNC_GENERATOR)) return;
  throw new RangeError(
    `${of}: ${name} is a generator function, whose work begins after its call has ended; ` +
      'give a function that awaits its values',
  );
};

/** A function of a framework's tool, and how its calls are read: its input comes first, and then what goes with it. */
export interface ForeignFunction<Context extends readonly unknown[]> {
  readonly framework: FrameworkName;
  readonly toolName: string;
  /** What is called, on what the guarded function is called on unless `self` says otherwise. */
  readonly fn: Fn;
  readonly self?: object;
  readonly effects?: Effects;
  readonly idOf?: (input: unknown, ...context: Context) => string | undefined;
  /** The key under which a call runs once. A call that paused is no result: it runs again under its key. */
  readonly keyOf?: (input: unknown, ...context: Context) => string | undefined;
  readonly signalOf?: (input: unknown, ...context: Context) => AbortSignal | null | undefined;
  /** What all calls of one model step have in what goes with them, and no other call. */
  readonly stepOf?: (input: unknown, ...context: Context) => object | undefined;
  /** Where there is no such thing: what all calls of one run have, and no other run. */
  readonly runOf?: (input: unknown, ...context: Context) => object | undefined;
  /** What goes with the input of one attempt, whose signal is its own. Default: what the call came with. */
  readonly contextOf?: (signal: AbortSignal, input: unknown, ...context: Context) => readonly unknown[];
  /** What a harvest keeps with the call. */
  readonly originOf?: (input: unknown, ...context: Context) => unknown;
  /**
   * What its framework takes for the result of a tool that gives values one by one: the last of them, or what its
   * generator returns. Without it what gives values is a value like any other.
   */
  readonly streams?: 'last' | 'returned';
  /** Whether a value says that the tool failed: it counts as thrown. */
  readonly failed?: (value: unknown) => boolean;
  /** What the tool threw, where it is its framework's own error for the model. */
  readonly answerOf?: (thrown: unknown) => FailureAnswer | undefined;
  /** What its framework takes as a result, made of a value that the tool itself did not give. Default: the value. */
  readonly adopt?: (value: unknown, input: unknown, ...context: Context) => unknown;
  /** Whether something thrown is no failure but steers the framework, such as an interrupt: it is thrown on. */
  readonly steers?: (thrown: unknown) => boolean;
  /**
   * The arguments of an attempt, changed so that they tell where the tool has a person asked: what it then gives is no
   * result, and it is called again with the answer.
   */
  readonly asking?: (asked: () => void, args: readonly unknown[]) => readonly unknown[];
  /** What becomes of a failure, or of the answer that the tool gave as one. Default: it is thrown. */
  readonly fail?: (
    failure: ToolFailure,
    answer: FailureAnswer | undefined,
    input: unknown,
    ...context: Context
  ) => unknown;
}

const thrownBy = (failure: ToolFailure, answer: FailureAnswer | undefined): never => {
  throw answer === undefined ? failure : answer.thrown;
};

/** What a generator returns, behind the values that it gives. */
class Returned {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

const withReturned = async function* (values: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  yield new Returned(yield* values);
};

/** Where the values of a tool go, for a framework that shows them. */
type Told = (value: unknown) => void;

/** The result of what gives values one by one, which is run to its end or to the end of its attempt. */
const resultOf = async (
  values: AsyncIterable<unknown>,
  streams: 'last' | 'returned',
  context: ToolContext,
  told: Told,
): Promise<unknown> => {
  const { signal } = context;
  // Nothing of it has run yet.
  if (signal.aborted) return undefined;
  const each$ = fromOutput(streams === 'last' ? values : withReturned(values)).pipe(
    takeUntil(fromEvent(signal, 'abort')),
    tap((value) => {
      context.progress({});
      if (!(value instanceof Returned)) told(value);
    }),
  );
  const result = await lastValueFrom(each$, { defaultValue: undefined });
  return result instanceof Returned ? result.value : result;
};

/** One attempt of it. */
const attempt = async <Context extends readonly unknown[]>(
  { fn, failed, steers, streams, asking }: ForeignFunction<Context>,
  self: unknown,
  args: readonly unknown[],
  context: ToolContext,
  told: Told,
): Promise<unknown> => {
  let hasAsked = false;
  const asked = (): void => {
    hasAsked = true;
  };
  try {
    const given: unknown = await Reflect.apply(fn, self, asking?.(asked, args) ?? args);
    const value =
      streams !== undefined && isAsyncIterable(given) ? await resultOf(given, streams, context, told) : given;
    if (hasAsked) return Steering.given(value);
    if (failed?.(value) !== true) return value;
    throw value;
  } catch (thrown) {
    if (steers?.(thrown) !== true) throw thrown;
    return Steering.thrown(thrown);
  }
};
const ended = (
  settled: ForeignOutcome,
  fail: (failure: ToolFailure, answer: FailureAnswer | undefined) => unknown,
): unknown => {
  if (!settled.succeeded) return fail(settled.failure, settled.answer);
  if (settled.value instanceof Steering) return settled.value.passOn();
  return settled.value;
};

/** Gives the values of a call as they come, and returns what it came to. */
const streamed = async function* (
  begin: (told: Told) => RunningForeignCall,
  settle: (settled: ForeignOutcome) => unknown,
): AsyncGenerator<unknown, unknown> {
  const queue = createValueQueue(() => call.abandon());
  const call = begin((value) => queue.push(value));
  const settled = call.outcome.then(settle);
  settled.then(
    () => queue.end(),
    () => queue.end(),
  );
  yield* queue.values;
  return settled;
};

/** What is read from a call. */
const factsOf = <Context extends readonly unknown[]>(
  { idOf, keyOf, signalOf, stepOf, runOf, originOf }: ForeignFunction<Context>,
  input: unknown,
  context: Context,
): Pick<ForeignCall, 'toolCallId' | 'idempotencyKey' | 'signal' | 'step' | 'runObject' | 'origin'> => ({
  toolCallId: idOf?.(input, ...context),
  idempotencyKey: keyOf?.(input, ...context),
  signal: signalOf?.(input, ...context),
  step: stepOf?.(input, ...context),
  runObject: runOf?.(input, ...context),
  origin: originOf?.(input, ...context),
});

/** A function like it, of which each call runs under the layer. */
export function guardedFunction<Context extends readonly unknown[]>(
  calls: GuardedCalls,
  foreign: ForeignFunction<Context>,
): (input: unknown, ...context: Context) => Promise<unknown> {
  const { framework, toolName, self, effects, contextOf, answerOf, adopt } = foreign;
  const begin = (own: unknown, input: unknown, context: Context, told: Told): RunningForeignCall =>
    calls.begin({
      framework,
      toolName,
      input,
      ...factsOf(foreign, input, context),
      ...(effects === undefined ? {} : { effects }),
      ...(answerOf === undefined ? {} : { answerOf }),
      ...(adopt === undefined ? {} : { adopt: (value: unknown) => adopt(value, input, ...context) }),
      run: (given, toolContext) => {
        const args = [given, ...(contextOf?.(toolContext.signal, input, ...context) ?? context)];
        return attempt(foreign, own, args, toolContext, told);
      },
    });
  const settle = (settled: ForeignOutcome, input: unknown, context: Context): unknown =>
    ended(settled, (failure, answer) => (foreign.fail ?? thrownBy)(failure, answer, input, ...context));
  const guarded = async function (this: unknown, input: unknown, ...context: Context): Promise<unknown> {
    return settle(await begin(self ?? this, input, context, () => undefined).outcome, input, context);
  };
  // Frameworks ask what kind of function it is before they call it.
  const stream = async function* (
    this: unknown,
    input: unknown,
    ...context: Context
  ): AsyncGenerator<unknown, unknown> {
    return yield* streamed(
      (told) => begin(self ?? this, input, context, told),
      (settled) => settle(settled, input, context),
    );
  };
  // Frameworks read the name of a function, and hosts what they wrote on it.
  const { prototype: _prototype, ...members } = Object.getOwnPropertyDescriptors(foreign.fn);
  return Object.defineProperties(kindOf(foreign.fn) === ASYNC_GENERATOR ? stream : guarded, members) as typeof guarded;
}
