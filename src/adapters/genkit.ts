import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../errors/structure.ts';
import { correctable } from '../policy/advice.ts';
import { confirmed, unconfirmed } from '../policy/recovery/refusal.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import { schemaMismatch } from './guarded/schema-mismatch.ts';
import { Steering } from './guarded/steering.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** A model's request of a tool, as far as it is used; the rest is handed on. */
interface ToolRequestPart {
  readonly toolRequest: { readonly name: string; readonly ref?: string | undefined; readonly input?: unknown };
}
/** The options of `spillwayMiddleware`: those of every guard, and Genkit's maker of middleware. */
export interface SpillwayGenkitOptions<Middleware> extends GuardLayerOptions {
  /** `generateMiddleware` of `genkit`: this package imports nothing of Genkit. */
  readonly generateMiddleware: (options: Record<'name', string>, hooks: never) => Middleware;
}

type Lookup = (key: string) => unknown;

/** The input schema of a tool that Genkit's registry has. */
const schemaOf = async (ai: unknown, name: string): Promise<unknown> => {
  const registry = read(ai, 'registry');
  const lookup = read(registry, 'lookupAction');
  if (typeof lookup !== 'function') return undefined;
  const action = read(await Reflect.apply(lookup as Lookup, registry, [`/tool/${name}`]), '__action');
  return read(action, 'inputSchema') ?? read(action, 'inputJsonSchema');
};

/**
 * What a tool failed with. Genkit says the same of an input and of an output that does not fit, and a tool can say it,
 * too: the schema decides, and without a mismatch the tool may have run.
 */
const judged = async (thrown: unknown, ai: unknown, name: string, input: unknown): Promise<unknown> => {
  if (read(thrown, 'status') !== 'INVALID_ARGUMENT') return thrown;
  const claim = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', {
    cause: thrown,
  });
  const schema = await schemaOf(ai, name).catch(() => undefined);
  const mismatch = await schemaMismatch(schema, input);
  return mismatch === undefined ? unconfirmed(claim) : confirmed(claim, correctable(mismatch));
};

/** What a tool gave, as the answer to a request: what answered an earlier one of the key has its `ref`. */
const answering = ({ name, ref }: ToolRequestPart['toolRequest'], value: unknown): object => {
  const kept = read(value, 'toolResponse');
  const own = { name, ...(ref === undefined ? {} : { ref }) };
  return typeof kept === 'object' && kept !== null
    ? { ...(value as object), toolResponse: { ...kept, ...own } }
    : { toolResponse: { ...own, output: value } };
};

/** One call of a tool, under the layer. */
const guarded = async (
  { calls, ai, step }: { readonly calls: GuardedCalls; readonly ai: unknown; readonly step: object | undefined },
  req: ToolRequestPart,
  signal: AbortSignal | undefined,
  runOnce: (req: ToolRequestPart, signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> => {
  const { name, ref, input } = req.toolRequest;
  const settled = await calls.begin({
    framework: 'genkit',
    toolName: name,
    input,
    toolCallId: ref,
    signal,
    step,
    run: (given, context) =>
      runOnce({ ...req, toolRequest: { ...req.toolRequest, input: given } }, context.signal).catch(
        async (thrown: unknown) => {
          if (read(thrown, 'name') === 'ToolInterruptError') return Steering.thrown(thrown);
          throw await judged(thrown, ai, name, given);
        },
      ),
    adopt: (value) => answering(req.toolRequest, value),
  }).outcome;
  if (!settled.succeeded && signal?.aborted === true) throw signal.reason;
  if (!settled.succeeded) return answering(req.toolRequest, { error: settled.failure.message });
  if (settled.value instanceof Steering) return settled.value.passOn();
  return settled.value;
};

let guards = 0;

/** One run knows its middlewares by their names alone: two guards of one name would be the first of them twice. */
const nameOfNext = (): string => (++guards === 1 ? 'spillway' : `spillway-${guards}`);

/** The hooks of one run: `generate` hears its signal, `tool` runs its calls. */
const hooksOf = (calls: GuardedCalls, ai: unknown): object => {
  let runs: AbortSignal | undefined;
  let step: object | undefined;
  const generate = (envelope: unknown, ctx: object | undefined, next: (...args: unknown[]) => Promise<unknown>) => {
    const signal = read(ctx, 'abortSignal');
    runs = signal instanceof AbortSignal ? signal : undefined;
    // It is called for each of the model’s steps.
    step = {};
    return next(envelope, ctx);
  };
  const tool = (req: ToolRequestPart, ctx: object | undefined, next: (...args: unknown[]) => Promise<unknown>) =>
    guarded({ calls, ai, step }, req, runs, (given, abortSignal) => next(given, { ...ctx, abortSignal }));
  return { generate, tool };
};

/**
 * A middleware for Genkit's `generate({ use })` that runs every tool call under a layer, with its hard timeout,
 * retries, breaker and trace: tools of `defineTool`, of plugins and of MCP servers alike. A call settles when its
 * timeout passes or the run's `abortSignal` fires, whatever the tool does; alone Genkit tells a tool of no signal,
 * guarded it has its attempt's as `abortSignal`.
 *
 * A call that fails gives a response, since a throw ends Genkit's run and loses the results beside it: `{ error }` with
 * what happened in a sentence and whether the tool ran, whatever the tool's output schema. Nothing of what was thrown
 * is in it. Interrupts pass. When the run is aborted its signal's reason is thrown. A tool that is not there ends the
 * run before any middleware is asked, as alone.
 *
 * @param options `generateMiddleware`, `spillway` or the options of one, and `policies` by tool name
 * @returns what `generateMiddleware` gives: `use: [guard()]`
 * @throws RangeError for an option that does not exist or is out of its range
 *
 * @example
 * const generateMiddleware = (options: { name: string }, hooks: object) => () => ({ ...options, hooks });
 * const policies = { weather: { timeoutMs: 10_000, effects: 'read' } } as const;
 * const guard = spillwayMiddleware({ generateMiddleware, policies });
 */
export function spillwayMiddleware<Middleware>({
  generateMiddleware,
  ...options
}: SpillwayGenkitOptions<Middleware>): Middleware {
  if (typeof generateMiddleware !== 'function')
    throw new RangeError(`generateMiddleware must be Genkit’s function of that name, not ${typeof generateMiddleware}`);
  const calls = guardedCalls('spillwayMiddleware', options);
  const hooks = (given: object): object => hooksOf(calls, read(given, 'ai'));
  return generateMiddleware({ name: nameOfNext() }, hooks as never);
}
